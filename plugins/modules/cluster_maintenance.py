#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_maintenance
short_description: Pause or disarm the whole cluster, and resume it
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - With O(state=present) the cluster is paused (global maintenance). Running services keep running,
    and nothing is started, moved, recovered or fenced.
  - The manager also writes it on the whiteboard, where the tools of hosted engine show it.
  - It ends with O(state=absent), at its expiry, and when somebody ends it on the whiteboard. The
    last change counts.
  - A fence that is already under way cannot be cancelled.
  - With another O(mode) the cluster is disarmed. Actions that are under way end first. Then no node
    is fenced, not even the manager's own node when it becomes silent.
extends_documentation_fragment:
  - holdfast.ha.attributes
  - holdfast.ha.attributes.node_group
  - holdfast.ha.node
  - holdfast.ha.maintenance
  - holdfast.ha.waiting
options:
  state:
    description:
      - Whether the cluster is in maintenance.
      - With V(absent) one that was set on the whiteboard is ended as well.
    type: str
    choices:
      - present
      - absent
    default: present
  mode:
    description:
      - The mode that O(state=present) begins. O(state=absent) ends any mode.
      - V(hold) pauses the cluster (global maintenance). Watchdogs keep guarding the nodes.
      - V(freeze) disarms the cluster for work on the network and leaves the services as they are. A
        node that loses its storage still stops them, and is reset if it cannot.
      - V(ignore) disarms the cluster, for work on the storage as well. The nodes release their
        watchdogs, and the services may be started, stopped and moved by hand.
        Once the cluster is armed again they are probed on all nodes.
      - Only V(hold) can have an expiry. No mode can begin while another is active, except V(hold)
        in a disarmed cluster.
    type: str
    choices:
      - hold
      - freeze
      - ignore
    default: hold
  wait:
    description:
      - Wait until the manager has applied it and the whiteboard shows it. Before that, a node may
        still be fenced.
      - With O(mode=freeze) and O(mode=ignore) wait until all nodes are disarmed.
    type: bool
    default: true
seealso:
  - module: holdfast.ha.node_maintenance
  - module: holdfast.ha.metadata
"""

EXAMPLES = r"""
- name: Hold the cluster while its fence devices get a new firmware, for two hours at most
  holdfast.ha.cluster_maintenance:
    reason: new firmware of the boards
    owner: ada
    duration: 7200

- name: Disarm the cluster while its storage is worked on, and leave the services to their operator
  holdfast.ha.cluster_maintenance:
    mode: ignore
    reason: new storage

- name: Let it go again
  holdfast.ha.cluster_maintenance:
    state: absent
"""

RETURN = r"""
maintenance:
  description:
    - Reason, owner, beginning and expiry of the maintenance, the times in seconds since 1970; an
      expiry of V(0) is none. V(null) if the cluster is not in maintenance.
  returned: success
  type: dict
  sample:
    reason: new firmware of the boards
    owner: ada
    since: 1790000000.0
    until: 1790007200.0
disarm:
  description:
    - How the cluster is disarmed, why, by whom and since when; V(null) if it is armed.
  returned: with O(state=absent), and unless O(mode=hold)
  type: dict
  sample:
    mode: freeze
    reason: new storage
    owner: ada
    since: 1790000000.0
version:
  description: The version of the desired configuration.
  returned: success
  type: int
  sample: 14
"""

from ..module_utils._holdfast.operator.operations.disarm import declare_cluster_maintenance
from ..module_utils._module import MAINTENANCE, NODE_OPTIONS, run

OPTIONS = NODE_OPTIONS.merge(
    MAINTENANCE,
    state={"type": "str", "choices": ["present", "absent"], "default": "present"},
    mode={"type": "str", "choices": ["hold", "freeze", "ignore"], "default": "hold"},
    wait={"type": "bool", "default": True},
    timeout={"type": "float", "default": 60},
)


def main() -> None:
    """Run the module."""
    run(OPTIONS, declare_cluster_maintenance)


if __name__ == "__main__":
    main()
