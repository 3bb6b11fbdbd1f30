#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: outage_info
short_description: Which nodes can be out of service together, and in which order
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Puts nodes into groups that can be out of service one after the other, for example for an
    update.
  - A group can be out if every service on its nodes has another node to run on by the manager's own
    choice, with rules and capacity, and if any other node could still fail meanwhile (N+1).
  - Problems that a node's loss would cause already now do not count against a group.
  - If a node would get services that declare more memory than it has, or more than 4 CPUs for each
    of its own, there is a warning. Only O(holdfast.ha.cluster_policy#module:placement=score)
    refuses such a node.
  - Each group is judged on the cluster as it is now. Ask again for a group before its turn.
extends_documentation_fragment:
  - holdfast.ha.attributes.info_module
  - holdfast.ha.attributes.node_group
  - holdfast.ha.node
options:
  nodes:
    description:
      - The nodes that are to be out of service once; all of the cluster if not given.
    type: list
    elements: str
  at_once:
    description:
      - Maximum number of nodes that are out together.
    type: int
    default: 1
  redundant:
    description:
      - Whether N+1 is to hold meanwhile. A cluster of two nodes cannot keep it.
    type: bool
    default: true
  owner:
    description:
      - Who drains the nodes for this. A node that is in a maintenance of this owner already comes
        first, and counts as in use again for the nodes after it.
    type: str
seealso:
  - module: holdfast.ha.evacuate
  - module: holdfast.ha.capacity_info
"""

EXAMPLES = r"""
- name: In which order can the nodes be updated, two at a time?
  holdfast.ha.outage_info:
    at_once: 2
  register: outage

- name: Can these two be out together?
  holdfast.ha.outage_info:
    nodes: [n1, n2]
    at_once: 2
  register: outage
  failed_when: outage is failed or outage.sizes != [2]
"""

RETURN = r"""
groups:
  description:
    - The groups in their order. The node of the manager comes last, so that the manager changes
      once.
  returned: success
  type: list
  elements: dict
  contains:
    nodes:
      description: The nodes that can be out together.
      type: list
      elements: str
    moves:
      description: What leaves them before, from where to where and why there.
      type: list
      elements: dict
  sample:
    - nodes: [n2]
      moves:
        - {service: web, source: n2, target: n3, reason: n2 is in maintenance; the fewest services}
nodes:
  description: The nodes of all groups in their order.
  returned: success
  type: list
  elements: str
  sample: [n2, n3, n1]
sizes:
  description: How many nodes are in each group.
  returned: success
  type: list
  elements: int
  sample: [1, 1, 1]
blocked:
  description: Why each node that is in no group cannot be out.
  returned: success
  type: dict
  sample: {}
"""

from ..module_utils._holdfast.operator.forecast.outages import outage_info
from ..module_utils._module import NODE_OPTIONS, run

OPTIONS = NODE_OPTIONS.merge(
    nodes={"type": "list", "elements": "str"},
    at_once={"type": "int", "default": 1},
    redundant={"type": "bool", "default": True},
    owner={"type": "str"},
)


def main() -> None:
    """Run the module."""
    run(OPTIONS, outage_info)


if __name__ == "__main__":
    main()
