#!/usr/bin/python
# Copyright: 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ocf_action
short_description: Bring one resource into a state with any OCF resource agent
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Calls a resource agent on this node as a cluster does, with its whole environment and under
    a deadline at which the agent and its children are killed.
  - The state is found by a probe, what is needed is called, and a monitor must agree afterwards.
  - It acts on this node alone and at once. It does not ask the cluster, so do not use it on a
    resource of a service that the cluster keeps running.
  - Parameters and actions are checked against the agent's metadata before anything is called.
extends_documentation_fragment:
  - holdfast.ha.attributes
attributes:
  idempotent:
    support: partial
    description:
      - O(state) is idempotent but for V(restarted) and V(reloaded), which act each time, as do
        those of O(action) that change something.
options:
  agent:
    description: The resource agent, such as V(ocf:heartbeat:IPaddr2).
    type: str
    required: true
  name:
    description:
      - The name of the resource. Agents keep their state under it, so use one name always, and
        for one resource only.
    type: str
    required: true
    aliases:
      - instance
  parameters:
    description:
      - The agent's parameters. The values of those whose names say that they are secrets are
        hidden.
    type: dict
    default: {}
  state:
    description:
      - V(started) starts the resource unless it runs; one that failed is stopped first.
      - V(stopped) stops it unless it is stopped.
      - V(restarted) stops and starts it.
      - V(reloaded) reloads its configuration, or starts it when it is stopped.
      - V(promoted) and V(demoted) start it if needed and give it that role.
    type: str
    choices:
      - started
      - stopped
      - restarted
      - reloaded
      - promoted
      - demoted
  action:
    description:
      - One action of the agent, called once, whatever the state is. The task does not fail when
        C(monitor) or C(status) finds the resource stopped or failed.
      - C(monitor), C(status), C(validate-all), C(meta-data), C(usage) and C(methods) change
        nothing and are called in check mode too.
    type: str
  check_level:
    description: How deep a C(monitor) looks, for agents that know of levels, such as V(10).
    type: int
  interval:
    description:
      - Seconds between checks, told to the agent with O(action). V(0) makes C(monitor) a probe,
        which some agents answer differently from a check of health.
    type: float
    default: 0
  timeout:
    description:
      - Seconds for each action. If not given, what the agent advises, or 20.
    type: float
  agent_directories:
    description:
      - Where resource agents are looked for, each with a folder C(resource.d). The first that has
        the agent wins.
    type: list
    elements: path
    default:
      - /usr/lib/ocf
    aliases:
      - directories
  ocf_root:
    description: Where the functions are that the distribution's agents share.
    type: path
    default: /usr/lib/ocf
  run_directory:
    description:
      - Where agents keep what must not survive a boot. It must be the same for all actions of a
        resource.
    type: path
    default: /run/resource-agents
  node:
    description: The node's name as told to the agent. If not given, it is told none.
    type: str
seealso:
  - module: holdfast.ha.fence
"""

EXAMPLES = r"""
- name: Bring up an address
  holdfast.ha.ocf_action:
    agent: ocf:heartbeat:IPaddr2
    name: web-address
    parameters:
      ip: 192.0.2.50
      cidr_netmask: 24
    state: started

- name: Is the database healthy?
  holdfast.ha.ocf_action:
    agent: ocf:heartbeat:pgsql
    name: db
    parameters:
      pgdata: /srv/db
    action: monitor
    interval: 10
  register: db

- name: Stop a program of our own, with the collection's agent
  holdfast.ha.ocf_action:
    agent: ocf:holdfast:command
    name: web
    parameters:
      command: /usr/bin/python3 -m http.server 8080
      port: 8080
    agent_directories:
      - /usr/lib/holdfast/ocf
      - /usr/lib/ocf
    state: stopped
"""

RETURN = r"""
before:
  description:
    - V(started), V(promoted), V(stopped), V(failed), or V(absent) when its program is not
      installed here.
  returned: with O(state)
  type: str
  sample: stopped
after:
  description: The same afterwards; in check mode what it would be.
  returned: with O(state)
  type: str
  sample: started
