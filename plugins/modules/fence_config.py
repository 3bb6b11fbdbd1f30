#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fence_config
short_description: Write how the nodes of a cluster are switched off
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Checks the fence configuration as a whole and writes it, whole or not at all, into a file
    that only its owner can read.
  - Every node needs the same configuration, since any of them may have to fence any other.
extends_documentation_fragment:
  - holdfast.ha.attributes
  - holdfast.ha.attributes.no_group
options:
  path:
    description:
      - Absolute path of the file.
    type: path
    default: /etc/holdfast/fence.json
  devices:
    description:
      - The fence devices by name. Each has C(agent), the name or absolute path of a fence agent,
        and C(parameters) for it.
      - An agent that has the parameter C(nodename) is sent the name of the node, unless the
        parameters set it.
      - Passwords among the parameters appear in no log, result or diff. In place of a secret such
        as C(password), C(password_file) is a file on the node that holds it and that only its
        owner can read, and C(password_script) a program there that prints it.
      - C(timeout) is the seconds after which switching and its proof have failed together, 20
        unless given, and C(retries) how often a command that failed is tried again, once unless
        given. After a timeout nothing is tried again. A fence that the cluster sends ends after
        ten minutes, whatever its devices have.
      - C(actions) has a C(timeout) and C(retries) of its own for single actions, such as
        C(status).
      - C(host_map) is for a device with many plugs. It maps each node to its plug, or a list of
        plugs where a node has several, and can be written as V(n1:1;n2:2,3) too. A range such as
        V(node[01:16]) stands for all of its names, and V([1:16]) in its plug counts along.
      - C(assumed_after) is for agents that have a watchdog on the node act, such as
        C(fence_sbd). It is the seconds after which the watchdog has acted for certain. Without
        it, an off that is only assumed is never proof.
    type: dict
    required: true
  nodes:
    description:
      - For each node its C(levels). A level is a list of steps with C(device) and C(plug), which
        all have to succeed; the next level is tried when one fails. Without C(plug) a step takes
        the plugs of the node from the host map of the device, if it has one.
      - C(delay) is the seconds before the node is switched off, and C(random_delay) up to how
        many more are drawn by lot. Where two nodes may fence each other, the one without delay is
        first.
    type: dict
    required: true
seealso:
  - module: holdfast.ha.fence
  - module: holdfast.ha.fence_info
"""

EXAMPLES = r"""
- name: Fence by management boards, and by two outlets each when a board is dead
  holdfast.ha.fence_config:
    devices:
      board1:
        agent: fence_ipmilan
        parameters:
          ip: 192.0.2.101
          username: fence
          password: "{{ vault_fence_password }}"
        actions:
          status:
            timeout: 5
      board2:
        agent: fence_ipmilan
        parameters:
          ip: 192.0.2.102
          username: fence
          password_file: /etc/holdfast/board2.secret
      outlets:
        agent: fence_apc_snmp
        parameters:
          ip: 192.0.2.100
        timeout: 30
        host_map:
          node1: [1, 2]
          node2: [3, 4]
    nodes:
      node1:
        levels:
          - - device: board1
          - - device: outlets
      node2:
        delay: 5
        levels:
          - - device: board2
          - - device: outlets
"""

RETURN = r"""
path:
  description: The file.
  returned: success
  type: str
  sample: /etc/holdfast/fence.json
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._holdfast.operator.operations.node_files import declare_fence
from ..module_utils._module import Options, hide_agent_secrets, run

OPTIONS = Options(
    argument_spec={
        "path": {"type": "path", "default": "/etc/holdfast/fence.json"},
        "devices": {"type": "dict", "required": True},
        "nodes": {"type": "dict", "required": True},
    }
)


def _hide(module: AnsibleModule) -> None:
    for device in module.params["devices"].values():
        if isinstance(device, dict):
            hide_agent_secrets(module, device.get("parameters"))


def main() -> None:
    """Run the module."""
    run(OPTIONS, declare_fence, prepare=_hide)


if __name__ == "__main__":
    main()
