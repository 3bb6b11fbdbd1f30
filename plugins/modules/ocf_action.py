#!/usr/bin/python
# Copyright 2026 The holdfast authors
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
  - A stop that succeeds is no proof that nothing is left. With O(verify) the task fails if
    anything is.
  - It acts on this node alone and at once. It does not ask the cluster, so do not use it on a
    resource of a service that the cluster keeps running.
  - Parameters and actions are checked against the agent's metadata before anything is called.
extends_documentation_fragment:
  - holdfast.ha.attributes
  - holdfast.ha.attributes.no_group
  - holdfast.ha.resource_agents
attributes:
  idempotent:
    support: partial
    description:
      - O(state) is idempotent but for V(restarted) and V(reloaded), which act each time. So do
        those of O(action) that are not about running or not, such as C(reload).
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
      - The agent's parameters. The values of those whose names mark them as secrets are
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
      - One action of the agent, called once, whatever the state is. The agent's metadata lists
        its actions.
      - C(monitor), C(status), C(validate-all), C(meta-data), C(usage) and C(methods) change
        nothing and are called in check mode too. The task does not fail when C(monitor) or
        C(status) finds the resource stopped or failed.
      - Around any other a probe finds the state before and after; C(start), C(stop), C(promote),
        C(demote), C(recover), C(migrate_to) and C(migrate_from) changed something if these two
        differ. In check mode only the first probe is made.
      - C(migrate_to), C(migrate_from) and C(notify) need more input, see O(meta).
    type: str
  verify:
    description:
      - What must be gone once the resource is stopped; for two seconds it may still be going.
      - This is checked whenever O(state) finds or makes the resource stopped, so also before a
        start, and after O(action=stop).
    type: dict
    suboptions:
      processes:
        description:
          - Regular expressions, searched for in the command line of each process, its words
            joined by blanks.
        type: list
        elements: str
        default: []
      ports:
        description: TCP ports that nothing may listen on, and UDP ports that nothing may have.
        type: list
        elements: int
        default: []
      mounts:
        description: Paths at and below which nothing may be mounted.
        type: list
        elements: path
        default: []
      cgroup:
        description:
          - A control group that may have no process, nor any below it, as C(/proc/PID/cgroup)
            names it, such as V(/system.slice/web.service).
        type: str
  meta:
    description:
      - What a cluster tells an agent of a resource's place in it, such as C(clone_max),
        C(promotable) or C(role). The agent gets each as C(OCF_RESKEY_CRM_meta_NAME).
      - C(migrate_to) needs C(migrate_target), C(migrate_from) needs C(migrate_source), and
        C(notify) needs C(notify_type) and C(notify_operation).
    type: dict
    default: {}
  monitor_action:
    description:
      - How the state is found. V(status) is for agents of the OCF text of 2003, which have no
        C(monitor); there 3 means stopped and 4 unknown.
    type: str
    choices:
      - monitor
      - status
    default: monitor
  check_level:
    description:
      - How deep O(action) looks, for agents that know of levels, such as V(10) for C(monitor).
    type: int
  interval:
    description:
      - Seconds between checks, told to the agent with O(action). V(0) makes C(monitor) a probe,
        which some agents answer differently from a check of health.
    type: float
    default: 0
  timeout:
    description:
      - Seconds for each action. The agent gets them, and is killed at their end. If not
        given, what the agent advises, or 20.
    type: float
  run_directory:
    description:
      - Where agents keep what must not survive a boot. It must be the same for all actions of a
        resource.
    type: path
    default: /run/resource-agents
  node:
    description: The node's name for the agent. If not given, the agent gets none.
    type: str
seealso:
  - module: holdfast.ha.ocf_info
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

- name: Stop a web server, and be sure that nothing of it is left
  holdfast.ha.ocf_action:
    agent: ocf:heartbeat:nginx
    name: web
    parameters:
      configfile: /srv/web/nginx.conf
    state: stopped
    verify:
      processes: "^nginx: (master|worker) process"
      ports: 80

- name: Move a virtual machine to another node
  holdfast.ha.ocf_action:
    agent: ocf:heartbeat:VirtualDomain
    name: vm1
    parameters:
      config: /srv/vm1.xml
    action: migrate_to
    meta:
      migrate_target: n2

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
    - V(started), V(promoted), V(stopped), V(failed), V(absent) when its program is not installed
      here, or V(unknown) when the agent could not determine it.
  returned: with O(state) and with each O(action) that shows or changes the state
  type: str
  sample: stopped
after:
  description: The same afterwards; in check mode what it would be.
  returned: with O(state) and with each O(action) that shows or changes the state
  type: str
  sample: started
actions:
  description: What was called to get there, in order; in check mode what would be.
  returned: with O(state) and with each O(action) that changes something
  type: list
  elements: str
  sample:
    - start
code:
  description:
    - What the last call ended with, or the call of O(action), as a code of OCF 1.1, that is 0 to
      9, 190 or 191. All other ways to end are 1. The codes of C(status) are translated.
  returned: when the agent was called
  type: int
  sample: 0
meaning:
  description: What RV(code) means.
  returned: when the agent was called
  type: str
  sample: success
