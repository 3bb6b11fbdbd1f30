#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_info
short_description: Read the state of a cluster
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Reads the state of the whole cluster from its storage, as this node sees it.
  - No daemon is asked, so the module also works while all daemons are stopped.
  - With O(until) the task waits for a state of the cluster.
extends_documentation_fragment:
  - holdfast.ha.attributes.info_module
  - holdfast.ha.attributes.node_group
  - holdfast.ha.node
attributes:
  check_mode:
    support: full
    description: The cluster is changed in no mode; O(page) is not written in check mode.
options:
  probe:
    description:
      - Also ask the resource agents what really runs on the node on which the module runs.
    type: bool
    default: false
  until:
    description:
      - With V(settled) wait until everything is as configured. All nodes are online and in no
        transition, all services are in the desired state, no failover is under way, and the manager
        uses the newest configuration.
      - With V(recovered) wait for the same, whatever the states of the nodes are.
    type: str
    choices:
      - now
      - settled
      - recovered
    default: now
  failover_of:
    description:
      - With O(until=settled) or O(until=recovered) also wait until there is a finished failover
        of this node that began after O(since).
    type: str
  recovered_from:
    description:
      - With O(until=recovered) wait until the manager has found that this node is off, and the
        services that it had are in the desired state. Problems of other services do not count.
    type: str
  since:
    description:
      - Seconds since 1970, see O(failover_of).
    type: float
    default: 0
  timeout:
    description:
      - Seconds to wait with O(until).
    type: float
    default: 60
  page:
    description:
      - Absolute path of a file into which the status page is written, one HTML file that needs
        no network.
    type: path
seealso:
  - module: holdfast.ha.metadata_info
"""

EXAMPLES = r"""
- name: Look at the cluster
  holdfast.ha.cluster_info:
  register: cluster

- name: Fail if a service does not run
  ansible.builtin.assert:
    that: cluster.services.web.state == 'started'

- name: Wait until everything is as configured, and write a status page
  holdfast.ha.cluster_info:
    until: settled
    page: /srv/www/ha.html
"""

RETURN = r"""
cluster:
  description: Name of the cluster.
  returned: success
  type: str
  sample: rack1
backend:
  description: The lease backend.
  returned: success
  type: str
  sample: embedded
at:
  description: When this was read, in seconds since 1970.
  returned: success
  type: float
  sample: 1790000000.0
global_maintenance:
  description: Whether nothing is done because of global maintenance.
  returned: success
  type: bool
  sample: false
maintenance:
  description:
    - Why the cluster is in global maintenance, by whom, since when and until when, the times in
      seconds since 1970; V(null) if it is not. An empty owner is somebody who set it on the
      whiteboard.
  returned: success
  type: dict
  sample: {reason: new switches, owner: ada, since: 1790000000.0, until: 1790007200.0}
disarm:
  description: Whether the cluster is being disarmed or is, and what becomes of the services;
    which node it waits for; why, by whom and since when; V(null) if it is armed.
  returned: success
  type: dict
  sample:
    state: disarmed
    mode: freeze
    waits_for: ""
    reason: new storage
    owner: ada
    since: 1790000000.0
policy:
  description: The policy of the cluster, as M(holdfast.ha.cluster_policy) has it.
  returned: success
  type: dict
  sample: {shutdown: conditional, placement: count}
config_version:
  description: The version of the desired configuration.
  returned: success
  type: int
  sample: 14
config_taken_up:
  description: The version of the configuration that the manager goes by.
  returned: success
  type: int
  sample: 14
generation:
  description: How often the records were repaired by an operator.
  returned: success
  type: int
  sample: 0
manager_epoch:
  description: The epoch of the manager's record; its lease has a higher one until it is taken over.
  returned: success
  type: int
  sample: 3
regressions:
  description: What on storage is older than what was acted on; the cluster is paused meanwhile.
  returned: success
  type: list
  elements: str
  sample: []
damaged_copies:
  description: What is wrong with copies of records that are in use.
  returned: success
  type: list
  elements: str
  sample: []
authentication:
  description:
    - The policy of the node for records and messages without a right MAC, what on the storage was
      not written by a member, and why the cluster key cannot be read.
  returned: success
  type: dict
  sample: {policy: enforce, not_authentic: [], key_problem: ""}
manager:
  description: The node that has the manager lease, its epoch, and whether it is held now.
  returned: success
  type: dict
  sample: {node: n1, epoch: 3, active: true}
configuration_lease:
  description: The same of the configuration lease; it is held only while something is changed.
  returned: success
  type: dict
  sample: {node: n1, epoch: 14, active: false}
nodes:
  description: The state of each node, with its reason, services, score and host lease.
  returned: success
  type: dict
  sample:
    n1: {state: online, reason: "", host_id: 1, services: [web]}
services:
  description: The state of each service, with its node, the reason for it, and how that was chosen.
  returned: success
  type: dict
  sample:
    web: {state: started, wanted: started, node: n1, reason: the only node that can take it}
rules:
  description: The rules.
  returned: success
  type: list
  elements: dict
  sample: []
failovers:
  description: The last failovers, each with its steps in seconds since the last heartbeat.
  returned: success
  type: list
  elements: dict
  sample:
    - node: n1
      reason: no heartbeat for 3.2 s and no answer on the network
      proof: machine switched off, and its status is off
      seconds: {suspected: 3.2, recorded: 3.2, fence_sent: 3.2, confirmed: 3.6, finished: 5.1}
events:
  description: The last lines of the history.
  returned: success
  type: list
  elements: dict
  sample: []
conditions:
  description:
    - Everything to act on, or to wait for. Each has C(id), C(severity) (error, warning or note),
      C(subject), C(text) and C(next), a command.
  returned: success
  type: list
  elements: dict
  sample: []
problems:
  description: The texts of the errors, one sentence each.
  returned: success
  type: list
  elements: str
  sample: []
under_way:
  description: The texts of the conditions that end without an operator, one sentence each.
  returned: success
  type: list
  elements: str
  sample: []
running_here:
  description: What each declared service is on this node by the word of its agents.
  returned: when O(probe=true)
  type: dict
  sample: {web: running, cache: stopped}
failover_text:
  description: The timeline of each node's last failover as lines of text for people.
  returned: success
  type: dict
  sample: {n1: []}
text:
  description: The whole status as lines of text for people.
  returned: success
  type: list
  elements: str
  sample: []
"""

from ..module_utils._holdfast.operator.cluster_info import inform
from ..module_utils._module import NODE_OPTIONS, run

OPTIONS = NODE_OPTIONS.merge(
    probe={"type": "bool", "default": False},
    until={"type": "str", "choices": ["now", "settled", "recovered"], "default": "now"},
    failover_of={"type": "str"},
    recovered_from={"type": "str"},
    since={"type": "float", "default": 0},
    timeout={"type": "float", "default": 60},
    page={"type": "path"},
)


def main() -> None:
    """Run the module."""
    run(OPTIONS, inform)


if __name__ == "__main__":
    main()
