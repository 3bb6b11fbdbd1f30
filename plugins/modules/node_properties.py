#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_properties
short_description: Declare the resources and the attributes of a node
version_added: 0.2.0
author:
  - The holdfast authors (@holdfast)
description:
  - Writes the capacities and attributes of one node into the desired configuration of the cluster,
    or removes them.
  - A capacity is a limit for the services that the manager places on the node, by
    O(holdfast.ha.service#module:utilization), whatever the policy compares nodes by. A service that
    runs is never stopped because of it.
  - Attributes are for rules with O(holdfast.ha.rule#module:attribute).
  - Declare them when all nodes have this version. A manager of an earlier version does not know
    them, and a change of the configuration by an earlier version removes them.
extends_documentation_fragment:
  - holdfast.ha.attributes
  - holdfast.ha.attributes.node_group
  - holdfast.ha.node
  - holdfast.ha.waiting
options:
  name:
    description:
      - The node.
    type: str
    required: true
  state:
    description:
      - Whether anything is declared of the node.
    type: str
    choices:
      - present
      - absent
    default: present
  capacity:
    description:
      - How much the node has of each resource, as whole numbers up to 1,000,000,000,000. Names and
        units are yours, such as C(gpu), C(licence) or C(mbit), and the same for nodes and services.
      - A resource that is not named is missing on the node, except V(cpus) and V(memory) (MiB),
        which nodes report. If one of these is given, it replaces what the node reports, so that a
        part can be kept for the node itself.
      - If not given, it stays as it is declared. An empty dictionary removes all.
    type: dict
  safety_capacity:
    description:
      - The amount of a resource up to which the node should be loaded, at most its capacity. A
        service that would exceed it goes to another node, if one has room for it.
      - If not given, it stays as it is declared.
    type: dict
  attributes:
    description:
      - Attributes of the node with their values, such as its site or rack.
      - If not given, they stay as they are declared.
    type: dict
  wait:
    description:
      - Wait until the manager has taken up the change.
    type: bool
    default: false
seealso:
  - module: holdfast.ha.service
  - module: holdfast.ha.rule
  - module: holdfast.ha.configuration
"""

EXAMPLES = r"""
- name: Two GPUs, one to be kept free if possible, and the site of a node
  holdfast.ha.node_properties:
    name: node1
    capacity:
      gpu: 2
    safety_capacity:
      gpu: 1
    attributes:
      site: north

- name: Keep 8 GiB of memory for the node itself
  holdfast.ha.node_properties:
    name: node2
    capacity:
      memory: 57344
"""

RETURN = r"""
node:
  description: What is declared of the node now; V(null) if nothing is.
  returned: success
  type: dict
  sample:
    name: node1
    capacity: {gpu: 2}
    safety_capacity: {gpu: 1}
    attributes: {site: north}
version:
  description: The version of the desired configuration.
  returned: success
  type: int
  sample: 15
"""

from ..module_utils._declarations import NODE_PROPERTIES
from ..module_utils._holdfast.operator.operations.node_properties import declare_properties
from ..module_utils._module import NODE_OPTIONS, run

OPTIONS = NODE_OPTIONS.merge(
    NODE_PROPERTIES,
    wait={"type": "bool", "default": False},
    timeout={"type": "float", "default": 60},
)


def main() -> None:
    """Run the module."""
    run(OPTIONS, declare_properties)


if __name__ == "__main__":
    main()
