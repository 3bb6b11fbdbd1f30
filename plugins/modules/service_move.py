#!/usr/bin/python
# Copyright: 2026 The holdfast authors
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
  - Asks the manager once to move a service to a node. A service that is there, or on its way, is
    left alone.
  - Services that a rule keeps together with it go along.
  - What the rules forbid is refused. A service that rather runs elsewhere by a rule, and whose
    O(holdfast.ha.service#module:failback) is true, goes back there by itself.
  - A stopped service is not started; it starts on that node next.
extends_documentation_fragment:
  - holdfast.ha.attributes
  - holdfast.ha.node
options:
  name:
    description:
      - The id of the service.
    type: str
    required: true
  node:
    description:
      - The node to which it is moved.
    type: str
    required: true
  live:
    description:
      - Move it while it runs, where O(holdfast.ha.service#module:live_migration) is true.
      - With V(false) it is stopped and started again in any case.
    type: bool
    default: true
  wait:
    description:
      - Wait until it runs there, and fail at once with the reason when it does not go.
      - A service that is just on its way to another node is moved once it has arrived; without
        this its move is refused.
    type: bool
    default: true
  timeout:
    description:
      - Seconds to wait with O(wait=true).
    type: float
    default: 120
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
status:
  description: State, node and reason of the service at the end of the wait.
  returned: when O(wait=true) and not in check mode
  type: dict
  sample:
    state: started
    node: node2
    reason: asked for by the operator
version:
  description: The version of the wanted configuration.
  returned: success
  type: int
  sample: 14
"""

from ..module_utils._holdfast.operator.operations.move import declare_move
from ..module_utils._module import NODE_OPTIONS, run

OPTIONS = NODE_OPTIONS.merge(
    name={"type": "str", "required": True},
    node={"type": "str", "required": True},
    live={"type": "bool", "default": True},
    wait={"type": "bool", "default": True},
    timeout={"type": "float", "default": 120},
)


def main() -> None:
    """Run the module."""
    run(OPTIONS, declare_move)


if __name__ == "__main__":
    main()
