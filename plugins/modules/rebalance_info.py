#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rebalance_info
short_description: Plan how the load of services would be balanced, step by step
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Plans the moves that the manager itself would make to balance the load, one after the other,
    until no move is worth it. Rules and capacity are respected; services that are kept together
    move together. Where no single move is worth it, two nodes may exchange services.
  - What the load is, and how much a move has to gain, is set by M(holdfast.ha.cluster_policy).
  - Nothing is moved. M(holdfast.ha.service_move) makes a move, unless the cluster is paused or
    disarmed.
extends_documentation_fragment:
  - holdfast.ha.attributes.info_module
  - holdfast.ha.attributes.node_group
  - holdfast.ha.node
options:
  nodes:
    description:
      - The nodes among which services may move; all of the cluster if not given.
    type: list
    elements: str
  threshold:
    description:
      - The imbalance above which a move is planned, as a coefficient of variation.
      - By default that of the policy, O(holdfast.ha.cluster_policy#module:rebalance_threshold).
    type: float
  most:
    description:
      - Plan at most this many steps. V(-1) is no limit.
    type: int
    default: -1
seealso:
  - module: holdfast.ha.cluster_policy
  - module: holdfast.ha.service_move
  - module: holdfast.ha.balance
"""

EXAMPLES = r"""
- name: What would be moved?
  holdfast.ha.rebalance_info:
    threshold: 0.1
  register: plan
"""

RETURN = r"""
nodes:
  description: The nodes that were looked at.
  returned: success
  type: list
  elements: str
  sample: [n1, n2, n3]
steps:
  description: The steps in their order.
  returned: success
  type: list
  elements: dict
  contains:
    services:
      description: The services that move, several if they are kept together.
      type: list
      elements: str
    source:
      description: The node that they leave.
      type: str
    target:
      description: The node that they go to.
      type: str
    imbalance:
      description: The imbalance that is left after the step.
      type: float
    moved_mib:
      description: The memory that the services declare, in MiB.
      type: float
    gain_per_gib:
      description:
        - By how much the imbalance falls for each GiB of memory that is moved; V(null) if the
          services declare no memory.
      type: float
    exchange:
      description:
        - Whether the step is only worth it together with the next one, which goes the other way.
          The gain is that of both.
      type: bool
  sample:
    - services: [web]
      source: n1
      target: n3
      imbalance: 0.0
      moved_mib: 4096.0
      gain_per_gib: 0.205
      exchange: false
imbalance_before:
  description: The imbalance as it is.
  returned: success
  type: float
  sample: 0.82
imbalance_after:
  description: The imbalance after all steps.
  returned: success
  type: float
  sample: 0.0
moved_mib:
  description: The memory that all steps move, as services declare it, in MiB.
  returned: success
  type: float
  sample: 4096.0
gain_per_gib:
  description:
    - By how much the imbalance falls for each GiB of memory that is moved; V(null) if no service
      that moves declares memory.
  returned: success
  type: float
  sample: 0.205
reason:
  description:
    - Why nothing would be moved now, such as that the cluster is paused or disarmed, or that no
      move is worth it. Empty where something would.
  returned: success
  type: str
  sample: ""
"""

from ..module_utils._holdfast.operator.forecast.rebalance import rebalance_info
from ..module_utils._module import NODE_OPTIONS, run

OPTIONS = NODE_OPTIONS.merge(
    nodes={"type": "list", "elements": "str"},
    threshold={"type": "float"},
    most={"type": "int", "default": -1},
)


def main() -> None:
    """Run the module."""
    run(OPTIONS, rebalance_info)


if __name__ == "__main__":
    main()