recovery:
  description:
    - What RV(code) asks a cluster to do, V(none), V(soft) (recover here or elsewhere), V(hard) (not
      on this node) or V(fatal) (on no node before a person acts).
  returned: when the agent was called
  type: str
  sample: none
exit_status:
  description: The agent's own exit status; V(null) when it was killed.
  returned: when the agent was called
  type: int
  sample: 0
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

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._holdfast.ocf.call import MONITORS, OcfResult
from ..module_utils._holdfast.ocf.metadata import deprecation_warnings
from ..module_utils._holdfast.ocf.remains import Traces
from ..module_utils._holdfast.ocf.resource import (
    READ_ONLY_ACTIONS,
    STATES,
    Applied,
    Resource,
    bring_to_state,
    call_action,
    perform,
    prepare,
    state_of,
)
from ..module_utils._module import RESOURCE_AGENTS, Options, Result, hide_agent_secrets, run

OPTIONS = RESOURCE_AGENTS.merge(
    Options(
        argument_spec={
            "agent": {"type": "str", "required": True},
            "name": {"type": "str", "required": True, "aliases": ["instance"]},
            "parameters": {"type": "dict", "default": {}},
            "state": {"type": "str", "choices": list(STATES)},
            "action": {"type": "str"},
            "verify": {
                "type": "dict",
                "options": {
                    "processes": {"type": "list", "elements": "str", "default": []},
                    "ports": {"type": "list", "elements": "int", "default": []},
                    "mounts": {"type": "list", "elements": "path", "default": []},
                    "cgroup": {"type": "str"},
                },
            },
            "meta": {"type": "dict", "default": {}},
            "monitor_action": {
                "type": "str",
                "choices": ["monitor", "status"],
                "default": "monitor",
            },
            "check_level": {"type": "int"},
            "interval": {"type": "float", "default": 0},
            "timeout": {"type": "float"},
            "run_directory": {"type": "path", "default": "/run/resource-agents"},
            "node": {"type": "str"},
        },
        required_one_of=[["state", "action"]],
        mutually_exclusive=[["state", "action"], ["state", "check_level"]],
    )
)


def act(options: Mapping[str, Any], check: bool) -> Result:
    traces = _traces(options["verify"])
    resource = prepare(
        options["agent"],
        options["name"],
        options["parameters"],
        directories=options["agent_directories"] or [options["ocf_root"]],
        timeout=options["timeout"],
        meta=options["meta"],
        monitor_action=options["monitor_action"],
        ocf_root=options["ocf_root"],
        node_name=options["node"] or "",
        run_directory=options["run_directory"],
    )
    how = {"check_level": options["check_level"], "interval": options["interval"]}
    action = options["action"]
    if action is None:
        applied = bring_to_state(resource, options["state"], check=check, traces=traces)
        return _result(resource, applied, applied.results[-1])
    if action in READ_ONLY_ACTIONS:
        called = perform(resource, action, **how)
        return _query_result(resource, called)
    applied = call_action(resource, action, check=check, traces=traces, **how)
    if check:
        return _result(resource, applied, applied.results[0])
    called = applied.results[-2]
    return _result(resource, applied, called, stdout=called.stdout, stderr=called.stderr)


def _traces(verify: Mapping[str, Any] | None) -> Traces | None:
    if verify is None:
        return None
    traces = Traces(
        processes=tuple(verify["processes"]),
        ports=tuple(verify["ports"]),
        mounts=tuple(verify["mounts"]),
        cgroup=verify["cgroup"] or "",
    )
    traces.check()
    return traces


def _result(resource: Resource, applied: Applied, called: OcfResult, **more: str) -> Result:
    plan = applied.plan
    return Result(
        changed=plan.changes,
        values={
            "before": plan.before,
            "after": plan.after,
            "actions": list(plan.actions),
            **_outcome_values(called, sum(one.duration for one in applied.results)),
            **more,
        },
        before={"state": plan.before},
        after={"state": plan.after},
        warnings=deprecation_warnings(resource.metadata, resource.call.parameters),
    )


def _query_result(resource: Resource, called: OcfResult) -> Result:
    """Return the result of an action that changes nothing."""
    if called.action not in MONITORS:
        called.require_success(resource.call.instance)
        states = {}
    else:
        states = dict.fromkeys(("before", "after"), state_of(called))
    return Result(
        values={
            **states,
            **_outcome_values(called, called.duration),
            "stdout": called.stdout,
            "stderr": called.stderr,
        },
        warnings=deprecation_warnings(resource.metadata, resource.call.parameters),
    )


def _outcome_values(called: OcfResult, duration: float) -> dict[str, Any]:
    return {
        "code": called.code,
        "meaning": called.meaning.name,
        "recovery": called.recovery,
        "exit_status": called.exit_status,
        "reason": called.reason,
        "timed_out": called.timed_out,
        "duration": round(duration, 3),
    }


def _hide(module: AnsibleModule) -> None:
    hide_agent_secrets(module, module.params["parameters"])


def main() -> None:
    run(OPTIONS, act, prepare=_hide)


if __name__ == "__main__":
    main()
