#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_policy
short_description: Configure shutdown, placement and load balancing of a cluster
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Changes the policy of the cluster in its desired configuration.
  - Options that are not given stay as they are. Each option names its default in a new cluster.
extends_documentation_fragment:
  - holdfast.ha.attributes
  - holdfast.ha.attributes.node_group
  - holdfast.ha.node
  - holdfast.ha.waiting
options:
  shutdown:
    description:
      - What a node does with its services when it is shut down.
      - V(migrate) moves them away first.
      - V(failover) stops them, and others start them.
      - V(freeze) stops them, and they wait for the node to come back.
      - V(conditional), which is the default, is V(freeze) for a reboot and V(failover) for a
        poweroff.
      - A restart of the daemon alone leaves its services running, whatever this option is.
    type: str
    choices:
      - conditional
      - freeze
      - failover
      - migrate
  shutdown_timeout:
    description:
      - Seconds for moving services off a node that is shut down, with O(shutdown=migrate) and while
        it is drained. After that, remaining services are stopped and started on other nodes.
      - The program that shuts the node down must wait at least as long. systemd ends
        C(holdfast-lrm) after 15 minutes, whatever this option is; services that still run then go
        down with the node. The default is V(300).
    type: float
  placement:
    description:
      - How nodes are compared when a service is placed, and how their load is measured.
      - V(count), which is the default, is the number of services.
      - V(load) is the share of CPUs and memory that is in use, as the services declare it.
      - V(score) is the score of Ganeti's allocator for the same, see M(holdfast.ha.allocation). A
        service is then not placed where its memory or CPUs do not fit.
    type: str
    choices:
      - count
      - load
      - score
  rebalance_on_start:
    description:
      - Start a stopped service on the best node, instead of the one on which it ran last.
      - The default is V(false).
    type: bool
  rebalance:
    description:
      - Move services automatically, one at a time, while the load is uneven. Where that does not
        help, two nodes exchange services.
      - The default is V(false).
    type: bool
  rebalance_threshold:
    description:
      - The imbalance above which services are moved. It is the standard deviation of the nodes'
        loads divided by their mean. The default is V(0.3).
    type: float
  rebalance_hold:
    description:
      - For how many rounds of 10 seconds the load must have been uneven. The default is V(3).
    type: int
  rebalance_margin:
    description:
      - The share of the imbalance that a move must take away to be worth it. The default is V(0.1).
    type: float
  max_workers:
    description:
      - How many services a node starts, stops or watches at the same time. The default is V(4).
    type: int
  wait:
    description:
      - Wait until the manager has applied the policy, so that it is in force on all nodes.
      - Do so before you shut down a node that is to follow a new O(shutdown).
    type: bool
    default: false
seealso:
  - module: holdfast.ha.configuration
  - module: holdfast.ha.service
  - module: holdfast.ha.rule
  - module: holdfast.ha.node_maintenance
"""

EXAMPLES = r"""
- name: Move the services away before a node is shut down, and even the load out
  holdfast.ha.cluster_policy:
    shutdown: migrate
    placement: load
    rebalance: true
    rebalance_threshold: 0.2
    wait: true
"""

RETURN = r"""
policy:
  description: The whole policy as it is now.
  returned: success
  type: dict
  sample:
    shutdown: migrate
    shutdown_timeout: 300.0
    placement: load
    rebalance_on_start: false
    rebalance: true
    rebalance_threshold: 0.2
    rebalance_hold: 3
    rebalance_margin: 0.1
    max_workers: 4
version:
  description: The version of the desired configuration.
  returned: success
  type: int
  sample: 14
"""

from ..module_utils._declarations import POLICY
from ..module_utils._holdfast.operator.operations.policy import declare_policy
from ..module_utils._module import NODE_OPTIONS, run

OPTIONS = NODE_OPTIONS.merge(
    POLICY,
    wait={"type": "bool", "default": False},
    timeout={"type": "float", "default": 60},
)


def main() -> None:
    """Run the module."""
    run(OPTIONS, declare_policy)


if __name__ == "__main__":
    main()
