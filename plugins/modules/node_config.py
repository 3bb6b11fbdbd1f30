#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_config
short_description: Write the configuration file of a node
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Checks the configuration of a node as a whole and writes it, whole or not at all.
  - The daemons read it when they start.
extends_documentation_fragment:
  - holdfast.ha.attributes
  - holdfast.ha.attributes.no_group
  - holdfast.ha.node
options:
  cluster:
    description:
      - Name of the cluster.
    type: str
    required: true
  node:
    description:
      - Name of the node; one of O(members).
    type: str
    required: true
  storage:
    description:
      - Absolute path of the folder on the shared storage, or of a block device.
    type: path
    required: true
  storage_id:
    description:
      - For a block device, the id that M(holdfast.ha.storage_device_info) shows. The node does not
        join the cluster on a device with another id, even if a cluster of the same name has it.
      - If not given, only the name of the cluster is compared.
    type: str
  folder:
    description:
      - Absolute path of the folder for what the node keeps for itself. It is made if needed.
    type: path
    required: true
  members:
    description:
      - All nodes of the cluster, the same on each of them.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the node.
        type: str
        required: true
      host_id:
        description: Host id of the node, from V(1) to V(2000). Each node has its own.
        type: int
        required: true
      address:
        description: IP address on which the node's daemons listen.
        type: str
        default: 127.0.0.1
      port:
        description: UDP port of the node. This and the next two belong to it.
        type: int
        required: true
      lease_proof:
        description:
          - Whether a host lease of the node that ran out behind its watchdog proves the node dead.
          - Without it that depends on what the LRM of the node reported. It is V(true) for a
            physical machine and V(false) for a virtual one, whose watchdog may stop while its
            hypervisor pauses it.
          - Set V(true) for a virtual machine only if what resets it runs outside of it, also while
            it is paused. Set V(false) for a physical machine that can be suspended.
        type: bool
  backend:
    description:
      - The lease backend. With V(sanlock) it is the sanlock daemon of each node, which a real
        cluster needs. With V(embedded) it is the kernel of this one machine, so all nodes have
        to be on it.
    type: str
    choices:
      - embedded
      - sanlock
    default: embedded
  sanlock:
    description:
      - How sanlock is set up, with O(backend=sanlock). The times must be the same on all nodes.
      - The name of the node must be the C(our_host_name) of its sanlock.
    type: dict
    suboptions:
      io_timeout:
        description:
          - The I/O timeout of the lockspace in seconds, see
            O(holdfast.ha.lockspace#module:io_timeout).
          - A node whose lockspace was made with another one does not join.
        type: int
        default: 2
      watchdog_timeout:
        description:
          - Seconds after which a node is reset whose sanlock has lost the lockspace. It has to be
            what the sanlock of the node really uses, or the node does not join.
          - That is V(60), or with sanlock 3.9 or newer V(30) beside an I/O timeout of 5, or V(10)
            beside one of 2, if C(/etc/sanlock/sanlock.conf) sets that.
          - V(0) is for nodes without a watchdog. Then no host lease that runs out proves that its
            node is dead, and only a fence does.
        type: int
        default: 60
      run_directory:
        description:
          - Absolute path of the folder with the sockets of a sanlock that a machine of a cluster on
            one computer has to itself. It is started with the machine and has no watchdog.
          - Leave it out on a real node.
        type: path
  agent_directories:
    description:
      - Where resource agents are, each a folder that has C(resource.d) in it.
    type: list
    elements: path
    default:
      - /usr/lib/ocf
  allowed_agents:
    description:
      - The resource agents that this node may run, as patterns such as C(ocf:heartbeat:*). The last
        pattern that matches decides; one that begins with C(!) refuses. An agent that no pattern
        matches is refused.
      - A service is defined on shared storage, and its agents run as root. So this list is in the
        file of the node, which only root can write. The default refuses C(ocf:holdfast:command),
        which runs any command.
      - The manager starts no service on a node that may not run its agents. A change that refuses
        an agent of a service on the node is not accepted.
    type: list
    elements: str
    default:
      - '*'
      - '!ocf:holdfast:command'
  fence_configuration:
    description:
      - Absolute path of the fence configuration.
    type: path
    default: /etc/holdfast/fence.json
  authentication:
    description:
      - What the node does about records, blocks and datagrams without a right MAC under the cluster
        key. V(off) makes no MACs and believes everything. V(warn) makes them, believes everything
        and names what has none. V(enforce) believes only what has one.
      - It is the same on all nodes. A running cluster gets from V(off) to V(enforce) by way of
        V(warn) on all nodes, and back the same way; anything else is refused.
    type: str
    choices:
      - 'off'
      - warn
      - enforce
    default: 'off'
  cluster_key:
    description:
      - Absolute path of the file with the cluster key, see M(holdfast.ha.cluster_key).
    type: path
    default: /etc/holdfast/cluster.key
  timing:
    description:
      - Times in seconds and limits that differ from the defaults, the same on all nodes.
      - C(profile) (V(default)) is the set of times from which they differ. With V(fast) nodes send
        keepalives besides heartbeats, and are suspected sooner. It needs O(authentication) and at
        most 64 members.
      - C(suspect_after) (2) is the silence before a node is suspected, C(heartbeat) (0.5) the time
        between two heartbeats of a node, C(look) (0.5) between two looks of the manager at all
        nodes. With more than 64 members they are 3, 1 and 1. C(keepalive) (0 for none) is the time
        between two keepalives of a node. With keepalives C(suspect_soonest) (0.8) is the least
        silence of both before a node is suspected. V(fast) has C(heartbeat) 0.25, C(look) 0.2 and
        C(keepalive) 0.1.
      - C(daemon_grace) (30) is how long a node that lives may be without its LRM, at least 25 where
        nodes have a watchdog. So long, beyond C(suspect_after), a node that has just joined waits
        for nodes that may be booting too, before it has them fenced.
        C(candidate_delay) (2) is how much later each further node acts when that of the manager
        died. C(standbys) (2) is how many nodes beside the manager observe all nodes.
      - C(fence_retry) (5) is the wait after a failed fence, doubled each time up to 60.
        C(concurrent_fences) (2) is how many there are at a time. A node that was fenced
        C(fence_limit) (3) times for one cause within C(fence_window) (900) stays off.
      - With C(power_on_after_fence) (true) a fenced node is switched on again after its recovery.
    type: dict
    default: {}
seealso:
  - module: holdfast.ha.service
  - module: holdfast.ha.cluster_key
"""

EXAMPLES = r"""
- name: Configure a node
  holdfast.ha.node_config:
    cluster: rack1
    node: node1
    storage: /srv/ha
    folder: /var/lib/holdfast
    members:
      - {name: node1, host_id: 1, address: 192.0.2.1, port: 7410}
      - {name: node2, host_id: 2, address: 192.0.2.2, port: 7410}

- name: Configure a node of a cluster on sanlock 3.9 with a fast watchdog
  holdfast.ha.node_config:
    cluster: rack1
    node: node1
    storage: /srv/ha
    folder: /var/lib/holdfast
    backend: sanlock
    sanlock:
      io_timeout: 2
      watchdog_timeout: 10
    members:
      - {name: node1, host_id: 1, address: 192.0.2.1, port: 7410}
      - {name: node2, host_id: 2, address: 192.0.2.2, port: 7410}
"""

RETURN = r"""
configuration:
  description: The configuration as it is in the file.
  returned: success
  type: dict
  sample:
    cluster: rack1
    node: node1
"""

from ..module_utils._holdfast.operator.operations.node_files import declare_node
from ..module_utils._module import NODE_OPTIONS, run

MEMBER = {
    "name": {"type": "str", "required": True},
    "host_id": {"type": "int", "required": True},
    "address": {"type": "str", "default": "127.0.0.1"},
    "port": {"type": "int", "required": True},
    "lease_proof": {"type": "bool"},
}

SANLOCK = {
    "io_timeout": {"type": "int", "default": 2},
    "watchdog_timeout": {"type": "int", "default": 60},
    "run_directory": {"type": "path"},
}

OPTIONS = NODE_OPTIONS.merge(
    cluster={"type": "str", "required": True},
    node={"type": "str", "required": True},
    storage={"type": "path", "required": True},
    storage_id={"type": "str"},
    folder={"type": "path", "required": True},
    members={
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": MEMBER,
    },
    backend={
        "type": "str",
        "choices": ["embedded", "sanlock"],
        "default": "embedded",
    },
    sanlock={"type": "dict", "options": SANLOCK},
    agent_directories={
        "type": "list",
        "elements": "path",
        "default": ["/usr/lib/ocf"],
    },
    allowed_agents={
        "type": "list",
        "elements": "str",
        "default": ["*", "!ocf:holdfast:command"],
    },
    fence_configuration={"type": "path", "default": "/etc/holdfast/fence.json"},
    authentication={"type": "str", "choices": ["off", "warn", "enforce"], "default": "off"},
    cluster_key={"type": "path", "default": "/etc/holdfast/cluster.key", "no_log": False},
    timing={"type": "dict", "default": {}},
)


def main() -> None:
    """Run the module."""
    run(OPTIONS, declare_node)


if __name__ == "__main__":
    main()
