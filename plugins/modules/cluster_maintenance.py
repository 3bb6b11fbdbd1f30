#!/usr/bin/python
# Copyright: 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_maintenance
short_description: Hold or disarm the whole cluster, and let it go again
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - With O(state=present) the cluster is in global maintenance. What runs goes on running, and
    nothing is started, moved, recovered or fenced.
  - The manager writes it on the whiteboard too, where hosted engine's tools see it.
  - It ends with O(state=absent), when its expiry has come, and when somebody ends it on the
    whiteboard. What was changed last counts.
  - A fence that is under way when it begins cannot be called back.
  - With another O(mode) the cluster is disarmed. What is under way is ended first; then nobody is
    fenced, nor is the manager's own node when it falls silent.
extends_documentation_fragment:
  - holdfast.ha.attributes
  - holdfast.ha.node
  - holdfast.ha.maintenance
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
      - What begins with O(state=present). With O(state=absent) all of it ends, whatever it is.
      - V(hold) is global maintenance. Watchdogs go on guarding the nodes.
      - V(freeze) disarms the cluster for work on the network, with the services as they are. A node
        that loses its storage stops them all the same, and is reset if it cannot.
      - V(ignore) disarms the cluster, for work on the storage as well. The nodes release their
        watchdogs, and the services may be started, stopped and moved by hand.
        Once the cluster is armed again they are probed on all nodes.
      - Only V(hold) can have an expiry. None of them begins while another is in force, but for
        V(hold) in a disarmed cluster.
    type: str
    choices:
      - hold
      - freeze
      - ignore
    default: hold
  wait:
    description:
      - Wait until the manager keeps to it and the whiteboard shows it. Before that, a node may
        still be fenced.
      - With O(mode=freeze) and O(mode=ignore) wait until all nodes are disarmed.
    type: bool
    default: true
  timeout:
    description:
      - Seconds to wait with O(wait=true).
    type: float
    default: 60
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
