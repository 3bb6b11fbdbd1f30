# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environment in which a resource agent runs.

It is built from nothing, so that no setting of ours or of an operator's shell gets
in: OCF 1.1, Parameter passing; the names beyond it are those that pacemaker's
executor sets and that agents have come to expect.
"""

from __future__ import annotations

from collections.abc import Mapping

from .locate import OCF_ROOT, AgentName

RUN_DIRECTORY = "/run/resource-agents"
"""HA_RSCTMP: where agents keep state that must not survive a boot."""

SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def agent_environment(
    agent: AgentName,
    *,
    instance: str,
    action: str,
    timeout: float,
    interval: float = 0.0,
    check_level: int | None = None,
    parameters: Mapping[str, str] | None = None,
    ocf_root: str = OCF_ROOT,
    node_name: str = "",
    run_directory: str = RUN_DIRECTORY,
    extra: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return all variables for one call; *timeout* and *interval* are in seconds.

    Without OCF_ROOT most agents fail, and some print nothing and say success, so it is
    always there.  The interval tells a probe (0) from a health check; agents answer
    differently to the two.  Agents that escalate by themselves read the timeout.
    """
    environment = {
        "PATH": SEARCH_PATH,
        "LC_ALL": "C",
        "OCF_ROOT": ocf_root,
        "OCF_RA_VERSION_MAJOR": "1",
        "OCF_RA_VERSION_MINOR": "1",
        "OCF_OUTPUT_FORMAT": "text",
        "OCF_EXIT_REASON_PREFIX": "ocf-exit-reason:",
        "OCF_RESOURCE_INSTANCE": instance,
        "OCF_RESOURCE_TYPE": agent.type,
        "OCF_RESOURCE_PROVIDER": agent.provider,
        "OCF_RESKEY_CRM_meta_timeout": str(int(timeout * 1000)),
        "OCF_RESKEY_CRM_meta_interval": str(int(interval * 1000)),
        "OCF_RESKEY_CRM_meta_name": action,
        "HA_RSCTMP": run_directory,
    }
    if node_name:
        environment["OCF_RESKEY_CRM_meta_on_node"] = node_name
        environment["OCF_RESKEY_CRM_meta_on_node_uuid"] = node_name
    if check_level is not None:
        environment["OCF_CHECK_LEVEL"] = str(check_level)
    for name, value in (parameters or {}).items():
        environment[f"OCF_RESKEY_{name}"] = value
    environment.update(extra or {})
    return environment
