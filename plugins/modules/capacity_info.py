#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: capacity_info
short_description: Report free capacity, and which nodes a cluster can do without
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Reports how many more instances of a size fit, and where; which nodes could be lost (N+1); which
    can be rebooted together, and which switched off; and where everything on a node would go.
  - With O(config) it reports the same of the services of a holdfast cluster, by the choices of its
    manager; how many more fit, which nodes may be lost, and how much of each resource is taken.
  - Nothing is placed or moved.
extends_documentation_fragment:
  - holdfast.ha.attributes.info_module
  - holdfast.ha.attributes.no_group
  - holdfast.ha.cluster_source
  - holdfast.ha.cluster_source.node_memory
  - holdfast.ha.cluster_source.redundancy
options:
  config:
    description:
      - The configuration file of a node of a holdfast cluster, usually C(/etc/holdfast/node.json),
        instead of O(cluster) and O(src). Of O(parts), V(fit) and V(redundancy) count then; what can
        be out of service together or drained is in M(holdfast.ha.outage_info) and
        M(holdfast.ha.evacuate).
    type: path
    version_added: 0.2.0
  parts:
    description: What to find out, besides O(drain).
    type: list
    elements: str
    choices:
      - fit
      - redundancy
      - reboot
      - standby
    default:
      - fit
      - redundancy
      - reboot
      - standby
  size:
    description:
      - The instances that are to fit.
      - If not given, the standard and the largest size of the policy. With O(config), services that
        take nothing.
    type: dict
    suboptions:
      memory:
        description: Memory in MiB.
        type: int
        required: true
      disk:
        description: Disk in MiB; required without O(config).
        type: int
      vcpus:
        description: Cores.
        type: int
        default: 1
      utilization:
        description: With O(config), other resources that each service takes.
        type: dict
        version_added: 0.2.0
  template:
    description: Their disk template. If not given, the first that the policy allows.
    type: str
  most:
    description: Count no further. With O(config) the default is 1000.
    type: int
  drain:
    description: Names of nodes that are to be emptied, all at once.
    type: list
    elements: str
    default: []
  secondaries:
    description: With O(drain), also move the mirrors that the nodes keep.
    type: bool
    default: true
  offline:
    description: Whether all instances are shut down while nodes are rebooted.
    type: bool
    default: false
  room:
    description:
      - How many instances of the standard size each node keeps room for when others are
        switched off.
    type: float
    default: 2.0
seealso:
  - module: holdfast.ha.allocation
"""

EXAMPLES = r"""
- name: How many more of a size fit?
  holdfast.ha.capacity_info:
    src: /var/tmp/cluster.data
    parts: [fit]
    size:
      memory: 4096
      disk: 20480
    template: drbd
  register: room

- name: Where would everything on a node go?
  holdfast.ha.capacity_info:
    src: /var/tmp/cluster.data
    parts: []
    drain: [node3]
  register: room
  failed_when: room is failed or not room.drain.possible

- name: How many more services with two GPUs can the cluster take?
  holdfast.ha.capacity_info:
    config: /etc/holdfast/node.json
    parts: [fit]
    size: {memory: 8192, vcpus: 2, utilization: {gpu: 2}}
  register: room
"""

RETURN = r"""
fit:
  description: What fits.
  returned: when O(parts) has V(fit)
  type: dict
  contains:
    template:
      description: The disk template that was counted with.
      type: str
    standard:
      description:
        - How many instances of one size fit. How many of each size, how many on each node as
          primary, why no more, and how often each reason was met.
      type: dict
    tiered:
      description: The same, where ever smaller instances are placed once none fits.
      type: dict
  sample:
    template: drbd
    standard:
      count: 3
      sizes: [{memory: 4096, disk: 20480, vcpus: 1, spindles: 1, spindle_use: 1, count: 3}]
      nodes: {node1: 2, node2: 1}
      reason: FailN1
      failures: {FailN1: 6}
redundancy:
  description:
    - For each node group whether any single node may be lost; if not, which may not, and the
      instance that would have no place.
  returned: when O(parts) has V(redundancy)
  type: dict
  sample:
    rack1: {survives: false, cannot_be_lost: [{node: node1, instance: web}]}
reboot:
  description:
    - Which nodes can be rebooted together, with the instances that move before; and those that
      cannot be.
  returned: when O(parts) has V(reboot)
  type: dict
  sample:
    rounds: [{nodes: [node1, node3], moves: [[web, node2]]}]
    stuck: []
