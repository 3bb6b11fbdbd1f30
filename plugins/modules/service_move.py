#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: service_move
short_description: Move a service to another node
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Asks the manager once to move a service to a node. A service that is already there, or on its
    way, is left alone.
  - Services that a rule keeps together with it move along.
  - A move against the rules is refused. So is a move that a rule would undo at once, because the
    service prefers another node and its O(holdfast.ha.service#module:failback) is true; see
    O(force) and O(pin). Check mode and C(holdfast what-if --moves) refuse the same.
  - A stopped service is not started; its next start is on that node.
extends_documentation_fragment:
  - holdfast.ha.attributes
  - holdfast.ha.attributes.node_group
  - holdfast.ha.node
  - holdfast.ha.waiting.moves
options:
  name:
    description:
      - The id of the service.
    type: str
    required: true
  node:
    description:
      - The node to which it is moved. Only O(pin=false) does without.
    type: str
  force:
    description:
      - Move it even if a rule would move it away from the node at once.
    type: bool
    default: false
  pin:
    description:
      - With V(true) the service stays on the node, whatever other nodes its rules prefer, until it
        is unpinned. If the node dies or is drained it runs elsewhere, and it returns if its
        O(holdfast.ha.service#module:failback) is true. Services that a rule keeps together with it
        are pinned with it. A node that a strict rule does not allow is refused.
      - With V(false) it is unpinned. Without O(node) it is not moved, and the task does not wait
        for what its rules make of it.
      - By default a pin stays as it is.
      - A pin is no part of the declaration of the service. The status shows it.
    type: bool
  live:
    description:
      - Move it while it runs, where O(holdfast.ha.service#module:live_migration) is true.
      - With V(false) it is stopped and started again in any case.
    type: bool
    default: true
  wait:
    description:
      - Wait until it runs there, and fail at once with the reason if it does not move.
      - A service that is on its way to another node is moved once it has arrived; without this
        option its move is refused.
    type: bool
    default: true
seealso:
  - module: holdfast.ha.service
  - module: holdfast.ha.node_maintenance
"""

EXAMPLES = r"""
- name: Move a virtual machine while it runs
  holdfast.ha.service_move:
    name: vm:100
    node: node2

- name: Stop a database and start it on another node
  holdfast.ha.service_move:
    name: database
    node: node2
    live: false

- name: Keep a database on a node although a rule prefers another one
  holdfast.ha.service_move:
    name: database
    node: node2
    pin: true

- name: Let its rules decide again
  holdfast.ha.service_move:
    name: database
    pin: false
"""

RETURN = r"""
service:
  description: The id of the service.
  returned: success
  type: str
  sample: vm:100
node:
  description: The node to which it was moved.
  returned: success
  type: str
  sample: node2
pinned:
  description: The node to which it is pinned now, or empty.
  returned: success
  type: str
  sample: ""
status:
  description: State, node and reason of the service at the end of the wait.
  returned: when O(wait=true) and not in check mode
  type: dict
  sample:
    state: started
    node: node2
    reason: requested by the operator
version:
  description: The version of the desired configuration.
  returned: success
  type: int
  sample: 14
"""

from ..module_utils._holdfast.operator.operations.move import declare_move
from ..module_utils._module import NODE_OPTIONS, run

OPTIONS = NODE_OPTIONS.merge(
    name={"type": "str", "required": True},
    node={"type": "str"},
    force={"type": "bool", "default": False},
    pin={"type": "bool"},
    live={"type": "bool", "default": True},
    wait={"type": "bool", "default": True},
    timeout={"type": "float", "default": 120},
)


def main() -> None:
    """Run the module."""
    run(OPTIONS, declare_move)


if __name__ == "__main__":
    main()
