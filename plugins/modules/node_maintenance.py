#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_maintenance
short_description: Drain a node, and bring it back
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - With O(state=drained) all services are moved off the node, and no service is placed on it. The
    module does not check first whether the services have another node to run on; use
    M(holdfast.ha.evacuate) in check mode for that.
  - With O(state=active), or after the expiry, the node is active again.
  - The cluster does not switch on a drained node that is fenced. Once the node is active again it
    may, even if the node was fenced by hand.
extends_documentation_fragment:
  - holdfast.ha.attributes
  - holdfast.ha.attributes.node_group
  - holdfast.ha.node
  - holdfast.ha.maintenance
  - holdfast.ha.waiting.moves
options:
  node:
    description:
      - The node; by default the one on which the module runs.
    type: str
  state:
    description:
      - The desired state of the node.
    type: str
    choices:
      - drained
      - active
    default: drained
  wait:
    description:
      - With O(state=drained) wait until no service is left on the node and those that were on it
        are started elsewhere, and fail naming what blocks it; with O(state=active) wait until the
        node is online and services may come to it.
    type: bool
    default: true
seealso:
  - module: holdfast.ha.cluster_maintenance
  - module: holdfast.ha.cluster_info
"""

EXAMPLES = r"""
- name: Move everything off this node before its kernel is updated
  holdfast.ha.node_maintenance:
    reason: kernel update
    owner: nightly job
    duration: 7200

- name: Use it again
  holdfast.ha.node_maintenance:
    state: active
"""

RETURN = r"""
node:
  description: The node.
  returned: success
  type: str
  sample: n2
maintenance:
  description:
    - Reason, owner, beginning and expiry of the maintenance, the times in seconds since 1970; an
      expiry of V(0) is none. V(null) while the node is active.
  returned: success
  type: dict
  sample:
    reason: kernel update
    owner: nightly job
    since: 1790000000.0
    until: 1790007200.0
moved:
  description: Where each service went that was on the node when the task began.
  returned: when O(state=drained) and O(wait=true), and not in check mode
  type: dict
  sample:
    web: n3
version:
  description: The version of the desired configuration.
  returned: success
  type: int
  sample: 14
"""

from ..module_utils._holdfast.operator.operations.maintenance import declare_maintenance
from ..module_utils._module import MAINTENANCE, NODE_OPTIONS, run

OPTIONS = NODE_OPTIONS.merge(
    MAINTENANCE,
    node={"type": "str"},
    state={"type": "str", "choices": ["drained", "active"], "default": "drained"},
    wait={"type": "bool", "default": True},
    timeout={"type": "float", "default": 120},
)


def main() -> None:
    """Run the module."""
    run(OPTIONS, declare_maintenance)


if __name__ == "__main__":
    main()
