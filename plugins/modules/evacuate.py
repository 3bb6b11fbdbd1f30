#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: evacuate
short_description: Move everything off nodes, once
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Moves each service on the nodes to the best node for it.
  - Checks first where each service would run. If a service has no other node to run on, nothing is
    moved, and the task fails and names the service with the reason.
  - The nodes stay active, so a rule may bring services back. To keep a node empty use
    M(holdfast.ha.node_maintenance); in check mode this module reports whether that would succeed.
  - If a node would get services that declare more memory than it has, or more than 4 CPUs for each
    of its own, there is a warning. Only O(holdfast.ha.cluster_policy#module:placement=score)
    refuses such a node.
  - While the cluster is paused or disarmed nothing can be moved, and the task fails, except in
    check mode.
extends_documentation_fragment:
  - holdfast.ha.attributes
  - holdfast.ha.attributes.node_group
  - holdfast.ha.node
  - holdfast.ha.waiting.moves
options:
  nodes:
    description:
      - The nodes to empty; by default the one on which the module runs.
    type: list
    elements: str
    aliases:
      - node
  partial:
    description:
      - Move what can be moved when not everything can.
    type: bool
    default: false
  live:
    description:
      - Move services while they run, where they are declared with
        O(holdfast.ha.service#module:live_migration) and can. Otherwise they are stopped and
        started.
    type: bool
    default: true
  wait:
    description:
      - Wait until everything that was to be moved has left the nodes.
    type: bool
    default: true
seealso:
  - module: holdfast.ha.node_maintenance
  - module: holdfast.ha.place_info
"""

EXAMPLES = r"""
- name: Where would everything on this node go?
  holdfast.ha.evacuate:
  check_mode: true
  register: plan

- name: Empty two nodes of a rack at once
  holdfast.ha.evacuate:
    nodes: [n3, n4]
"""

RETURN = r"""
nodes:
  description: The nodes.
  returned: success
  type: list
  elements: str
  sample: [n3]
moves:
  description: What was moved from where to where, in this order, and why there.
  returned: success
  type: list
  elements: dict
  contains:
    service:
      description: The service.
      type: str
    source:
      description: The node that it leaves.
      type: str
    target:
      description: The node that it was to go to.
      type: str
    reason:
      description: Why it is that node.
      type: str
  sample:
    - {service: web, source: n3, target: n1, reason: n3 is in maintenance; the fewest services}
blocked:
  description: Why each service that stayed cannot be moved. Only with O(partial=true).
  returned: success
  type: dict
  sample: {}
then:
  description:
    - What each node that stays in use would carry. The number of its services, the CPUs and MiB of
      memory that they declare, and those that the node has, V(null) if the node does not report it.
  returned: success
  type: dict
  sample:
    n1: {services: 3, cpus: 4.0, memory: 6144.0, cpus_there: 8.0, memory_there: 15906.0}
placed:
  description: Where each moved service is at the end of the wait, or was asked to go.
  returned: success
  type: dict
  sample: {web: n1}
"""

from ..module_utils._holdfast.operator.operations.move import evacuate
from ..module_utils._module import NODE_OPTIONS, run

OPTIONS = NODE_OPTIONS.merge(
    nodes={"type": "list", "elements": "str", "aliases": ["node"]},
    partial={"type": "bool", "default": False},
    live={"type": "bool", "default": True},
    wait={"type": "bool", "default": True},
    timeout={"type": "float", "default": 120},
)


def main() -> None:
    """Run the module."""
    run(OPTIONS, evacuate)


if __name__ == "__main__":
    main()
