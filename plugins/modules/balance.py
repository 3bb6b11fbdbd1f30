#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: balance
short_description: Plan how to balance a cluster with few moves and little data
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Takes the description of a cluster and plans moves that spread its load evenly. Evenness
    is measured by the score of Ganeti's htools; less is better.
  - The plan is ordered. After every move the limits of all nodes hold, instances with the same
    exclusion tag are apart, and every node that could be lost still can be (N+1). The score never
    rises.
  - What C(hbal) would do is the measure. The plan ends with no higher score, makes no more moves
    and copies no more data than C(hbal) (on more than some 120 nodes that is no longer worked
    out). For a state that it planned itself it proposes nothing.
  - The moves are not made. With O(dest) the cluster as it will be is written to a file; that is
    what C(changed) and the diff are about.
extends_documentation_fragment:
  - holdfast.ha.attributes
  - holdfast.ha.attributes.no_group
  - holdfast.ha.cluster_source
  - holdfast.ha.cluster_source.node_memory
options:
  dest:
    description:
      - Absolute path of a file for the cluster as it is once the plan was carried out, in htools'
        text format. It may be O(src) if that is in the same format.
    type: path
  group:
    description:
      - Name or uuid of the node group to balance. It has to be given if there are several.
    type: str
  like_hbal:
    description:
      - Make the moves that htools' C(hbal) makes, one by one, instead of a better plan. Then N+1
        is not looked at.
    type: bool
    default: false
  most_moves:
    description: Plan at most this many moves. V(-1) is no limit.
    type: int
    default: -1
  most_copied:
    description: Plan to copy at most this many MiB of disks. V(-1) is no limit.
    type: int
    default: -1
  swaps:
    description:
      - Also move two instances one after the other where only both together gain, even if that
        takes more moves than C(hbal) would make. The score may rise between the two; all limits
        and N+1 hold there as well. The plan is never worse than the one without swaps.
      - Not with O(like_hbal).
    type: bool
    default: false
  budget:
    description:
      - For about how many seconds to search a better plan, after the plan without a search was
        made. V(0) is no search. The search moves several instances at once and may need more moves
        and data; O(most_moves), O(most_copied) and O(gain_per_gib) limit that.
      - The score may rise on the way; all limits and N+1 hold after every move.
      - Not with O(like_hbal).
    type: float
    default: 0.0
  seed:
    description:
      - The seed of the search of O(budget). The same seed and budget lead to the same plan, unless
        the machine is so slow that the clock ends the search.
    type: int
    default: 1
  keep_n1:
    description:
      - Whether every node that could be lost still can be after each move. Without it the plan may
        be better, as RV(given_up) says.
      - Not with O(like_hbal), which never keeps N+1.
    type: bool
    default: true
  gain_per_gib:
    description: What a move has to gain of the score for each GiB that it copies.
    type: float
    default: 0.0
  disk_moves:
    description: Whether disks may be copied. If not, instances only change to their other node.
    type: bool
    default: true
  instance_moves:
    description: Whether instances may run on other nodes. If not, only secondaries change.
    type: bool
    default: true
  evacuate:
    description: Only move instances off nodes that are offline or drained.
    type: bool
    default: false
  select:
    description: The names of the instances that may move. Any may if this is empty.
    type: list
    elements: str
    default: []
  exclude:
    description: The names of instances that stay where they are.
    type: list
    elements: str
    default: []
seealso:
  - module: holdfast.ha.capacity_info
  - module: holdfast.ha.allocation
"""

EXAMPLES = r"""
- name: Search a better plan for a minute
  holdfast.ha.balance:
    src: /var/tmp/cluster.data
    budget: 60
  register: plan

- name: How would the cluster be balanced?
  holdfast.ha.balance:
    src: /var/tmp/cluster.data
  register: plan

- name: Copy at most 500 GiB, and nothing that hardly gains
  holdfast.ha.balance:
    src: /var/tmp/cluster.data
    most_copied: 512000
    gain_per_gib: 0.001
  register: plan
"""

RETURN = r"""
moves:
  description:
    - The moves in the order in which they are to be made. All of one C(set) touch different nodes
      and can be made side by side. With C(with_next) a move is worth making only together with
      the one after it.
  returned: success
  type: list
  elements: dict
  sample:
    - instance: web
      action: replace secondary, failover
      before: [node1, node2]
      after: [node3, node1]
      copied: 20480
      score: 1.25
      set: 1
      with_next: false
score_before:
  description: The score of the cluster as it is; null where it is no number.
  returned: success
  type: float
  sample: 2.5
score_after:
  description: The score once all moves are made; null where it is no number.
  returned: success
  type: float
  sample: 1.25
given_up:
  description:
    - What hbal's rule comes to, if the plan is not as good because some node could not be
      lost any more then.
    - V(none) in all other cases.
  returned: success
  type: dict
  contains: &plan
    score_after:
      description: The score at its end.
      type: float
    moves:
      description: How many moves it makes.
      type: int
    copied:
      description: How many MiB of disks it copies.
      type: int
without_swaps:
  description: With O(swaps), the result of the plan without swaps; else V(none).
  returned: success
  type: dict
  contains: *plan
uses_swaps:
  description:
    - Whether RV(moves) are not the plan without swaps, because swaps lead to a lower score.
  returned: success
  type: bool
before_search:
  description: With O(budget), the result of the plan before the search; else V(none).
  returned: success
  type: dict
  contains:
    score_after:
      description: The score at its end.
      type: float
    moves:
      description: How many moves it makes.
      type: int
    copied:
      description: How many MiB of disks it copies.
      type: int
copied:
  description: How many MiB of disks are copied in all.
  returned: success
  type: int
  sample: 20480
blocked:
  description:
    - Moves that would gain most in the end and cannot be made, each with the limits in its way.
  returned: success
  type: list
  elements: dict
  sample:
    - instance: data
      action: replace secondary
      target: node3
      gain: 0.5
      failure: FailDisk
      limits: [{limit: free disk, needed: 20481, available: 4096, short_by: 16385, node: node3}]
"""

from ..module_utils._holdfast.operator.cli.htools.hbal_cluster import plan_balance
from ..module_utils._holdfast.operator.cli.htools.source import STATIC_NODE_MEMORY
from ..module_utils._module import Options, run

OPTIONS = Options(
    argument_spec={
        "cluster": {"type": "dict"},
        "src": {"type": "path"},
        "dest": {"type": "path"},
        "group": {"type": "str"},
        "like_hbal": {"type": "bool", "default": False},
        "most_moves": {"type": "int", "default": -1},
        "most_copied": {"type": "int", "default": -1},
        "swaps": {"type": "bool", "default": False},
        "budget": {"type": "float", "default": 0.0},
        "seed": {"type": "int", "default": 1},
        "keep_n1": {"type": "bool", "default": True},
        "gain_per_gib": {"type": "float", "default": 0.0},
        "disk_moves": {"type": "bool", "default": True},
        "instance_moves": {"type": "bool", "default": True},
        "evacuate": {"type": "bool", "default": False},
        "select": {"type": "list", "elements": "str", "default": []},
        "exclude": {"type": "list", "elements": "str", "default": []},
        "static_node_memory": {"type": "int", "default": STATIC_NODE_MEMORY},
    },
    required_one_of=[["cluster", "src"]],
    mutually_exclusive=[["cluster", "src"]],
)


def main() -> None:
    """Run the module."""
    run(OPTIONS, plan_balance)


if __name__ == "__main__":
    main()
