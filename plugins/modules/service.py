#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: service
short_description: Declare what a cluster keeps running
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Writes one service into the desired configuration of the cluster, or removes it.
  - The module only declares. The manager starts, stops and moves the service; with O(wait) the task
    ends when that is done.
  - Other services are left as they are.
extends_documentation_fragment:
  - holdfast.ha.attributes
  - holdfast.ha.attributes.node_group
  - holdfast.ha.node
  - holdfast.ha.waiting
options:
  name:
    description:
      - The id of the service, such as V(web) or V(vm:100).
      - Letters, digits, C(.), C(_), C(:) and C(-), at most 64 characters.
    type: str
    required: true
  state:
    description:
      - With V(started) the service is kept running, with V(stopped) it is kept stopped.
      - With V(absent) it is stopped and then removed. This is refused while a rule names it.
    type: str
    choices:
      - started
      - stopped
      - absent
    default: started
  resources:
    description:
      - The resources of the service, started in this order and stopped in reverse order.
      - Required for a new service. If the service exists, its resources are kept without this
        option.
    type: list
    elements: dict
    suboptions:
      name:
        description:
          - Name of the resource within its service.
        type: str
        required: true
      agent:
        description:
          - The resource agent, written C(ocf:PROVIDER:TYPE). It has to be installed on this node.
        type: str
        required: true
      parameters:
        description:
          - The parameters of the agent. They are checked against its metadata.
          - What is declared is on the shared storage. So a parameter that is a secret by its name,
            or that has a C(password=...) or the password of a URL in its value, is refused. One
            that is declared already stays as it is, and appears in no log, result or diff.
          - Instead write the value into a file in C(/etc/holdfast/secrets) of each node, with mode
            0600, and declare C(NAME_file) with the name of that file, such as
            C(password_file=web.password). Each parameter C(NAME) of an agent can be given so,
            unless it has a parameter C(NAME_file) of its own. C(NAME_script) names a program in
            that folder, with its arguments, that prints the value.
          - The nodes compare their files with that of the node on which the service was declared.
            The status names those that differ.
          - A password that is V(********), as in what M(holdfast.ha.configuration_info) returns,
            stays the one that is declared.
        type: dict
        default: {}
      secrets:
        description:
          - Names of further parameters that are secrets, which their names do not show.
        type: list
        elements: str
        default: []
      start_timeout:
        description:
          - Seconds after which a start has failed.
          - By default it stays as it is declared. A new resource gets what its agent advises, or
            30 seconds without advice. A later version of the agent changes nothing, because a
            service whose timeouts change is restarted.
        type: float
      stop_timeout:
        description:
          - Seconds after which a stop has failed. The default is that of
            O(resources[].start_timeout).
        type: float
      monitor_timeout:
        description:
          - Seconds after which a monitor has failed. The default is that of
            O(resources[].start_timeout), with 20 seconds without advice.
        type: float
      monitor_interval:
        description:
          - Seconds between two monitors.
          - By default it stays as it is declared, and is 10 seconds for a new resource.
        type: float
      check_level:
        description:
          - How deep a monitor looks, for agents that know of levels. The agent gets it as
            C(OCF_CHECK_LEVEL). With V(20), C(ocf:heartbeat:Filesystem) writes a file, and so
            notices a file system that the kernel has made read-only.
          - A change does not restart the service.
          - By default it stays as it is declared, and is V(0) for a new resource.
        type: int
        version_added: 0.2.0
  max_restart:
    description:
      - How often a failed start, or a service that died, is retried on its node.
      - The default for a new service is V(1).
    type: int
  max_relocate:
    description:
      - How many further nodes are tried afterwards.
      - The default for a new service is V(1).
    type: int
  backoff:
    description:
      - Seconds for which a service that failed while it ran, three times in a row, waits before it
        is restarted. Each further time it waits twice as long, up to O(backoff_max).
      - A service that ran for a minute starts counting from zero.
      - The default for a new service is V(10).
    type: float
  backoff_max:
    description:
      - The longest wait of O(backoff), in seconds.
      - The default for a new service is V(300).
    type: float
  failback:
    description:
      - Whether the service moves back to a node that its rule prefers as soon as that node is
        available.
      - The default for a new service is V(true).
    type: bool
  node:
    description:
      - The node on which a new service is started first, if it may run there.
      - A node that is silent, or off without a fence, may already run the service. The cluster
        waits for that node until it answers or is fenced. To start the service without that node,
        declare it on another one.
      - Later, the rules and the manager decide where it runs. To move it use
        M(holdfast.ha.service_move).
    type: str
  cpus:
    description:
      - CPUs that the service takes, for O(holdfast.ha.cluster_policy#module:placement=load).
      - The default for a new service is V(0), which counts as not known.
    type: float
  memory:
    description:
      - Memory that the service takes, in MiB, for
        O(holdfast.ha.cluster_policy#module:placement=load).
      - The default for a new service is V(0), which counts as not known.
    type: float
  utilization:
    description:
      - What the service takes of other resources of its node, as whole numbers by name, such as
        two of C(gpu). The nodes declare what they have with M(holdfast.ha.node_properties), in the
        same units. The service is never placed on a node that has too little of one.
      - While the service moves, it takes them on both nodes.
      - If not given, it stays as it is declared. An empty dictionary removes all.
    type: dict
    version_added: 0.2.0
  ignored:
    description:
      - Leave the service unmanaged. It is neither monitored nor recovered until this is V(false).
      - The default for a new service is V(false).
    type: bool
  live_migration:
    description:
      - Move the service while it runs, by the actions C(migrate_to) and C(migrate_from) of its
        resource agent. It needs an agent that has them, and one resource only.
      - A migration that fails leaves the service where it runs. The next move stops and starts it.
      - The default for a new service is V(false).
    type: bool
  after:
    description:
      - Services that must run before this one is started. They have to be declared, and must not
        wait for this one in turn.
      - Where one of them is to stop as well, or to leave its node, this one stops first and starts
        again after it. That holds for a drain, a shutdown of the node, a stop, a move and a changed
        definition, of all of them together.
      - A live migration of this service comes first too. One of the other service interrupts
        nothing, so nothing waits for it.
      - What stops or moves alone does not stop this one. It also runs on when one of them fails.
      - An unmanaged service is not waited for, nor one on a node that does not answer.
      - By default there are none.
    type: list
    elements: str
  fence_on_stop_failure:
    description:
      - Fence the node on which the service cannot be stopped, so that it can run elsewhere.
      - The manager does not fence its own node. There the service stays in error until another
        node is the manager.
      - If the service cannot be stopped on the next nodes either, before it ran for a minute, at
        most O(max_relocate) more nodes are fenced. Then it stays in error.
      - The default for a new service is V(false).
    type: bool
  validate:
    description:
      - Whether the resource agents of this node check what is new or changed, in check mode too.
      - The action C(validate-all) is called where the agent has it. An agent that refuses the
        parameters fails the task. One that misses a program or file on this node gives a warning,
        because the service may run on other nodes.
      - A parameter that an agent calls unique, such as C(ip) of C(ocf:heartbeat:IPaddr2), must
        differ from that of all other resources of this agent. Unique groups count together.
      - With V(false) neither is done. The names and types of parameters are checked always.
    type: bool
    default: true
  replace:
    description:
      - Whether an existing service may be changed or removed. With V(false) the task fails in that
        case; an identical service is no failure.
    type: bool
    default: true
  clear_error:
    description:
      - Clear the state C(error) of the service once the cause is fixed. Remaining processes of it
        are stopped first, then it is started.
      - Only with O(state=started).
    type: bool
    default: false
  stop_within:
    description:
      - Seconds that each resource gets for this one stop, instead of its C(stop_timeout).
      - Only with O(state=stopped). It means nothing for a service that is declared stopped already.
    type: float
  wait:
    description:
      - Wait until the service is in the desired state, and fail with its reason if it is not.
      - A service that ends up in C(error) instead of started fails the task at once.
    type: bool
    default: false
seealso:
  - module: holdfast.ha.service_move
  - module: holdfast.ha.cluster_policy
  - module: holdfast.ha.rule
  - module: holdfast.ha.configuration
  - module: holdfast.ha.cluster_info
"""

EXAMPLES = r"""
- name: Keep a database with its address running
  holdfast.ha.service:
    name: database
    resources:
      - name: address
        agent: ocf:heartbeat:IPaddr2
        parameters:
          ip: 192.0.2.10
          cidr_netmask: 24
      - name: server
        agent: ocf:heartbeat:pgsql
        parameters:
          pgdata: /srv/postgresql
        start_timeout: 120
    wait: true

- name: Keep a virtual machine running that moves without a stop, once its storage is there
  holdfast.ha.service:
    name: vm:100
    resources:
      - name: guest
        agent: ocf:heartbeat:VirtualDomain
        parameters:
          config: /srv/guests/100.xml
        stop_timeout: 180
    live_migration: true
    after: [storage]
    node: node1
    cpus: 4
    memory: 8192
    fence_on_stop_failure: true

- name: Start it again after the cause was fixed
  holdfast.ha.service:
    name: vm:100
    clear_error: true
    wait: true

- name: Stop a service, and keep it stopped
  holdfast.ha.service:
    name: database
    state: stopped
"""

RETURN = r"""
service:
  description: The service as it is declared now; V(null) if it is absent.
  returned: success
  type: dict
  sample:
    name: web
    state: started
    resources: []
    max_restart: 1
    max_relocate: 1
    failback: true
cleared:
  description: Whether its error was cleared, or in check mode would be.
  returned: success
  type: bool
  sample: false
version:
  description: The version of the desired configuration.
  returned: success
  type: int
  sample: 12
status:
  description: State, node and reason of the service at the end of the wait.
  returned: when O(wait=true) and not in check mode
  type: dict
  sample:
    state: started
    node: n2
    reason: the only node that can take it
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._declarations import SERVICE
from ..module_utils._holdfast.operator.operations.service import declare_service
from ..module_utils._module import NODE_OPTIONS, hide_agent_secrets, run

OPTIONS = NODE_OPTIONS.merge(
    SERVICE,
    replace={"type": "bool", "default": True},
    clear_error={"type": "bool", "default": False},
    stop_within={"type": "float"},
    wait={"type": "bool", "default": False},
    timeout={"type": "float", "default": 60},
)


def _hide(module: AnsibleModule) -> None:
    for row in module.params["resources"] or ():
        hide_agent_secrets(module, row.get("parameters"), row.get("secrets") or ())


def main() -> None:
    """Run the module."""
    run(OPTIONS, declare_service, prepare=_hide)


if __name__ == "__main__":
    main()
