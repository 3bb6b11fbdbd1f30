#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: failover_simulation
short_description: Simulate that nodes die, or are drained
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Reads the current state of the cluster from its storage, and simulates the question in virtual
    time. The simulated managers decide as the real ones would. The answer has each step with its
    time and its reason.
  - Changes nothing, on any node and in any mode. No daemon and no fence device is asked.
  - The durations of agents and fence devices are those measured last in this cluster, or assumed to
    be 2 and 3 seconds. All nodes that the manager does not know to be off are assumed to be
    healthy.
extends_documentation_fragment:
  - holdfast.ha.attributes.info_module
  - holdfast.ha.attributes.node_group
  - holdfast.ha.node
attributes:
  check_mode:
    support: full
    description: The cluster is changed in no mode, and the answer is the same in check mode.
options:
  dies:
    description:
      - The nodes that lose their power, all at once.
    type: list
    elements: str
    default: []
  loses_storage:
    description:
      - The nodes that lose their way to the shared storage.
    type: list
    elements: str
    default: []
  loses_network:
    description:
      - The nodes that lose their network.
    type: list
    elements: str
    default: []
  drained:
    description:
      - The nodes that are put into maintenance.
    type: list
    elements: str
    default: []
  moves:
    description:
      - The services that are moved, each with the node to which. A move that
        M(holdfast.ha.service_move) would refuse fails here with the same reason.
    type: dict
  rules:
    description:
      - Rules that are added to the configuration at the same time, or that replace those of the
        same name, as M(holdfast.ha.rule) would.
    type: list
    elements: dict
    suboptions:
      name:
        description:
          - Name of the rule.
        type: str
        required: true
      services:
        description:
          - The ids of the services that the rule is about.
        type: list
        elements: str
        required: true
      nodes:
        description:
          - The nodes on which the services run, each with a priority.
        type: dict
      strict:
        description:
          - Whether the services run on no other node.
        type: bool
        default: false
      affinity:
        description:
          - Whether the services are kept on different nodes or on the same one.
        type: str
        choices:
          - apart
          - together
  within:
    description:
      - How many seconds to look ahead.
    type: float
    default: 600
  boot_seconds:
    description:
      - How many seconds a node takes to come up after it was switched on.
    type: float
    default: 60
seealso:
  - module: holdfast.ha.cluster_info
  - module: holdfast.ha.capacity_info
"""

EXAMPLES = r"""
- name: What happens if node n3 dies?
  holdfast.ha.failover_simulation:
    dies: [n3]
  register: simulated

- name: Stop here if a service would stay down
  ansible.builtin.assert:
    that: simulated.not_running == []

- name: What happens if n1 dies while n2 is in maintenance?
  holdfast.ha.failover_simulation:
    drained: [n2]
    dies: [n1]

- name: Which services would move if these two were kept apart?
  holdfast.ha.failover_simulation:
    rules:
      - name: databases
        services: [db1, db2]
        affinity: apart
"""

RETURN = r"""
steps:
  description:
    - What would happen, in its order. Each step has C(after), the seconds from now, what
      it is, the node and service that it is about, and the reason in C(text).
  returned: success
  type: list
  elements: dict
  sample:
    - after: 3.4
      kind: fence
      node: n3
      service: ""
      text: no heartbeat for 3.2 s and no answer on the network; to be fenced for web
services:
  description:
    - Of each service the node on which it runs before and after, its state with the reason, and for
      how many seconds it would be down.
  returned: success
  type: dict
  sample:
    web: {before: n3, after: n1, state: started, reason: recovered from n3, down: 8.2}
nodes:
  description: The state of each node at the end.
  returned: success
  type: dict
  sample: {n1: online, n2: online, n3: "off"}
manager:
  description: The node that would have the manager lease at the end.
  returned: success
  type: str
  sample: n1
not_running:
  description: The services that run now and would not at the end.
  returned: success
  type: list
  elements: str
  sample: []
ended:
  description: Whether nothing more would happen after the last step.
  returned: success
  type: bool
  sample: true
seconds:
  description: When the last step would be, in seconds from now.
  returned: success
  type: float
  sample: 68.1
text:
  description: The same as lines of text for people.
  returned: success
  type: list
  elements: str
  sample: []
"""

from ..module_utils._holdfast.operator.forecast.what_if import simulate_failover
from ..module_utils._module import NODE_OPTIONS, run

OPTIONS = NODE_OPTIONS.merge(
    dies={"type": "list", "elements": "str", "default": []},
    loses_storage={"type": "list", "elements": "str", "default": []},
    loses_network={"type": "list", "elements": "str", "default": []},
    drained={"type": "list", "elements": "str", "default": []},
    moves={"type": "dict"},
    rules={
        "type": "list",
        "elements": "dict",
        "options": {
            "name": {"type": "str", "required": True},
            "services": {"type": "list", "elements": "str", "required": True},
            "nodes": {"type": "dict"},
            "strict": {"type": "bool", "default": False},
            "affinity": {"type": "str", "choices": ["apart", "together"]},
        },
    },
    within={"type": "float", "default": 600},
    boot_seconds={"type": "float", "default": 60},
)


def main() -> None:
    """Run the module."""
    run(OPTIONS, simulate_failover)


if __name__ == "__main__":
    main()