standby:
  description: The nodes that can be switched off, and what has to move before.
  returned: when O(parts) has V(standby)
  type: dict
  sample:
    nodes: [node3]
    steps: [{instance: web, action: migrate, source: node3, target: node1}]
drain:
  description:
    - Where everything on the nodes of O(drain) goes, in order; what is stuck there and why; and
      the nodes that could not be lost any more afterwards.
  returned: with O(drain)
  type: dict
  sample:
    possible: true
    steps: [{instance: web, action: migrate, source: node3, target: node1}]
    blocked: []
    not_redundant: []
services:
  description: The services of a holdfast cluster.
  returned: with O(config)
  type: dict
  contains:
    nodes:
      description:
        - For each node in use its attributes, and of each resource that it declares or reports the
          capacity, the safety capacity (V(null) for none), and what is used and free.
      type: dict
    fit:
      description:
        - How many more services fit, how many on each node, and why there is no place for one more.
      returned: when O(parts) has V(fit)
      type: dict
    redundancy:
      description:
        - The nodes that may not be lost, each with the services that no other node could take over
          and the reasons. Empty if any single node may be lost.
      returned: when O(parts) has V(redundancy)
      type: dict
  sample:
    nodes:
      n1:
        resources: {gpu: {capacity: 4, safety_capacity: 3, used: 3, free: 1}}
        attributes: {site: north}
    fit:
      count: 0
      nodes: {}
      reason: "no node can take it (n1: needs 2 gpu; node n1 has 1 free of 4)"
      rejected: {n1: needs 2 gpu; node n1 has 1 free of 4}
    redundancy:
      n1: {render: "no node can take it (n1: it is off; n2: needs 2 gpu; node n2 has none)"}
"""

import json
from collections.abc import Mapping
from typing import Any

from ..module_utils._holdfast.errors import InputError
from ..module_utils._holdfast.operator.cli.htools.source import (
    STATIC_NODE_MEMORY,
    read_cluster,
    read_source,
)
from ..module_utils._holdfast.operator.forecast.capacity import service_capacity
from ..module_utils._holdfast.placement.capacity.report import PARTS, describe_capacity
from ..module_utils._holdfast.placement.explain.reasons import as_cluster_data_errors
from ..module_utils._module import Options, Result, run

OPTIONS = Options(
    argument_spec={
        "config": {"type": "path"},
        "cluster": {"type": "dict"},
        "src": {"type": "path"},
        "parts": {
            "type": "list",
            "elements": "str",
            "choices": list(PARTS),
            "default": list(PARTS),
        },
        "size": {
            "type": "dict",
            "options": {
                "memory": {"type": "int", "required": True},
                "disk": {"type": "int"},
                "vcpus": {"type": "int", "default": 1},
                "utilization": {"type": "dict"},
            },
        },
        "template": {"type": "str"},
        "most": {"type": "int"},
        "capacity_checks": {"type": "bool", "default": True},
        "drain": {"type": "list", "elements": "str", "default": []},
        "secondaries": {"type": "bool", "default": True},
        "offline": {"type": "bool", "default": False},
        "room": {"type": "float", "default": 2.0},
        "static_node_memory": {"type": "int", "default": STATIC_NODE_MEMORY},
    },
    required_one_of=[["cluster", "src", "config"]],
    mutually_exclusive=[["cluster", "src", "config"]],
)


def look(options: Mapping[str, Any], check: bool) -> Result:
    """Find out what is asked; nothing is changed in any mode."""
    if options["config"] is not None:
        return Result(values=service_capacity(options))
    size = options["size"]
    if size is not None:
        if size["disk"] is None:
            raise InputError("size.disk", None, "MiB of disk, for instances of a Ganeti cluster")
        options = {**options, "size": {key: size[key] for key in ("memory", "disk", "vcpus")}}
    text = json.dumps(options["cluster"]) if options["src"] is None else read_source(options["src"])
    with as_cluster_data_errors("the cluster"):
        cluster, warnings = read_cluster(text, options["static_node_memory"])
    return Result(values=describe_capacity(cluster, options), warnings=warnings)


def main() -> None:
    """Run the module."""
    run(OPTIONS, look)


if __name__ == "__main__":
    main()
