# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options by which services, rules, nodes and the policy are declared, alone or together.

PRIVATE to the collection.  The modules ``service``, ``rule``, ``node_properties`` and
``cluster_policy`` document them.
"""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule

from ._module import Options, check_dict, check_rows, hide_agent_secrets

RESOURCE = {
    "name": {"type": "str", "required": True},
    "agent": {"type": "str", "required": True},
    "parameters": {"type": "dict", "default": {}},
    "secrets": {"type": "list", "elements": "str", "default": [], "no_log": False},
    "start_timeout": {"type": "float"},
    "stop_timeout": {"type": "float"},
    "monitor_timeout": {"type": "float"},
    "monitor_interval": {"type": "float"},
    "check_level": {"type": "int"},
}

SERVICE = Options(
    argument_spec={
        "name": {"type": "str", "required": True},
        "state": {
            "type": "str",
            "choices": ["started", "stopped", "absent"],
            "default": "started",
        },
        "resources": {"type": "list", "elements": "dict", "options": RESOURCE},
        "max_restart": {"type": "int"},
        "max_relocate": {"type": "int"},
        "backoff": {"type": "float"},
        "backoff_max": {"type": "float"},
        "failback": {"type": "bool"},
        "node": {"type": "str"},
        "cpus": {"type": "float"},
        "memory": {"type": "float"},
        "utilization": {"type": "dict"},
        "ignored": {"type": "bool"},
        "live_migration": {"type": "bool"},
        "after": {"type": "list", "elements": "str"},
        "fence_on_stop_failure": {"type": "bool"},
        "validate": {"type": "bool", "default": True},
    }
)
"""What can be declared of a service."""

RULE = Options(
    argument_spec={
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "services": {"type": "list", "elements": "str"},
        "nodes": {"type": "dict"},
        "strict": {"type": "bool", "default": False},
        "affinity": {"type": "str", "choices": ["apart", "together"]},
        "attribute": {"type": "str"},
        "locations": {"type": "int"},
    },
    required_if=[
        ("state", "present", ["services"]),
        ("state", "present", ["nodes", "affinity"], True),
    ],
    mutually_exclusive=[("nodes", "affinity"), ("nodes", "attribute")],
)
"""What can be declared of a rule."""

NODE_PROPERTIES = Options(
    argument_spec={
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "capacity": {"type": "dict"},
        "safety_capacity": {"type": "dict"},
        "attributes": {"type": "dict"},
    }
)
"""What can be declared of a node."""

POLICY = Options(
    argument_spec={
        "shutdown": {
            "type": "str",
            "choices": ["conditional", "freeze", "failover", "migrate"],
        },
        "shutdown_timeout": {"type": "float"},
        "placement": {"type": "str", "choices": ["count", "load", "score"]},
        "rebalance_on_start": {"type": "bool"},
        "rebalance": {"type": "bool"},
        "rebalance_threshold": {"type": "float"},
        "rebalance_hold": {"type": "int"},
        "rebalance_margin": {"type": "float"},
        "max_workers": {"type": "int"},
    }
)
"""What can be declared of the policy of a cluster."""

CONFIGURATION = Options(
    argument_spec={
        "services": {"type": "list", "elements": "dict"},
        "rules": {"type": "list", "elements": "dict"},
        "node_properties": {"type": "list", "elements": "dict"},
        "policy": {"type": "dict"},
    }
)
"""All that can be declared together, each as the options of its own module."""


def check_declarations(module: AnsibleModule) -> None:
    """Take what ``CONFIGURATION`` has as the modules for one of these take it.

    Passwords in services become secrets of the task.
    """
    check_rows(module, "services", SERVICE)
    check_rows(module, "rules", RULE)
    check_rows(module, "node_properties", NODE_PROPERTIES)
    check_dict(module, "policy", POLICY)
    for service in module.params["services"] or ():
        for row in service["resources"] or ():
            hide_agent_secrets(module, row["parameters"], row["secrets"])
