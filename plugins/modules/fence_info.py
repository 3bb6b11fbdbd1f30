#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fence_info
short_description: Show what a fence agent can do, which agents are installed, and how nodes stand
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Reads the metadata of a fence agent, its parameters, actions, and whether its answer is proof.
  - Without an agent and without a configuration, lists all installed fence agents.
  - With a fence configuration, shows how each node is fenced, and on request whether its
    devices report that it is on.
  - Changes nothing. No device is asked anything but its status, and that only with O(status).
extends_documentation_fragment:
  - holdfast.ha.attributes.info_module
  - holdfast.ha.attributes.no_group
  - holdfast.ha.fence_agent
options:
  config:
    description: The JSON file with the fence devices and the levels of each node.
    type: path
  nodes:
    description: The nodes in O(config) to report on. All of them when this is left out.
    type: list
    elements: str
  status:
    description: Whether the devices of the nodes in O(config) are asked for their status.
    type: bool
    default: false
seealso:
  - module: holdfast.ha.fence
  - module: holdfast.ha.fence_config
"""

EXAMPLES = r"""
- name: What does fence_ipmilan take?
  holdfast.ha.fence_info:
    agent: fence_ipmilan
  register: ipmilan

- name: Which fence agents prove that a machine is off?
  holdfast.ha.fence_info:
  register: installed

- name: Show them
  ansible.builtin.debug:
    msg: "{{ installed.agents | dict2items | selectattr('value.evidence', 'defined')
      | selectattr('value.evidence', 'eq', 'device-verified') | map(attribute='key') }}"

- name: Do the fence devices of all nodes answer?
  holdfast.ha.fence_info:
    config: /etc/holdfast/fence.json
    status: true
"""

RETURN = r"""
agent:
  description: The agent's metadata, and how it classifies.
  returned: with O(agent)
  type: dict
  contains:
    path:
      description: Where it is.
      type: str
    shortdesc:
      description: Its description in a few words.
      type: str
    longdesc:
      description: Its description in full, with its authors' warnings.
      type: str
    kind:
      description:
        - V(power), it switches power; V(fabric), it cuts access to storage or network; V(watchdog),
          it has a watchdog on the node act; V(gate), it only asks; V(stand-in), it notes something
          down.
      type: str
    evidence:
      description:
        - What its off is worth at best. V(device-verified), V(assumed), V(gate) or V(none).
      type: str
    needs:
      description: What must be true for its off to be true.
      type: str
    unfences:
      description: Whether a node that joins has to be given its access back.
      type: bool
    on_target:
      description: Whether only the joining node itself can do that.
      type: bool
    host_argument:
      description: The parameter that names the machine. Empty for an agent without plugs.
      type: str
    parameters:
      description:
        - Each parameter with C(type), C(required), C(default), C(deprecated), C(obsoletes),
          C(secret), C(options) and C(shortdesc).
      type: dict
    alias_pairs:
      description: Pairs of a parameter's new and old name. Either satisfies a requirement.
      type: list
      elements: list
    actions:
      description: Each action with C(name), C(automatic) and C(on_target).
      type: list
      elements: dict
    advice:
      description: What to know before choosing it.
      type: list
      elements: str
agents:
  description:
    - Each installed fence agent by name, with C(path), C(shortdesc), C(kind), C(evidence),
      C(needs), C(unfences) and C(on_target), or with C(path) and C(error) when it has no metadata.
  returned: without O(agent) and O(config)
  type: dict
  contains: {}
  sample:
    fence_ipmilan:
      path: /usr/sbin/fence_ipmilan
      shortdesc: Fence agent for IPMI
      kind: power
      evidence: device-verified
      needs: the device itself reports that the plug is off
      unfences: false
      on_target: false
nodes:
  description:
    - Each node with C(levels), C(delay) and C(random_delay), and with O(status) in C(status) what
      M(holdfast.ha.fence) returns for the action V(status). No parameter of a device is shown.
  returned: with O(config)
  type: dict
  contains: {}
  sample:
    n1:
      delay: 0.0
      random_delay: 0.0
      levels:
        - - device: bmc-n1
            plug:
            agent: fence_ipmilan
            kind: power
            evidence: device-verified
"""

from collections.abc import Mapping
from typing import Any

from ..module_utils._holdfast.fence.describe import (
    describe_fence_agent,
    describe_fence_configuration,
    list_fence_agents,
)
from ..module_utils._holdfast.fence.topology import load_fence_configuration
from ..module_utils._module import Options, Result, run

OPTIONS = Options(
    argument_spec={
        "agent": {"type": "str"},
        "config": {"type": "path"},
        "nodes": {"type": "list", "elements": "str"},
        "status": {"type": "bool", "default": False},
    },
    required_if=[["status", True, ["config"]]],
    mutually_exclusive=[["agent", "config"]],
    required_by={"nodes": ["config"]},
)


def act(options: Mapping[str, Any], check: bool) -> Result:
    if options["agent"] is not None:
        return Result(values={"agent": describe_fence_agent(options["agent"])})
    if options["config"] is None:
        return Result(values={"agents": list_fence_agents()})
    configuration = load_fence_configuration(options["config"])
    nodes = describe_fence_configuration(configuration, options["nodes"], options["status"])
    return Result(values={"nodes": nodes})


def main() -> None:
    run(OPTIONS, act)


if __name__ == "__main__":
    main()