actions:
  description: What was called to get there, in order; in check mode what would be.
  returned: with O(state)
  type: list
  elements: str
  sample:
    - start
code:
  description: The OCF code of the last call, 0 to 9, 190 or 191. All other ways to end are 1.
  returned: when the agent was called
  type: int
  sample: 0
meaning:
  description: What RV(code) means.
  returned: when the agent was called
  type: str
  sample: success
reason:
  description: What the agent gave as the reason for RV(code), if anything.
  returned: when the agent was called
  type: str
  sample: ''
timed_out:
  description: Whether the last call was killed at its deadline.
  returned: when the agent was called
  type: bool
  sample: false
duration:
  description: Seconds that all calls took together.
  returned: when the agent was called
  type: float
  sample: 0.31
stdout:
  description: What the action printed.
  returned: with O(action)
  type: str
  sample: ''
stderr:
  description: What the action printed to its standard error.
  returned: with O(action)
  type: str
  sample: ''
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._holdfast.ocf.apply import (
    READ_ONLY_ACTIONS,
    STATES,
    Resource,
    apply_plan,
    check_action,
    perform,
    plan_state,
    prepare,
)
from ..module_utils._holdfast.ocf.call import OcfResult
from ..module_utils._module import Options, Result, hide_agent_secrets, run

OPTIONS = Options(
    argument_spec={
        "agent": {"type": "str", "required": True},
        "name": {"type": "str", "required": True, "aliases": ["instance"]},
        "parameters": {"type": "dict", "default": {}},
        "state": {"type": "str", "choices": list(STATES)},
        "action": {"type": "str"},
        "check_level": {"type": "int"},
        "interval": {"type": "float", "default": 0},
        "timeout": {"type": "float"},
        "agent_directories": {
            "type": "list",
            "elements": "path",
            "default": ["/usr/lib/ocf"],
            "aliases": ["directories"],
        },
        "ocf_root": {"type": "path", "default": "/usr/lib/ocf"},
        "run_directory": {"type": "path", "default": "/run/resource-agents"},
        "node": {"type": "str"},
    },
    required_one_of=[["state", "action"]],
    mutually_exclusive=[["state", "action"], ["state", "check_level"]],
)


def act(options: Mapping[str, Any], check: bool) -> Result:
    resource = prepare(
        options["agent"],
        options["name"],
        options["parameters"],
        directories=options["agent_directories"],
        timeout=options["timeout"],
        ocf_root=options["ocf_root"],
        node_name=options["node"] or "",
        run_directory=options["run_directory"],
    )
    if options["action"] is not None:
        return _call(resource, options, check)
    probe = perform(resource, "monitor")
    plan = plan_state(resource, options["state"], probe)
    results: Sequence[OcfResult] = ()
    if plan.actions and not check:
        results = apply_plan(resource, plan)
    return Result(
        changed=bool(plan.actions),
        values={
            "before": plan.before,
            "after": plan.after,
            "actions": list(plan.actions),
            **_said(probe, *results),
        },
        before={"state": plan.before},
        after={"state": plan.after},
    )


def _call(resource: Resource, options: Mapping[str, Any], check: bool) -> Result:
    action = options["action"]
    reads = action in READ_ONLY_ACTIONS
    if check and not reads:
        check_action(resource, action)
        return Result(changed=True)
    result = perform(
        resource, action, interval=options["interval"], check_level=options["check_level"]
    )
    if action not in ("monitor", "status"):
        result.require_success(resource.instance)
    return Result(
        changed=not reads,
        values={**_said(result), "stdout": result.stdout, "stderr": result.stderr},
    )


def _said(*results: OcfResult) -> dict[str, Any]:
    last = results[-1]
    return {
        "code": last.code,
        "meaning": last.meaning,
        "reason": last.reason,
        "timed_out": last.timed_out,
        "duration": round(sum(one.duration for one in results), 3),
    }


def _hide(module: AnsibleModule) -> None:
    hide_agent_secrets(module, module.params["parameters"])


def main() -> None:
    run(OPTIONS, act, prepare=_hide)


if __name__ == "__main__":
    main()
