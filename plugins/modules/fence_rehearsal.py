#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fence_rehearsal
short_description: Prove that the fencing of each node will work, before it is needed
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Asks all devices of a fence configuration whether they would switch off the right machine.
    Nothing is switched. Agents have to be installed and their parameters valid, devices have to
    answer in time, and plugs have to exist and to belong to the node.
  - A plug is the node's own as far as its device lists it, it is on while the node is on, it is
    not another node's under another name, and the device does not call it like another node.
    Knowing nodes that are on (O(running), O(node_config)) makes this much stronger.
  - With O(consent=true) one node is switched off and on for real by each of its levels that can
    do it, and each step is proved.
  - The result is kept in O(report), as JSON, and as text for people in a file beside it that ends
    in C(.txt).
  - The task fails if the fencing of a node would work on none of its levels, or if a fence of it
    could be confirmed while the node is alive. A node with one bad level of several, or with levels
    that never give proof, causes warnings.
extends_documentation_fragment:
  - holdfast.ha.attributes
  - holdfast.ha.attributes.no_group
attributes:
  check_mode:
    support: full
    description:
      - Returns in RV(would_ask) what each device would be asked, and in RV(would_switch) which node
        would be switched. No device is asked and nothing is written.
  diff_mode:
    support: full
    description: Shows the verdicts of the report before and after.
  idempotent:
    support: partial
    description:
      - The devices are asked each time and the report shows when. RV(ignore:changed) is true when
        a verdict changed or a node was switched.
options:
  config:
    description:
      - The JSON file with the fence devices and the levels of each node, as
        M(holdfast.ha.fence_config) writes it. It holds passwords, so it must be readable by its
        owner alone.
    type: path
    default: /etc/holdfast/fence.json
  nodes:
    description:
      - The nodes whose fencing is rehearsed. All nodes of O(config) when not given.
    type: list
    elements: str
  running:
    description:
      - Nodes that are on for sure, such as those that Ansible has just talked to. Their plugs
        have to be on.
    type: list
    elements: str
    default: []
  node_config:
    description:
      - The configuration of a node, such as V(/etc/holdfast/node.json). With it the state of the
        cluster says which nodes are on and which run services.
    type: path
  report:
    description:
      - The file in which the rehearsals are kept. Its folder is made if it is missing.
    type: path
    default: /var/lib/holdfast/fence-rehearsal.json
  max_age:
    description:
      - Days after which a node has to be switched for real again. One that was not, or never, is
        warned of.
    type: float
  consent:
    description:
      - Switches the one node in O(nodes) off and on for real, after it was asked and unless that
        showed that its fencing fails.
      - Refused for the machine that the task runs on, and for a node that is the manager, that runs
        services or may run some, unless O(with_services=true).
      - A node of a cluster is best drained before, with M(holdfast.ha.node_maintenance).
    type: bool
    default: false
  with_services:
    description:
      - Allows O(consent) for a node that runs services, or is the manager. They end with the node,
        and the cluster fences and recovers it as after any other failure.
    type: bool
    default: false
  address:
    description:
      - Where the node of O(consent) answers on the network. It has to fall silent while its plug
        is off and to answer again afterwards. Only this shows that the plug is its own for sure;
        without it a remark is added, in the result and in the report.
    type: str
  port:
    description:
      - The TCP port at O(address) that accepts connections while the node runs.
    type: int
    default: 22
  boot_timeout:
    description:
      - Seconds in which the node has to answer at O(address) again after it was switched on.
    type: float
    default: 600
seealso:
  - module: holdfast.ha.fence
  - module: holdfast.ha.fence_config
  - module: holdfast.ha.node_maintenance
"""

EXAMPLES = r"""
- name: Will fencing work? Nothing is switched
  holdfast.ha.fence_rehearsal:
    running: "{{ ansible_play_hosts }}"
    max_age: 180
  run_once: true

- name: Switch off n3 for real and on again, after it was drained
  holdfast.ha.fence_rehearsal:
    nodes: [n3]
    consent: true
    node_config: /etc/holdfast/node.json
    address: 192.0.2.13
  delegate_to: n1
"""

RETURN = r"""
nodes:
  description: What is known of each node that was rehearsed. Times are seconds since 1970.
  returned: always, but not in check mode
  type: dict
  contains: {}
  sample:
    n3:
      verdict: works
      evidence: device-verified
      problems: []
      remarks: []
      steps:
        - level: 1
          device: outlets
          plug: '3'
          evidence: device-verified
          power: 'on'
          shown: [listed, named, 'on']
          seconds: 0.31
          timeout: 20
          problems: []
      switched_at: 1795226400.0
      switched_age: 86400.0
      plugs:
        - device: outlets
          plug: '3'
          answered_at: 1795312800.0
          answered_seconds: 0.31
          switched_at: 1795226400.0
          switched_seconds: 2.72
      rehearsals:
        - at: 1795312800.0
          manner: asked
          verdict: works
          problems: []
          remarks: []
report:
  description: The file with all rehearsals of all nodes; the text beside it has C(.txt) added.
  returned: success
  type: str
  sample: /var/lib/holdfast/fence-rehearsal.json
would_ask:
  description: For each device what it would be asked; nothing when its agent cannot be run.
  returned: in check mode
  type: dict
  contains: {}
  sample:
    outlets: [validate-all, monitor, list, status of 3]
would_switch:
  description: The node that would be switched off and on for real, or nothing.
  returned: in check mode
  type: list
  elements: str
  sample: [n3]
"""

from ..module_utils._holdfast.operator.cli.rehearse_fence import rehearse_fence
from ..module_utils._module import Options, run

OPTIONS = Options(
    argument_spec={
        "config": {"type": "path", "default": "/etc/holdfast/fence.json"},
        "nodes": {"type": "list", "elements": "str"},
        "running": {"type": "list", "elements": "str", "default": []},
        "node_config": {"type": "path"},
        "report": {"type": "path", "default": "/var/lib/holdfast/fence-rehearsal.json"},
        "max_age": {"type": "float"},
        "consent": {"type": "bool", "default": False},
        "with_services": {"type": "bool", "default": False},
        "address": {"type": "str"},
        "port": {"type": "int", "default": 22},
        "boot_timeout": {"type": "float", "default": 600},
    },
)


def main() -> None:
    """Run the module."""
    run(OPTIONS, rehearse_fence)


if __name__ == "__main__":
    main()
