#!/usr/bin/python
# Copyright: 2026 The holdfast authors
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
  - Every node has the same one, since any of them may have to switch off any other.
extends_documentation_fragment:
  - holdfast.ha.attributes
options:
  path:
    description:
      - Absolute path of the file.
    type: path
    default: /etc/holdfast/fence.json
  devices:
    description:
      - The fence devices by name. Each has C(agent), the name or absolute path of a fence agent,
        C(parameters) for it, and C(timeout), the seconds after which a call has failed.
      - Passwords among the parameters appear in no log, result or diff.
    type: dict
    required: true
  nodes:
    description:
      - For each node its C(levels). A level is a list of steps with C(device) and C(plug), which
        all have to succeed; the next level is tried when one fails.
    type: dict
    required: true
seealso:
  - module: holdfast.ha.fence
"""

EXAMPLES = r"""
- name: Fence by management boards, and by an outlet when a board is dead
  holdfast.ha.fence_config:
    devices:
      board1:
        agent: fence_ipmilan
        parameters:
          ip: 192.0.2.101
          username: fence
          password: "{{ vault_fence_password }}"
      outlets:
        agent: fence_apc_snmp
        parameters:
          ip: 192.0.2.100
    nodes:
      node1:
        levels:
          - - device: board1
          - - device: outlets
              plug: "1"
"""

RETURN = r"""
path:
  description: The file.
  returned: success
  type: str
  sample: /etc/holdfast/fence.json
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._holdfast.node.declare_fence import declare_fence
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
