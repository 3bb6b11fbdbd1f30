#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fence
short_description: Switch machines off or on with fence agents, and prove it
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Switches machines with any installed fence agent, then asks the device for their state in a
    separate call. Only that answer counts, and not the exit status of the agent. Without it the
    task fails.
  - A plug that is off also has to be in the list of its device, since some agents report off for
    plugs that do not exist. Agents that are known to fail for such plugs are not asked for their
    list.
  - The machines are nodes of a fence configuration file, with all their devices and levels, or
    plugs of one agent whose parameters are given in the task.
  - Several machines are handled at the same time, each device with one of them at a time. A machine
    that fails does not stop the others; the task then fails at its end and names the failed ones.
  - The module talks to the devices directly. It neither asks nor informs the cluster, and does not
    check what runs on the machines.
  - Parameters are checked against the agent's metadata before anything is sent. Passwords go to
    the agent on its standard input and appear in no log, result or error.
extends_documentation_fragment:
  - holdfast.ha.attributes
  - holdfast.ha.attributes.no_group
  - holdfast.ha.fence_agent
attributes:
  idempotent:
    support: partial
    description:
      - O(state) and O(action=unfence) are idempotent. O(action=reboot) and O(action=diag) act
        each time.
options:
  config:
    description:
      - The JSON file with the fence devices and the levels of each node, which
        M(holdfast.ha.fence_config) writes. It holds passwords, so it must be readable by its
        owner alone.
    type: path
  nodes:
    description: The nodes in O(config) to act on.
    type: list
    elements: str
    aliases:
      - node
  parameters:
    description:
      - The agent's parameters, such as its address, user and password, without C(action) and
        C(plug). M(holdfast.ha.fence_info) lists them.
      - A false boolean is not sent, because most agents take it for true.
      - The values of all parameters whose names mark them as secrets are hidden.
      - In place of a secret such as C(password), C(password_file) is a file that holds it and
        that only its owner can read, and C(password_script) a program that prints it. The
        program is run without a shell, and not by the agent.
    type: dict
  plugs:
    description:
      - The plugs of the machines on the device of O(agent), or their names there.
      - Each is switched in a call of its own. Agents that are given several at once switch the
        first alone, some of them.
    type: list
    elements: str
    aliases:
      - plug
  timeout:
    description:
      - Seconds for a command and its proof together, with O(agent). The default is V(20).
    type: float
  state:
    description:
      - V(off) switches the machines off unless their devices already report that they are.
      - V(on) switches them on likewise.
    type: str
    choices:
      - 'on'
      - 'off'
  action:
    description:
      - V(reboot) switches the machines off, proves it, and switches them on again. The agent's
        own reboot is never used. Only the levels whose devices all switch power are used. A
        machine without such a level, as one whose devices only cut its access (C(fence_scsi),
        C(fence_ifmib)), is refused before anything is sent to any of the machines.
      - V(unfence) gives a machine back the access that agents such as C(fence_scsi) cut. Some can
        do it on the machine itself alone, so run it there, before it takes up its work.
      - V(diag) sends a diagnostic interrupt, with which a kernel dumps its memory and stops.
        Nothing reports whether it did.
      - V(status) asks whether they are on.
      - V(monitor), V(list), V(list-status) and V(validate-all) ask each of their devices.
    type: str
    choices:
      - reboot
      - unfence
      - diag
      - status
      - list
      - list-status
      - monitor
      - validate-all
notes:
  - In check mode nothing is switched; devices are only asked for their status and their list.
  - The evidence V(assumed) of agents such as C(fence_sbd) or C(fence_scsi) rests on a watchdog on
    the machine, or on its being cut off from storage or network. It may still run.
  - A random or fixed delay of a node in O(config) passes before it is switched off here too.
seealso:
  - module: holdfast.ha.fence_config
  - module: holdfast.ha.fence_info
  - module: holdfast.ha.ocf_action
"""

EXAMPLES = r"""
- name: Switch off two nodes at once with all of their devices, and prove it
  holdfast.ha.fence:
    config: /etc/holdfast/fence.json
    nodes: [n2, n3]
    state: 'off'

- name: Switch on one machine by its management board
  holdfast.ha.fence:
    agent: fence_ipmilan
    parameters:
      ip: 192.0.2.13
      username: fence
      password: "{{ vault_fence_password }}"
      lanplus: true
    state: 'on'

