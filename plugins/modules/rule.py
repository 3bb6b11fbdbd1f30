#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rule
short_description: Declare where services may run, and with which others
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Writes one rule into the desired configuration of the cluster, or removes it.
  - A rule with O(nodes) lists the nodes on which its services run. Each service can be in one such
    rule.
  - A rule with O(affinity) keeps its services apart on different nodes, or together on one.
  - With O(attribute) too, it does so with locations instead of nodes, such as sites or racks.
  - Other rules are left as they are.
extends_documentation_fragment:
  - holdfast.ha.attributes
  - holdfast.ha.attributes.node_group
  - holdfast.ha.node
options:
  name:
    description:
      - Name of the rule.
    type: str
    required: true
  state:
    description:
      - Whether the rule exists.
    type: str
    choices:
      - present
      - absent
    default: present
  services:
    description:
      - The ids of the services of the rule. They have to be declared.
    type: list
    elements: str
  nodes:
    description:
      - The nodes on which the services run, each with a priority from V(0); the highest that
        is available is taken.
    type: dict
  strict:
    description:
      - Whether the services may run on no other node than O(nodes), even if all of those are gone.
      - With O(attribute), whether a service is not started where the rule would not be kept. By
        default such a rule is a preference. It comes after the priorities of O(nodes).
    type: bool
    default: false
  affinity:
    description:
      - Whether the services are kept on different nodes or on the same one.
    type: str
    choices:
      - apart
      - together
  attribute:
    description:
      - The attribute of M(holdfast.ha.node_properties) that is the location of a node. The services
        are kept in different locations, or in the same one.
      - A service moves when that brings the rule closer to being kept, if
        O(holdfast.ha.service#module:failback) is V(true) and no service is kept together on its
        node.
    type: str
    version_added: 0.2.0
  locations:
    description:
      - With O(affinity=apart) and O(attribute), in how many different locations the services are at
        least. By default each service is in its own.
    type: int
    version_added: 0.2.0
  expected:
    description:
      - Ids of services that are to be declared before the rule is. In check mode they count as
        declared; otherwise this has no effect.
    type: list
    elements: str
    default: []
seealso:
  - module: holdfast.ha.service
  - module: holdfast.ha.node_properties
  - module: holdfast.ha.configuration
"""

EXAMPLES = r"""
- name: Never run both resolvers on one node
  holdfast.ha.rule:
    name: resolvers
    services: [resolver-a, resolver-b]
    affinity: apart

- name: Spread a database and its two replicas over two sites at least
  holdfast.ha.rule:
    name: sites
    services: [database, replica-a, replica-b]
    affinity: apart
    attribute: site
    locations: 2

- name: Prefer the nodes with fast disks
  holdfast.ha.rule:
    name: fast-disks
    services: [database]
    nodes:
      node1: 2
      node2: 1
"""

RETURN = r"""
rule:
  description: The rule as it is declared now; V(null) if it is absent.
  returned: success
  type: dict
  sample:
    name: resolvers
    services: [resolver-a, resolver-b]
    affinity: apart
version:
  description: The version of the desired configuration.
  returned: success
  type: int
  sample: 13
"""

from ..module_utils._declarations import RULE
from ..module_utils._holdfast.operator.operations.policy import declare_rule
from ..module_utils._module import NODE_OPTIONS, run

OPTIONS = NODE_OPTIONS.merge(
    RULE,
    expected={"type": "list", "elements": "str", "default": []},
)


def main() -> None:
    """Run the module."""
    run(OPTIONS, declare_rule)


if __name__ == "__main__":
    main()
