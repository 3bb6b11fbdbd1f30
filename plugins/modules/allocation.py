#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: allocation
short_description: Find the best place for an instance, or new places for some that have to move
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Answers a request of Ganeti's allocator protocol as C(hail) of htools 3.0.2 does, in a fraction
    of the time and without Ganeti.
  - Nothing is placed or moved. The answer names the target and the steps.
  - A request without a solution does not fail the task; see RV(success).
extends_documentation_fragment:
  - holdfast.ha.attributes.info_module
  - holdfast.ha.attributes.no_group
  - holdfast.ha.cluster_source.node_memory
  - holdfast.ha.cluster_source.redundancy
requirements:
  - netaddr (Python package), if O(networks) is used
options:
  request:
    description:
      - The request with the whole cluster, as Ganeti writes it for an allocator, as data.
      - Exactly one of this and O(src) is needed.
    type: dict
  src:
    description:
      - Absolute path of a file with the request as JSON, on the node on which the module runs.
    type: path
  networks:
    description:
      - Networks with their pools of addresses, which the request itself does not hold.
      - An interface may then name its network by name, or only by its address; node groups are
        chosen by the networks that all interfaces need.
      - Addresses are checked against the pool and against the interfaces of all instances. An
        interface whose address is V(pool) gets a free one, see RV(networks.addresses).
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the network.
        type: str
        required: true
      uuid:
        description: Its uuid, as node groups list it. If not given, its name.
        type: str
      network:
        description: The addresses that belong to it, such as V(192.0.2.0/24).
        type: str
        required: true
      gateway:
        description: Address of its gateway, which no interface can have.
        type: str
      pool:
        description:
          - What addresses may be given, each an address, a network, or V(FIRST-LAST).
          - If not given, all of the network.
        type: list
        elements: str
      reserved:
        description: What addresses may not be given, in the same form.
        type: list
        elements: str
        default: []
      groups:
        description:
          - Names or uuids of node groups that are connected to it, besides those that list it
            themselves.
        type: list
        elements: str
        default: []
  better:
    description:
      - Correct the mistakes of C(hail). RV(info) then shows what C(hail) itself would answer.
      - A node that could not be lost before either lets no placement fail; each instance of a
        C(multi-allocate) has its own group and fails by itself, and RV(result) then has its name
        only, as Ganeti wants it, and RV(info) the reason; a drained node is no secondary;
        O(ignore_soft_errors) also counts for secondaries; an instance that has to leave both
        nodes leaves its own nodes only, if there is no other way.
    type: bool
    default: false
  ignore_soft_errors:
    description: Ignore what is advisable only, such as ratios of the policy and exclusion tags.
    type: bool
    default: false
  restrict_to:
    description: Names of the only nodes that a new instance may be placed on.
    type: list
    elements: str
  why:
    description: Also give the reasons, in RV(reasons).
    type: bool
    default: false
seealso:
  - module: holdfast.ha.capacity_info
"""

EXAMPLES = r"""
- name: Where would the new instance go?
  holdfast.ha.allocation:
    src: /var/tmp/request.json
    why: true
  register: place
  delegate_to: localhost
  failed_when: place is failed or not place.success

- name: Place an instance by the networks that it needs
  holdfast.ha.allocation:
    request: "{{ lookup('ansible.builtin.file', 'request.json') | from_json }}"
    networks:
      - name: office
        network: 192.0.2.0/24
        gateway: 192.0.2.1
        pool:
          - 192.0.2.100-192.0.2.199
        groups:
          - rack1
  register: place
  delegate_to: localhost
"""

RETURN = r"""
success:
  description: Whether there is an answer to the request.
  returned: success
  type: bool
  sample: true
info:
  description: What was found, or why nothing was, in the words of C(hail).
  returned: success
  type: str
  sample: "Request successful: Selected group: default, Group default (preferred): score: 0.5"
