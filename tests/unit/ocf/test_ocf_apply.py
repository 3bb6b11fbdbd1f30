# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A resource in the wanted state: what is called for each state that it can be found in."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    AgentError,
    InputError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.apply import (
    STATES,
    apply_plan,
    perform,
    plan_state,
    prepare,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.call import OcfResult
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.metadata import Action
from ansible_collections.holdfast.ha.tests.unit.ocf.agent_script import SWITCH, write_agent


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
    return OcfResult("monitor", code, "", "said so", False, 0.0, "", "")


@pytest.mark.parametrize(
    ("code", "wanted", "actions", "after"),
    [
        (7, "started", ["start"], "started"),
        (0, "started", [], "started"),
        (8, "started", [], "promoted"),
        (1, "started", ["stop", "start"], "started"),
        (9, "started", ["stop", "start"], "started"),
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
def test_what_is_called_follows_from_what_was_found(thing, code, wanted, actions, after):
    plan = plan_state(thing(), wanted, probe(code))
    assert (list(plan.actions), plan.after) == (actions, after)


@pytest.mark.parametrize("code", [2, 3, 4, 6])
@pytest.mark.parametrize("wanted", STATES)
def test_nothing_is_done_when_the_agent_cannot_tell_the_state(thing, code, wanted):
    with pytest.raises(AgentError, match=r"state of t1 .* is unknown: .*said so"):
        plan_state(thing(), wanted, probe(code))


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


def test_a_second_time_changes_nothing(thing):
    resource = thing()
    for wanted in ("started", "promoted", "demoted", "stopped"):
        plan = plan_state(resource, wanted, perform(resource, "monitor"))
        assert plan.actions
        apply_plan(resource, plan)
        assert plan_state(resource, wanted, perform(resource, "monitor")).actions == ()


@pytest.mark.parametrize(
    ("body", "part"),
    [
        (SWITCH.replace("start) [", "start) exit 1; ["), "start: 1"),
        (SWITCH.replace("start) [", "start) exit 0; ["), "is not started after start: monitor: 7"),
        (
            SWITCH.replace("start) [", "start) sleep 60; ["),
            "start: 1 .failed.: no answer within 0.4 seconds",
        ),
    ],
)
def test_a_start_that_fails_lies_or_hangs_is_an_error(thing, body, part):
    resource = thing(body, timeout=0.4)
    with pytest.raises(AgentError, match=part):
        apply_plan(resource, plan_state(resource, "started", probe(7)))


def test_a_stop_that_lies_is_an_error(thing):
    resource = thing(SWITCH.replace("stop) rm", "stop) exit 0; rm"))
    apply_plan(resource, plan_state(resource, "started", probe(7)))
    with pytest.raises(AgentError, match="is not stopped after stop"):
        apply_plan(resource, plan_state(resource, "stopped", probe(0)))


def test_an_action_gets_the_time_that_its_agent_advises(thing):
    assert thing(timeout=None).timeout_of("stop") == 90.0
    assert thing(timeout=3.0).timeout_of("stop") == 3.0


@pytest.mark.parametrize("name", ["", "a/b", "a\nb"])
def test_a_name_that_would_spoil_a_file_name_is_refused(thing, tmp_path, name):
    thing()
    with pytest.raises(InputError, match="name"):
        prepare("ocf:test:thing", name, {"path": "/x"}, directories=[str(tmp_path)])
