# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which fence agents are installed, and how each answers for a plug that does not exist.

Some report everything that is not on as off.  With these, a plug that was mistyped or is gone is
"off" while the node lives.  The lists are from the agents' source (fence-agents 4.12.1), and from
tests where there is a simulated device.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from ..errors import AgentError, InputError

REFUSE_ABSENT_PLUGS = frozenset(
    {
        "fence_aliyun",
        "fence_apc",
        "fence_aws",
        "fence_azure_arm",
        "fence_bladecenter",
        "fence_cdu",
        "fence_cisco_ucs",
        "fence_cyberpower_ssh",
        "fence_docker",
        "fence_drac5",
        "fence_eaton_snmp",
        "fence_ecloud",
        "fence_eps",
        "fence_gce",
        "fence_hds_cb",
        "fence_holdfast_machine",
        "fence_hpblade",
        "fence_ibm_powervs",
        "fence_ibm_vpc",
        "fence_ibmz",
        "fence_ilo_moonshot",
        "fence_ironic",
        "fence_kubevirt",
        "fence_ldom",
        "fence_lindypdu",
        "fence_lpar",
        "fence_netio",
        "fence_openstack",
        "fence_ovh",
        "fence_pve",
        "fence_raritan",
        "fence_raritan_px3",
        "fence_rhevm",
        "fence_sbd",
        "fence_skalar",
        "fence_vbox",
        "fence_virsh",
        "fence_vmware_rest",
        "fence_vmware_soap",
        "fence_vmware_vcloud",
        "fence_wti",
        "fence_xenapi",
    }
)
"""They fail for a plug that they do not find, unless ``missing_as_off`` is set."""

TAKE_ABSENT_PLUGS_FOR_OFF = frozenset(
    {
        # Over SNMP 2c and 3 what does not exist is answered with success and no number.
        "fence_apc_snmp",
        "fence_emerson",
        "fence_ibmblade",
        "fence_intelmodular",
        "fence_ipdu",
        "fence_tripplite_snmp",
        # The daemon on the host says "off" of a machine that it does not know.
        "fence_virt",
        "fence_xvm",
        # It says itself that it cannot tell whether an image is defined.
        "fence_zvmip",
    }
)
"""All of them have a working ``list``."""

SWITCH_ONE_MACHINE = frozenset(
    {
        "fence_alom",
        "fence_amt",
        "fence_drac",
        "fence_idrac",
        "fence_ilo",
        "fence_ilo2",
        "fence_ilo3",
        "fence_ilo3_ssh",
        "fence_ilo4",
        "fence_ilo4_ssh",
        "fence_ilo5",
        "fence_ilo5_ssh",
        "fence_ilo_mp",
        "fence_ilo_ssh",
        "fence_imm",
        "fence_ipmilan",
        "fence_ipmilanplus",
        "fence_powerman",
        "fence_rcd_serial",
        "fence_redfish",
        "fence_rsa",
        "fence_rsb",
        "fence_vmware",
    }
)
"""They have no list: mostly their address is that of one machine's own board."""


def refuses_absent_plugs(agent: str) -> bool:
    """Return whether the *agent* (name or path) is known to fail for a missing plug."""
    return agent.rsplit("/", 1)[-1] in REFUSE_ABSENT_PLUGS


def is_known_power_agent(agent: str) -> bool:
    """Return whether the *agent* (name or path) is known to switch power, if by a watchdog."""
    known = REFUSE_ABSENT_PLUGS | TAKE_ABSENT_PLUGS_FOR_OFF | SWITCH_ONE_MACHINE
    return agent.rsplit("/", 1)[-1] in known


FENCE_DIRECTORIES = ("/usr/sbin",)
"""Where fence-agents installs (its configure option --sbindir)."""

_DAEMONS = frozenset({"fence_virtd", "fence_sanlockd"})

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")


def locate_fence_agent(name_or_path: object, directories: Sequence[str] = FENCE_DIRECTORIES) -> str:
    """Return the path of a fence agent given by name (``fence_ipmilan``) or absolute path.

    Raises InputError for a value that is neither, and AgentError with the places and the
    package to install when the agent is not there or not executable.
    """
    text = name_or_path if isinstance(name_or_path, str) else ""
    absolute = text.startswith("/") and "\0" not in text
    if not absolute and not _NAME.match(text):
        raise InputError(
            "agent", name_or_path, "a fence agent's name such as fence_ipmilan, or its whole path"
        )
    paths = [text] if absolute else [f"{one.rstrip('/')}/{text}" for one in directories]
    for path in paths:
        if os.path.isfile(path):  # noqa: PTH113
            if os.access(path, os.X_OK):
                return path
            raise AgentError(f"The fence agent {path} is not executable for this user.")
    raise AgentError(
        f"The fence agent {text} is not installed: searched {', '.join(paths)}. Install the"
        " package fence-agents (Debian) or fence-agents-all (EL), or give the agent's whole path."
    )


def installed_fence_agents(directories: Sequence[str] = FENCE_DIRECTORIES) -> tuple[str, ...]:
    """Return the paths of all executable fence agents in *directories*, sorted by name.

    Of two agents with one name the first directory's counts, as in ``locate_fence_agent``.
    """
    found: dict[str, str] = {}
    for directory in directories:
        try:
            names = os.listdir(directory)  # noqa: PTH208
        except OSError:
            continue
        for name in names:
            path = f"{directory.rstrip('/')}/{name}"
            if (
                name.startswith("fence_")
                and name not in _DAEMONS
                and os.path.isfile(path)  # noqa: PTH113
                and os.access(path, os.X_OK)
            ):
                found.setdefault(name, path)
    return tuple(found[name] for name in sorted(found))


def fence_environment() -> dict[str, str]:
    """Return all variables that a fence agent gets.

    Not PCMK_service: with it fencing.py switches its time limits off.  Agents may have their
    credentials in a file below HOME.
    """
    return {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LC_ALL": "C.UTF-8",
        "HOME": os.environ.get("HOME", "/root"),
    }