- name: Which outlets does the power switch have, and which are on?
  holdfast.ha.fence:
    agent: fence_apc_snmp
    parameters:
      ip: 192.0.2.20
      community: "{{ vault_community }}"
    action: list-status
  register: outlets
"""

RETURN = r"""
nodes:
  description:
    - What came of each machine, by the name of its node, by its plug with O(agent), and by the
      agent's name for a device without plugs. Those that failed are among them.
  returned: with O(state), or O(action) V(reboot), V(unfence), V(diag) or V(status)
  type: dict
  contains:
    before:
      description: V(on), V(off) or V(unknown), as the devices said before anything was done.
      type: str
    after:
      description: The same afterwards; in check mode what it would be.
      type: str
    changed:
      description: Whether a device was switched; in check mode, would be.
      type: bool
    confirmed:
      description:
        - Whether the devices confirmed it. False in check mode when something would be done.
      type: bool
    evidence:
      description:
        - What that rests on. V(device-verified), the power device itself reports it; V(assumed), it
          relies on a watchdog, or only access was cut; V(none), nothing.
      type: str
    proof:
      description: Whether it is proof at once that the machine is off.
      type: bool
    reason:
      description: In a few words why, or why not.
      type: str
    steps:
      description:
        - What each device was asked and said, in order, with its level, plug, exit status and
          seconds.
      type: list
      elements: dict
    failed:
      description: What went wrong with this machine. Not there when nothing did.
      type: str
  sample:
    n3:
      before: 'on'
      after: 'off'
      changed: true
      confirmed: true
      evidence: device-verified
      proof: true
      reason: bmc-n3 (fence level 1) is off by its own status
      steps:
        - level: 1
          device: bmc-n3
          plug:
          action: status
          exit_status: 2
          timed_out: false
          seconds: 0.22
          text: 'Status: OFF'
devices:
  description: The metadata of each device, or in C(failed) why it did not.
  returned: with O(action) V(monitor), V(list), V(list-status) or V(validate-all)
  type: dict
  contains: {}
  sample:
    pdu1:
      exit_status: 0
      seconds: 0.6
      text: 1,web,ON
      plugs:
        '1':
          alias: web
          power: 'on'
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._holdfast.fence.apply import DEVICE_ACTIONS, operate, plugs_of_device
from ..module_utils._holdfast.fence.describe import check_fence_agents
from ..module_utils._holdfast.fence.topology import (
    DEFAULT_TIMEOUT,
    FenceConfiguration,
    load_fence_configuration,
)
from ..module_utils._module import Options, Result, hide_agent_secrets, run

OPTIONS = Options(
    argument_spec={
        "config": {"type": "path"},
        "nodes": {"type": "list", "elements": "str", "aliases": ["node"]},
        "agent": {"type": "str"},
        "parameters": {"type": "dict"},
        "plugs": {"type": "list", "elements": "str", "aliases": ["plug"]},
        "timeout": {"type": "float"},
        "state": {"type": "str", "choices": ["on", "off"]},
        "action": {
            "type": "str",
            "choices": ["reboot", "unfence", "diag", "status", *DEVICE_ACTIONS],
        },
    },
    required_together=[["config", "nodes"]],
    required_one_of=[["config", "agent"], ["state", "action"]],
    mutually_exclusive=[
        ["config", "agent"],
        ["config", "parameters"],
        ["config", "plugs"],
        ["config", "timeout"],
        ["state", "action"],
    ],
)


def act(options: Mapping[str, Any], check: bool) -> Result:
    configuration, nodes = _machines(options)
    action = options["state"] or options["action"]
    if options["agent"] is not None and action not in DEVICE_ACTIONS:
        # A mistake in the call would only look like a machine whose state is unknown.
        check_fence_agents(configuration)
    return operate(configuration, nodes, action, check)


def _machines(options: Mapping[str, Any]) -> tuple[FenceConfiguration, list[str]]:
    if options["config"] is not None:
        return load_fence_configuration(options["config"]), options["nodes"]
    timeout = options["timeout"]
    configuration = plugs_of_device(
        options["agent"],
        options["parameters"] or {},
        options["plugs"] or [None],
        DEFAULT_TIMEOUT if timeout is None else timeout,
    )
    return configuration, list(configuration.levels)


def _hide(module: AnsibleModule) -> None:
    hide_agent_secrets(module, module.params["parameters"])


def main() -> None:
    run(OPTIONS, act, prepare=_hide)


if __name__ == "__main__":
    main()
