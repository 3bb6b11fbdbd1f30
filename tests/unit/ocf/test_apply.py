# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A resource in the desired state: what is called for each state that it can be found in."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    AgentError,
    InputError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf import remains
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.call import (
    OcfResult,
    meaning_of,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.metadata import Action
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.remains import Traces
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.resource import (
    STATES,
    bring_to_state,
    call_action,
    perform,
    plan_action,
    plan_state,
    prepare,
)
from ansible_collections.holdfast.ha.tests.unit.ocf.agent_script import (
    METADATA,
    SWITCH,
    write_agent,
)


@pytest.fixture
def no_wait(monkeypatch):
    monkeypatch.setattr(remains, "SETTLE", 0.0)


@pytest.fixture
def thing(tmp_path):
    def thing(body=SWITCH, **options):
        write_agent(tmp_path, body)
        return prepare(
            "ocf:test:thing",
            "t1",
            {"path": "/x"},
            directories=[str(tmp_path)],
            run_directory=str(tmp_path / "run"),
            **{"timeout": 5.0, **options},
        )

    return thing


def probe(code):
    return OcfResult("monitor", meaning_of("monitor", code), code, "said so")


def calls(tmp_path):
    return (tmp_path / "run" / "calls").read_text().split()


@pytest.mark.parametrize(
    ("code", "desired", "actions", "after"),
    [
        (7, "started", ["start"], "started"),
        (0, "started", [], "started"),
        (8, "started", [], "promoted"),
        (1, "started", ["stop", "start"], "started"),
        (9, "started", ["demote", "stop", "start"], "started"),
        (9, "stopped", ["demote", "stop"], "stopped"),
        (190, "started", [], "started"),
        (7, "stopped", [], "stopped"),
        (5, "stopped", [], "absent"),
        (0, "stopped", ["stop"], "stopped"),
        (1, "stopped", ["stop"], "stopped"),
        (8, "stopped", ["demote", "stop"], "stopped"),
        (7, "restarted", ["start"], "started"),
        (0, "restarted", ["stop", "start"], "started"),
        (8, "restarted", ["demote", "stop", "start"], "started"),
        (1, "restarted", ["stop", "start"], "started"),
        (0, "reloaded", ["reload"], "started"),
        (8, "reloaded", ["reload"], "promoted"),
        (7, "reloaded", ["start"], "started"),
        (7, "promoted", ["start", "promote"], "promoted"),
        (0, "promoted", ["promote"], "promoted"),
        (8, "promoted", [], "promoted"),
        (1, "promoted", ["stop", "start", "promote"], "promoted"),
        (8, "demoted", ["demote"], "started"),
        (0, "demoted", [], "started"),
        (7, "demoted", ["start"], "started"),
    ],
)
def test_what_is_called_follows_from_what_was_found(thing, code, desired, actions, after):
    plan = plan_state(thing(), desired, probe(code))
    assert (list(plan.actions), plan.after) == (actions, after)


@pytest.mark.parametrize("code", [2, 3, 4, 6])
@pytest.mark.parametrize("desired", STATES)
def test_nothing_is_done_when_the_agent_cannot_tell_the_state(thing, code, desired):
    with pytest.raises(AgentError, match=r"state of t1 .* is unknown: .*said so"):
        plan_state(thing(), desired, probe(code))


def test_a_resource_whose_program_is_missing_cannot_be_started(thing):
    with pytest.raises(AgentError, match="cannot run here"):
        plan_state(thing(), "started", probe(5))


def test_support_for_an_action_comes_from_the_metadata(thing):
    resource = thing()
    plain = replace(resource.metadata, actions=(Action("start"), Action("stop")))
    with pytest.raises(AgentError, match="no action 'promote'"):
        plan_state(replace(resource, metadata=plain), "promoted", probe(7))
    with pytest.raises(AgentError, match="no action 'migrate_to'; it has: demote"):
        perform(resource, "migrate_to")
    with pytest.raises(AgentError, match="did you mean validate-all"):
        perform(resource, "validate")
    with pytest.raises(AgentError, match="no action 'reload'; state=restarted"):
        plan_state(replace(resource, metadata=plain), "reloaded", probe(0))


def test_a_second_time_changes_nothing(thing):
    resource = thing()
    for desired in ("started", "promoted", "demoted", "stopped"):
        assert bring_to_state(resource, desired, check=True).plan.actions
        done = bring_to_state(resource, desired)
        assert done.plan.actions
        assert bring_to_state(resource, desired).plan.actions == ()


@pytest.mark.parametrize(
    ("body", "timeout", "part"),
    [
        (SWITCH.replace("start) [", "start) exit 1; ["), 30.0, "start: 1"),
        (
            SWITCH.replace("start) [", "start) exit 0; ["),
            30.0,
            "is not started after start: monitor: 7",
        ),
        (
            SWITCH.replace("start) [", "start) sleep 60; ["),
            4.0,
            "start: 1 .failed.: no answer within 4 seconds",
        ),
    ],
)
def test_a_start_that_fails_lies_or_hangs_is_an_error(thing, body, timeout, part):
    with pytest.raises(AgentError, match=part):
        bring_to_state(thing(body, timeout=timeout), "started")


def test_a_stop_that_lies_is_an_error(thing):
    resource = thing(SWITCH.replace("stop) rm", "stop) exit 0; rm"))
    bring_to_state(resource, "started")
    with pytest.raises(AgentError, match="is not stopped after stop"):
        bring_to_state(resource, "stopped")


def test_what_cannot_be_demoted_is_stopped_all_the_same(thing, tmp_path):
    resource = thing(SWITCH.replace("demote) echo", "demote) exit 1; echo"))
    bring_to_state(resource, "promoted")
    bring_to_state(resource, "stopped")
    assert calls(tmp_path)[-3:] == ["demote", "stop", "monitor"]
    bring_to_state(resource, "promoted")
    with pytest.raises(AgentError, match="failed to demote"):
        bring_to_state(resource, "demoted")


def test_the_state_of_an_agent_of_the_older_text_is_found_by_status(thing, tmp_path):
    old = METADATA.replace('name="monitor"', 'name="status"')
    body = SWITCH.replace('monitor) [ -e "$state" ] || exit 7', 'status) [ -e "$state" ] || exit 3')
    thing()
    write_agent(tmp_path, body, metadata=old)
    options = {"directories": [str(tmp_path)], "run_directory": str(tmp_path / "run")}
    resource = prepare("ocf:test:thing", "t1", {"path": "/x"}, monitor_action="status", **options)
    assert bring_to_state(resource, "started").plan.before == "stopped"
    assert bring_to_state(resource, "stopped").plan.before == "started"
    assert set(calls(tmp_path)) == {"status", "start", "stop"}
    with pytest.raises(AgentError, match="no action 'monitor'"):
        bring_to_state(prepare("ocf:test:thing", "t1", {"path": "/x"}, **options), "started")


@pytest.mark.parametrize(
    ("code", "action", "before", "after", "changes"),
    [
        (7, "start", "stopped", "started", True),
        (0, "start", "started", "started", False),
        (8, "start", "promoted", "promoted", False),
        (7, "stop", "stopped", "stopped", False),
        (5, "stop", "absent", "absent", False),
        (1, "stop", "failed", "stopped", True),
        (2, "stop", "unknown", "stopped", True),
        (0, "promote", "started", "promoted", True),
        (8, "demote", "promoted", "started", True),
        (0, "reload", "started", "started", True),
    ],
)
def test_what_one_action_changes_is_told_from_the_state_before(
    thing, code, action, before, after, changes
):
    plan = plan_action(thing(), action, probe(code))
    assert (plan.before, plan.after, plan.changes) == (before, after, changes)
    assert plan.actions == (action,)


def test_one_action_is_called_between_two_probes(thing, tmp_path):
    resource = thing()
    assert call_action(resource, "start", check=True).plan.changes
    assert calls(tmp_path) == ["monitor"]
    done = call_action(resource, "start").plan
    assert (done.before, done.after, done.changes) == ("stopped", "started", True)
    assert calls(tmp_path) == ["monitor", "monitor", "start", "monitor"]
    assert not call_action(resource, "start").plan.changes
    with pytest.raises(AgentError, match="cannot run here"):
        plan_action(resource, "start", probe(5))


def test_an_action_that_leads_elsewhere_than_it_should_tells_so(thing):
    resource = thing(SWITCH.replace("start) [", "start) exit 0; ["))
    assert call_action(resource, "start", check=True).plan.after == "started"
    told = call_action(resource, "start").plan
    assert (told.after, told.changes) == ("stopped", False)


def test_a_stop_that_leaves_a_process_is_an_error_and_so_is_a_start_over_it(
    thing, no_wait, tmp_path
):
    left = tmp_path / "left"
    body = SWITCH.replace("start) [", f"start) sleep 4711.25 & echo $! >'{left}'; [")
    resource = thing(body.replace("rm -f", "rm"))
    traces = Traces(processes=(r"^sleep 4711\.25$",))
    bring_to_state(resource, "started", traces=traces)
    try:
        with pytest.raises(AgentError, match=r"t1 .* left: process \d+ \(sleep\)"):
            bring_to_state(resource, "stopped", traces=traces)
        for desired in ("started", "stopped"):
            for check in (True, False):
                with pytest.raises(AgentError, match="left: process"):
                    bring_to_state(resource, desired, traces=traces, check=check)
    finally:
        os.kill(int(left.read_text()), signal.SIGKILL)
    bring_to_state(resource, "started", check=True, traces=traces)


def test_an_action_gets_the_time_that_its_agent_advises(thing):
    assert thing(timeout=None).timeout_of("stop") == 90.0
    assert thing(timeout=3.0).timeout_of("stop") == 3.0


@pytest.mark.parametrize("name", ["", "a/b", "a\nb"])
def test_a_name_that_would_spoil_a_file_name_is_refused(thing, tmp_path, name):
    thing()
    with pytest.raises(InputError, match="name"):
        prepare("ocf:test:thing", name, {"path": "/x"}, directories=[str(tmp_path)])
