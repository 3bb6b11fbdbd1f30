#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ocf_info
short_description: List the OCF resource agents of a node, or show the metadata of one
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Without O(agent), lists the resource agents that are installed on this node.
  - With O(agent), asks that agent for its metadata and returns it as data, that is its parameters
    with their types and defaults, and its actions with the times that it advises.
  - Text around the metadata is ignored, and so are irregularities, such as a default that is not of
    its own type.
extends_documentation_fragment:
  - holdfast.ha.attributes.info_module
  - holdfast.ha.attributes.no_group
  - holdfast.ha.resource_agents
options:
  agent:
    description: The resource agent, such as V(ocf:heartbeat:IPaddr2).
    type: str
seealso:
  - module: holdfast.ha.ocf_action
"""

EXAMPLES = r"""
- name: Which resource agents are there?
  holdfast.ha.ocf_info:
  register: installed

- name: What does an address need?
  holdfast.ha.ocf_info:
    agent: ocf:heartbeat:IPaddr2
  register: address

- name: Show its required parameters
  ansible.builtin.debug:
    msg: "{{ address.metadata.parameters | selectattr('required') | map(attribute='name') }}"
"""

RETURN = r"""
agents:
  description: The installed resource agents by name.
  returned: without O(agent)
  type: list
  elements: dict
  contains:
    name:
      description: The name as other modules want it.
      type: str
    standard:
      description: Always V(ocf).
      type: str
    provider:
      description: Who made it.
      type: str
    type:
      description: What it is for.
      type: str
    path:
      description: Its file.
      type: str
  sample:
    - name: ocf:heartbeat:IPaddr2
      standard: ocf
      provider: heartbeat
      type: IPaddr2
      path: /usr/lib/ocf/resource.d/heartbeat/IPaddr2
path:
  description: The agent's file.
  returned: with O(agent)
  type: str
  sample: /usr/lib/ocf/resource.d/heartbeat/IPaddr2
metadata:
  description: The agent's metadata.
  returned: with O(agent)
  type: dict
  contains:
    name:
      description: Its own name for itself.
      type: str
    version:
      description: The version of the OCF text that it follows, or its own; agents differ in that.
      type: str
    shortdesc:
      description: What it is for, in one line.
      type: str
    longdesc:
      description: What it is for, in full.
      type: str
    parameters:
      description: Its parameters, in its own order.
      type: list
      elements: dict
      contains:
        name:
          description: The parameter's name.
          type: str
        type:
          description: V(string), V(boolean), V(integer), V(second) or V(select).
          type: str
        required:
          description: Whether it must be given, unless it has a default.
          type: bool
        default:
          description: The default as written, or V(null).
          type: str
        unique_group:
          description:
            - The values of all parameters of one group together must differ between the resources
              of the agent. Empty for one that need not be unique.
          type: str
        reloadable:
          description: Whether C(reload-agent) applies a change of it.
          type: bool
        deprecated:
          description: Whether it should no longer be used.
          type: bool
        replaced_with:
          description: What to use in its place.
          type: list
          elements: str
        shortdesc:
          description: What it is, in one line.
          type: str
        longdesc:
          description: What it is, in full.
          type: str
        options:
          description: The values to choose from, for the type V(select).
          type: list
          elements: str
    actions:
      description:
        - Its actions, in its own order. One may be there several times, such as C(monitor) for
          several check levels or roles.
      type: list
      elements: dict
      contains:
        name:
          description: The action's name.
          type: str
        timeout:
          description: Seconds that the agent advises at least, or V(null).
          type: float
        interval:
          description: Seconds between two checks that it advises, or V(null).
          type: float
        start_delay:
          description: Seconds to wait after a start before the first check, or V(null).
          type: float
        depth:
          description: The check level.
          type: int
        role:
          description: The role in which a C(monitor) is for it, as written, or empty.
          type: str
    api_version:
      description:
        - The version of the OCF resource agent API that it states, such as V(1.1); empty if it
          states none. An agent with another major version than 1 cannot be used.
      type: str
    unique_groups:
      description: The names of the parameters in each group that must be unique.
      type: dict
  sample:
    name: Dummy
    version: "1.0"
    shortdesc: Example stateless resource agent
    longdesc: It keeps track of whether it is running.
    parameters:
      - name: state
        type: string
        required: false
        default: /run/resource-agents/Dummy-Dummy.state
        unique_group: state
        reloadable: false
        deprecated: false
        replaced_with: []
        shortdesc: State file
        longdesc: Where to keep the state.
        options: []
    actions:
      - name: start
        timeout: 20.0
        interval: null
        start_delay: null
        depth: 0
        role: ''
    api_version: "1.0"
    unique_groups:
      state:
        - state
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ..module_utils._holdfast.ocf.agent import installed_agents, locate, parse_agent
from ..module_utils._holdfast.ocf.metadata import load_metadata
from ..module_utils._module import RESOURCE_AGENTS, Result, run

OPTIONS = RESOURCE_AGENTS.merge(agent={"type": "str"})


def look(options: Mapping[str, Any], check: bool) -> Result:
    directories = options["agent_directories"] or [options["ocf_root"]]
    if options["agent"] is None:
        found = installed_agents(directories)
        agents = [{"name": str(name), **asdict(name), "path": found[name]} for name in found]
        return Result(values={"agents": agents})
    name = parse_agent(options["agent"])
    path = locate(name, directories)
    metadata = load_metadata(path, agent=name, ocf_root=options["ocf_root"])
    said = {**asdict(metadata), "unique_groups": metadata.unique_groups()}
    return Result(values={"path": path, "metadata": said})


def main() -> None:
    run(OPTIONS, look)


if __name__ == "__main__":
    main()
