#!/usr/bin/python
# Copyright: 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fence
short_description: Switch a machine off or on with a fence agent, and prove it
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Switches one machine with any installed fence agent, and asks the device for its state
    afterwards in a call of its own. Only that answer counts, not what the agent said of its
    success. Without it the task fails.
  - The machine is a node of a fence configuration file, with all its devices and levels, or one
    plug of an agent whose parameters are given in the task.
  - It talks to the device at once and itself. It does not ask the cluster, does not tell it
    either, and does not look what runs on the machine.
  - Parameters are checked against the agent's metadata before anything is sent. Passwords go to
    the agent on its standard input and appear in no log, result or error.
extends_documentation_fragment:
  - holdfast.ha.attributes
attributes:
  idempotent:
    support: partial
    description:
      - O(state) is idempotent. O(action=reboot) switches the machine off and on each time.
options:
  config:
    description:
      - The JSON file with the fence devices and the levels of each node. It holds passwords, so
        it must be readable by its owner alone.
    type: path
  node:
    description: The node in O(config) to act on.
    type: str
  agent:
    description: A fence agent by name, such as V(fence_ipmilan), or by its whole path.
    type: str
  parameters:
    description:
      - The agent's parameters, such as its address, user and password, without C(action) and
        C(plug).
      - A false boolean is not sent, because most agents take it for true.
      - The values of all parameters whose names say that they are secrets are hidden.
    type: dict
  plug:
    description:
      - The plug of the machine on the device of O(agent), or its name there.
      - One only. Agents take a comma for several plugs, and some switch the first alone.
    type: str
  timeout:
    description:
      - Seconds for a command and its proof together, with O(agent). The default is V(20).
    type: float
  state:
    description:
      - V(off) switches the machine off unless its devices already say that it is.
      - V(on) switches it on likewise.
    type: str
    choices:
      - 'on'
      - 'off'
  action:
    description:
      - V(reboot) switches the machine off, proves it, and switches it on again. The agent's own
        reboot is never used.
      - V(status) asks whether it is on.
      - V(monitor), V(list), V(list-status) and V(validate-all) ask each of its devices.
    type: str
    choices:
      - reboot
      - status
      - list
      - list-status
      - monitor
      - validate-all
notes:
  - In check mode nothing is switched; devices are only asked.
  - The evidence RV(evidence=assumed) of agents such as C(fence_sbd) or C(fence_scsi) rests on a
    watchdog on the machine, or on its being cut off from storage or network. It may still run.
seealso:
  - module: holdfast.ha.ocf_action
"""

EXAMPLES = r"""
- name: Switch off a node with all of its devices, and prove it
  holdfast.ha.fence:
    config: /etc/holdfast/fence.json
    node: n3
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

- name: Which outlets does the power switch have?
  holdfast.ha.fence:
    agent: fence_apc_snmp
    parameters:
      ip: 192.0.2.20
      community: "{{ vault_community }}"
    action: list
  register: outlets
"""

RETURN = r"""
before:
  description: V(on), V(off) or V(unknown), as the devices said before anything was done.
  returned: with O(state), O(action=reboot) or O(action=status)
  type: str
  sample: 'on'
after:
  description: The same afterwards; in check mode what it would be.
  returned: with O(state), O(action=reboot) or O(action=status)
  type: str
  sample: 'off'
confirmed:
  description:
    - Whether the devices proved RV(after). False in check mode when something would be done.
  returned: with O(state), O(action=reboot) or O(action=status)
  type: bool
  sample: true
evidence:
  description:
    - What the proof rests on. V(device-verified), the power device itself says so; V(assumed),
      it relies on a watchdog, or only access was cut; V(none), there is no proof.
  returned: with O(state), O(action=reboot) or O(action=status)
  type: str
  sample: device-verified
reason:
  description: In a few words why, or why not.
  returned: with O(state), O(action=reboot) or O(action=status)
  type: str
  sample: level 1 is off
steps:
  description: What each device was asked and said, in order.
  returned: with O(state), O(action=reboot) or O(action=status)
  type: list
  elements: dict
  sample:
    - level: 1
      device: bmc-n3
      plug:
      action: status
      exit_status: 2
      timed_out: false
      seconds: 0.22
      text: 'Status: OFF'
devices:
  description: What each device said of itself.
  returned: with O(action) V(monitor), V(list), V(list-status) or V(validate-all)
  type: dict
  contains: {}
  sample:
    pdu1:
      exit_status: 0
      seconds: 0.6
      text: 1,web
      plugs:
        '1': web
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._holdfast.fence.apply import (
    DEVICE_ACTIONS,
    apply_power,
    ask_devices,
    described,
    plan_power,
    single_device,
)
from ..module_utils._holdfast.fence.prove import check_fence_agents, power_status
from ..module_utils._holdfast.fence.topology import (
    DEFAULT_TIMEOUT,
    FenceConfiguration,
    load_fence_configuration,
)
from ..module_utils._module import Options, Result, hide_agent_secrets, run

OPTIONS = Options(
    argument_spec={
        "config": {"type": "path"},
        "node": {"type": "str"},
        "agent": {"type": "str"},
        "parameters": {"type": "dict"},
        "plug": {"type": "str"},
        "timeout": {"type": "float"},
        "state": {"type": "str", "choices": ["on", "off"]},
        "action": {"type": "str", "choices": ["reboot", "status", *DEVICE_ACTIONS]},
    },
    required_together=[["config", "node"]],
    required_one_of=[["config", "agent"], ["state", "action"]],
    mutually_exclusive=[
        ["config", "agent"],
        ["config", "parameters"],
        ["config", "plug"],
        ["config", "timeout"],
        ["state", "action"],
    ],
)


def act(options: Mapping[str, Any], check: bool) -> Result:
    configuration, node = _machine(options)
    action = options["action"]
    if action in DEVICE_ACTIONS:
        answers = ask_devices(configuration, node, action)
        return Result(values={"devices": {one.device: one.described() for one in answers}})
    if action == "status":
        found = power_status(configuration, node)
        return Result(values={"before": found.power, "after": found.power, **described(found)})
    if check and options["agent"] is not None:
        # A mistake in the call would only look like a machine whose state is unknown.
        check_fence_agents(configuration)
    plan = plan_power(configuration, node, options["state"] or action)
    proof = plan.expected() if check else apply_power(configuration, plan)
    return Result(
        changed=bool(plan.commands),
        values={"before": plan.before.power, "after": plan.after, **described(proof)},
        before={"power": plan.before.power},
        after={"power": plan.after},
    )


def _machine(options: Mapping[str, Any]) -> tuple[FenceConfiguration, str]:
    if options["config"] is not None:
        return load_fence_configuration(options["config"]), options["node"]
    timeout = options["timeout"]
    return single_device(
        options["agent"],
        options["parameters"] or {},
        options["plug"],
        DEFAULT_TIMEOUT if timeout is None else timeout,
    )


def _hide(module: AnsibleModule) -> None:
    hide_agent_secrets(module, module.params["parameters"])


def main() -> None:
    run(OPTIONS, act, prepare=_hide)


if __name__ == "__main__":
    main()