result:
  description:
    - The answer, in the shape that Ganeti's protocol has for the kind of request. For one new
      instance it is the list of its nodes, the primary first.
  returned: success
  type: raw
  sample: [node2, node1]
reasons:
  description:
    - For each instance the nodes that are out of the question, each with the limits that it
      breaks and by how much; which nodes cannot be lost, and for which instance; and the terms
      of the score that decided, for the place that was chosen and for each other. A score that is
      no number is null.
  returned: with O(why=true)
  type: dict
  sample:
    success: true
    instances:
      - instance: web
        nodes: [node2]
        rejected:
          - node: node1
            role: primary
            failure: FailMem
            limits: [{limit: free memory, needed: 4097, available: 1024, short_by: 3073}]
networks:
  description: What the check of networks found.
  returned: with O(networks)
  type: dict
  contains:
    problems:
      description: What blocks the request, one sentence each.
      type: list
      elements: str
    clashes:
      description: What is wrong among the instances and networks that are there.
      type: list
      elements: str
    groups:
      description: For each new instance the node groups that have all its networks.
      type: dict
    addresses:
      description: The address that each interface got from a pool.
      type: list
      elements: dict
  sample:
    problems: []
    clashes: []
    groups: {web: [rack1]}
    addresses: [{instance: web, interface: 0, network: office, address: 192.0.2.100}]
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..module_utils._holdfast.operator.cli.htools.source import STATIC_NODE_MEMORY, read_source
from ..module_utils._holdfast.placement.allocate.solution import Options as PlacementOptions
from ..module_utils._holdfast.placement.capacity.networks import NetworkReport, check_networks
from ..module_utils._holdfast.placement.explain.reasons import allocate
from ..module_utils._holdfast.placement.iallocator.json_text import parse
from ..module_utils._module import Options, Result, run
from ..module_utils._networks import (
    NETWORK_OPTIONS,
    network_from_options,
    read_address,
    show_address,
)

OPTIONS = Options(
    argument_spec={
        "request": {"type": "dict"},
        "src": {"type": "path"},
        "networks": {"type": "list", "elements": "dict", "options": NETWORK_OPTIONS},
        "better": {"type": "bool", "default": False},
        "ignore_soft_errors": {"type": "bool", "default": False},
        "capacity_checks": {"type": "bool", "default": True},
        "restrict_to": {"type": "list", "elements": "str"},
        "static_node_memory": {"type": "int", "default": STATIC_NODE_MEMORY},
        "why": {"type": "bool", "default": False},
    },
    required_one_of=[["request", "src"]],
    mutually_exclusive=[["request", "src"]],
)


def answer(options: Mapping[str, Any], check: bool) -> Result:
    """Answer the request; nothing is changed in any mode."""
    text = json.dumps(options["request"]) if options["src"] is None else read_source(options["src"])
    values: dict[str, Any] = {}
    problems: list[str] = []
    if options["networks"] is not None:
        networks = [network_from_options(row) for row in options["networks"]]
        message, report = check_networks(
            parse(text, "Parsing input IAllocator message"), networks, read_address
        )
        text = json.dumps(message)
        problems = report.problems
        values["networks"] = _document(report)
    placement = PlacementOptions(
        options["ignore_soft_errors"],
        options["capacity_checks"],
        options["restrict_to"],
        options["better"],
    )
    found = allocate(text, options["static_node_memory"], placement, options["why"], problems)
    return replace(found, values={**values, **found.values})


def _document(report: NetworkReport) -> dict[str, Any]:
    return {
        "problems": report.problems,
        "clashes": report.clashes,
        "groups": report.groups,
        "addresses": [
            {
                "instance": interface.instance,
                "interface": interface.number,
                "network": interface.network,
                "address": show_address(address),
            }
            for interface, _uuid, address in report.given
        ],
    }


def main() -> None:
    """Run the module."""
    run(OPTIONS, answer)


if __name__ == "__main__":
    main()
