# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a worker makes of its agents' words: a start leaves all or nothing, a stop is checked."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.jobs import (
    Job,
    JobKind,
    Sight,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Outcome,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    Resource,
    Service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.agent_work import (
    RETRY_WAIT,
    AgentWork,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import configuration
from ansible_collections.holdfast.ha.tests.unit.ocf.agent_script import METADATA, write_agent

BODY = """
here={here}
echo "$1 $OCF_RESKEY_path" >> $here/calls
echo "$OCF_RESKEY_CRM_meta_interval" > $here/interval
env > $here/environment
state=$here/state-$OCF_RESKEY_path
wrong=$here/wrong-$1-$OCF_RESKEY_path
if [ -e "$wrong" ]; then
  read -r code times < "$wrong"
  if [ "$times" = 1 ]; then rm -f "$wrong"; else echo "$code $((times - 1))" > "$wrong"; fi
  echo "ocf-exit-reason:$1 of $OCF_RESKEY_path goes wrong" >&2
  exit "$code"
fi
case $1 in
start) : > "$state";;
stop) [ -e "$here/sticks-$OCF_RESKEY_path" ] || rm -f "$state";;
migrate_to) rm -f "$state"; echo "$OCF_RESKEY_CRM_meta_migrate_target" > "$here/target";;
migrate_from) : > "$state"; echo "$OCF_RESKEY_CRM_meta_migrate_source" > "$here/source";;
monitor) [ -e "$state" ] || exit 7;;
esac
exit 0
"""


class Node:
    """A node with an agent that keeps each resource's state in a file, and notes its calls."""

    def __init__(self, folder, allowed_agents=("*",)):
        self.folder = folder
        write_agent(folder / "ocf", BODY.format(here=folder))
        self.configuration = replace(configuration(folder), allowed_agents=allowed_agents)
        self.waits = []
        self.forbidden = ""
        self.ran = set()
        self.work = AgentWork(
            self.configuration,
            wait=self.waits.append,
            forbidden=lambda: self.forbidden,
            ran_here=lambda service_id: service_id in self.ran,
        )

    def service(self, *names, **changes):
        """Return a service with a resource for each name."""
        resources = tuple(
            Resource(name, "ocf:test:thing", {"path": name}, monitor_interval=7.0) for name in names
        )
        return Service("web", resources, **changes)

    def goes_wrong(self, action, name, code=1, times=1000):
        """Let an action of one resource end with this code for the next times."""
        (self.folder / f"wrong-{action}-{name}").write_text(f"{code} {times}\n")

    def do(self, kind, service, **changes):
        """Carry a job out; return its outcome, what was seen and the text."""
        end = self.work.carry_out(Job(kind, service, **changes))
        assert end.job.service is service
        return end.outcome, end.sight, end.text

    def calls(self):
        """Return what the agent was asked since the last time."""
        path = self.folder / "calls"
        found = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return found

    def running(self):
        """Return the resources that run by the files alone."""
        return sorted(path.name[6:] for path in self.folder.glob("state-*"))


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


def test_a_stop_that_says_success_while_it_still_runs_blocks_the_service(node):
    service = node.service("a")
    node.do(JobKind.START, service)
    (node.folder / "sticks-a").touch()
    outcome, sight, text = node.do(JobKind.STOP, service)
    assert (outcome, sight) == (Outcome.BLOCKED, Sight.PARTLY)
    assert text.startswith("a: stop succeeded, but a probe returns monitor: 0")


def test_a_stop_that_fails_blocks_and_leaves_the_resources_below_it_alone(node):
    service = node.service("a", "b", "c")
    node.do(JobKind.START, service)
    node.goes_wrong("stop", "b")
    outcome, sight, text = node.do(JobKind.STOP, service)
    assert (outcome, sight) == (Outcome.BLOCKED, Sight.PARTLY)
    assert text.startswith("b: stop: 1") and text.endswith("stop of b goes wrong")
    assert node.running() == ["a", "b"]


def test_a_probe_that_fails_after_a_stop_blocks_the_service(node):
    service = node.service("a")
    node.do(JobKind.START, service)
    node.goes_wrong("monitor", "a")
    assert node.do(JobKind.STOP, service)[:2] == (Outcome.BLOCKED, Sight.PARTLY)


def test_a_failed_start_leaves_nothing_running_and_says_what_failed(node):
    service = node.service("a", "b", "c", max_restart=0)
    node.goes_wrong("start", "b")
    outcome, sight, text = node.do(JobKind.START, service)
    assert (outcome, sight) == (Outcome.FAILED, Sight.STOPPED)
    assert text.startswith("b: start: 1") and text.endswith("start of b goes wrong")
    assert node.running() == []
    assert [call for call in node.calls() if call.split()[0] != "monitor"] == [
        "start a",
        "start b",
        "stop c",
        "stop b",
        "stop a",
    ]


@pytest.mark.parametrize(
    ("max_restart", "failures", "outcome", "waits"),
    [
        (0, 1, Outcome.FAILED, 0),
        (1, 1, Outcome.OK, 1),
        (1, 2, Outcome.FAILED, 1),
        (3, 3, Outcome.OK, 3),
        (3, 4, Outcome.FAILED, 3),
    ],
)
def test_a_failed_start_is_tried_again_as_often_as_allowed(
    node, max_restart, failures, outcome, waits
):
    node.goes_wrong("start", "b", times=failures)
    service = node.service("a", "b", max_restart=max_restart)
    found, _sight, text = node.do(JobKind.START, service)
    assert found is outcome
    assert node.waits == [RETRY_WAIT] * waits
    assert node.running() == (["a", "b"] if outcome is Outcome.OK else [])
    assert ("tries)" in text) == (outcome is Outcome.FAILED and max_restart > 0)


def test_a_failed_start_that_cannot_be_cleaned_up_is_not_tried_again(node):
    service = node.service("a", "b", max_restart=5)
    node.goes_wrong("start", "b")
    node.goes_wrong("stop", "a")
    outcome, sight, text = node.do(JobKind.START, service)
    assert (outcome, sight) == (Outcome.BLOCKED, Sight.PARTLY)
    assert "start of b goes wrong; and then it could not be stopped: a: stop: 1" in text
    assert node.calls().count("start b") == 1


def test_resources_start_in_order_and_stop_in_reverse(node):
    service = node.service("a", "b", "c")
    assert node.do(JobKind.START, service) == (Outcome.OK, Sight.RUNNING, "started")
    assert node.calls() == ["start a", "start b", "start c"]
    assert node.do(JobKind.STOP, service) == (Outcome.OK, Sight.STOPPED, "stopped")
    stops = ["stop c", "monitor c", "stop b", "monitor b", "stop a", "monitor a"]
    assert node.calls() == stops


def test_a_restart_stops_all_first_and_tries_to_start_once(node):
    service = node.service("a", "b", max_restart=5)
    node.do(JobKind.START, service)
    node.goes_wrong("start", "a")
    node.calls()
    assert node.do(JobKind.RESTART, service)[0] is Outcome.FAILED
    asked = [call for call in node.calls() if not call.startswith("monitor")]
    assert asked == ["stop b", "stop a", "start a", "stop b", "stop a"]
    (node.folder / "wrong-start-a").unlink()
    assert node.do(JobKind.RESTART, service) == (Outcome.OK, Sight.RUNNING, "started")


def test_a_restart_that_cannot_stop_starts_nothing(node):
    service = node.service("a")
    node.do(JobKind.START, service)
    node.goes_wrong("stop", "a")
    node.calls()
    assert node.do(JobKind.RESTART, service)[0] is Outcome.BLOCKED
    assert node.calls() == ["stop a"]


@pytest.mark.parametrize("kind", [JobKind.PROBE, JobKind.MONITOR])
@pytest.mark.parametrize(
    ("running", "wrong", "sight"),
    [
        ("", {}, Sight.STOPPED),
        ("ab", {}, Sight.RUNNING),
        ("a", {}, Sight.PARTLY),
        ("b", {}, Sight.PARTLY),
        ("", {"a": 1}, Sight.PARTLY),
        ("", {"a": 9}, Sight.PARTLY),
        ("", {"a": 5, "b": 6}, Sight.STOPPED),
        ("ab", {"a": 8}, Sight.RUNNING),
        ("ab", {"b": 190}, Sight.RUNNING),
        ("ab", {"b": 5}, Sight.PARTLY),
        ("", {"b": 99}, Sight.PARTLY),
    ],
)
def test_what_runs_is_told_from_each_agents_code(node, kind, running, wrong, sight):
    for name in running:
        (node.folder / f"state-{name}").touch()
    for name, code in wrong.items():
        node.goes_wrong("monitor", name, code)
    outcome, found, text = node.do(kind, node.service("a", "b"))
    assert (outcome, found) == (Outcome.OK, sight)
    assert bool(text) == (sight is not Sight.RUNNING)
    assert node.calls() == ["monitor a", "monitor b"]
    interval = (node.folder / "interval").read_text().strip()
    assert interval == ("0" if kind is JobKind.PROBE else "7000")


@pytest.mark.parametrize("kind", [JobKind.PROBE, JobKind.START, JobKind.STOP, JobKind.MONITOR])
def test_only_a_check_of_health_looks_as_deep_as_declared(node, kind):
    deep = Resource("a", "ocf:test:thing", {"path": "a"}, check_level=20)
    node.do(JobKind.START, Service("web", (deep,)))
    node.do(kind, Service("web", (deep,)))
    environment = (node.folder / "environment").read_text().splitlines()
    assert ("OCF_CHECK_LEVEL=20" in environment) == (kind is JobKind.MONITOR)


def test_a_service_whose_agent_is_not_installed_here_is_not_begun(node):
    service = node.service("a")
    absent = Resource("b", "ocf:test:absent")
    both = Service("web", (*service.resources, absent), max_restart=3)
    outcome, sight, text = node.do(JobKind.START, both)
    assert (outcome, sight) == (Outcome.FAILED, Sight.STOPPED)
    assert text.startswith("b: The resource agent ocf:test:absent is not installed")
    assert (node.calls(), node.waits) == ([], [])


def test_an_agent_of_another_major_version_of_ocf_is_not_started(node):
    """Its answers may mean something else.  What runs already can still be stopped."""
    service = node.service("a")
    node.do(JobKind.START, service)
    newer = METADATA.replace("<version>1.1</version>", "<version>2.0</version>")
    write_agent(node.folder / "ocf", BODY.format(here=node.folder), metadata=newer)
    assert node.do(JobKind.STOP, service)[0] is Outcome.OK
    node.calls()
    outcome, sight, text = node.do(JobKind.START, service)
    assert (outcome, sight, node.calls()) == (Outcome.FAILED, Sight.STOPPED, [])
    assert text.startswith("a: The resource agent ocf:test:thing follows version 2.0 of the OCF")


def test_a_start_waits_for_the_metadata_of_an_agent_once(node):
    service = node.service("a")
    write_agent(node.folder / "ocf", BODY.format(here=node.folder), metadata="none at all\n")
    path = node.folder / "ocf" / "resource.d" / "test" / "thing"
    path.write_text(
        path.read_text().replace(
            "= meta-data ]; then", f"= meta-data ]; then echo x >> {node.folder}/read;"
        )
    )
    for _time in range(3):
        assert node.do(JobKind.START, service)[0] is Outcome.OK
    assert (node.folder / "read").read_text() == "x\n"


@pytest.mark.parametrize("ran", [False, True])
@pytest.mark.parametrize("kind", list(JobKind))
def test_an_agent_that_the_node_does_not_allow_is_never_called(tmp_path, kind, ran):
    node = Node(tmp_path, allowed_agents=("*", "!ocf:test:*"))
    service = node.service("a")
    (node.folder / "state-a").touch()
    if ran:
        node.ran = {service.id}
    outcome, sight, text = node.do(kind, service)
    assert node.calls() == []
    assert "its allowed_agents (*, !ocf:test:*) do not allow ocf:test:thing" in text
    if kind in (JobKind.PROBE, JobKind.MONITOR):
        assert (outcome, sight) == (Outcome.OK, Sight.PARTLY if ran else Sight.STOPPED)
    elif kind is JobKind.START:
        assert (outcome, sight) == (Outcome.FAILED, Sight.STOPPED)
    elif ran or kind is not JobKind.MIGRATE:
        # Only what runs here is migrated.
        assert outcome is Outcome.BLOCKED


def test_a_service_whose_agent_is_gone_cannot_be_said_to_be_stopped(node):
    service = node.service("a")
    node.do(JobKind.START, service)
    (node.folder / "ocf" / "resource.d" / "test" / "thing").unlink()
    for kind in (JobKind.STOP, JobKind.RESTART):
        outcome, _sight, text = node.do(kind, service)
        assert outcome is Outcome.BLOCKED
        assert "a: stop: 5" in text and "does not exist" in text


@pytest.mark.parametrize("code", [2, 4, 5, 6])
def test_an_agent_that_cannot_work_says_nothing_of_a_service_that_ran_here(node, code):
    """It is started elsewhere when it is found stopped, as by the LRM after this one."""
    service = node.service("a")
    node.goes_wrong("monitor", "a", code)
    assert node.do(JobKind.PROBE, service)[1] is Sight.STOPPED
    node.ran.add("web")
    outcome, sight, text = node.do(JobKind.PROBE, service)
    assert (outcome, sight) == (Outcome.OK, Sight.PARTLY)
    assert text.startswith(f"a: monitor: {code}")


def test_a_service_that_ran_here_and_says_so_is_stopped(node):
    node.ran.add("web")
    assert node.do(JobKind.PROBE, node.service("a", "b"))[1] is Sight.STOPPED


def test_a_service_is_not_gone_over_because_its_agent_is_gone(node):
    service = node.service("a")
    node.do(JobKind.START, service)
    node.ran.add("web")
    (node.folder / "ocf" / "resource.d" / "test" / "thing").unlink()
    assert node.do(JobKind.MIGRATE, service, other="n2")[0] is Outcome.BLOCKED


def test_an_agent_that_hangs_is_killed_at_its_timeout_and_has_failed(node):
    write_agent(node.folder / "ocf", "sleep 60", type="slow")
    slow = Resource("s", "ocf:test:slow", start_timeout=0.2, stop_timeout=0.2)
    outcome, _sight, text = node.do(JobKind.START, Service("web", (slow,), max_restart=0))
    assert outcome is Outcome.BLOCKED
    assert text.count("no answer within 0.2 seconds; the agent was killed") == 2


def test_a_name_that_is_no_agents_blocks_and_does_not_end_the_worker(node):
    bad = Service("web", (Resource("r", "not an agent"),))
    outcome, _sight, text = node.do(JobKind.STOP, bad)
    assert outcome is Outcome.BLOCKED
    assert "'not an agent' is not accepted" in text


def test_nothing_is_started_while_it_is_forbidden_and_what_was_is_stopped_again(node):
    service = node.service("a", "b")
    node.forbidden = "this node's host lease was not renewed for 16 s"
    outcome, sight, text = node.do(JobKind.START, service)
    assert (outcome, sight) == (Outcome.INTERRUPTED, Sight.STOPPED)
    assert text == "not started: this node's host lease was not renewed for 16 s"
    assert not [call for call in node.calls() if call.startswith("start")]
    answers = iter(["", "the lease is gone", "the lease is gone"])
    node.work = AgentWork(node.configuration, forbidden=lambda: next(answers))
    assert node.do(JobKind.START, service)[0] is Outcome.INTERRUPTED
    assert "start a" in node.calls()
    assert node.running() == []


def test_a_job_says_when_it_ended_and_how_long_it_took(node):
    times = iter([10.0, 12.5])
    work = AgentWork(node.configuration, clock=lambda: next(times), wall=lambda: 1e9)
    end = work.carry_out(Job(JobKind.PROBE, node.service("a")))
    assert (end.at, end.took) == (1e9, 2.5)


def test_agents_learn_whose_they_are_and_get_nothing_else_of_our_environment(node, monkeypatch):
    monkeypatch.setenv("HOLDFAST_MACHINE", "/srv/nodes/n1")
    monkeypatch.setenv("SECRET_OF_THE_SHELL", "hunter2")
    node.do(JobKind.PROBE, node.service("a"))
    lines = (node.folder / "environment").read_text().splitlines()
    variables = dict(line.split("=", 1) for line in lines if "=" in line)
    assert variables["HOLDFAST_NODE"] == "n1"
    assert variables["HOLDFAST_MACHINE"] == "/srv/nodes/n1"
    assert variables["HOLDFAST_CALLER"] == str(node.configuration.folder)
    assert variables["OCF_RESOURCE_INSTANCE"] == "web.a"
    assert variables["HA_RSCTMP"] == str(node.configuration.run_directory)
    assert "SECRET_OF_THE_SHELL" not in variables


def test_a_service_that_migrates_is_looked_for_here_afterwards(node):
    node.do(JobKind.START, node.service("a"))
    node.calls()
    outcome, sight, _text = node.do(JobKind.MIGRATE, node.service("a"), other="n2")
    assert (outcome, sight, node.running()) == (Outcome.OK, Sight.STOPPED, [])
    assert node.calls() == ["migrate_to a", "monitor a"]
    assert (node.folder / "target").read_text() == "n2\n"


def test_a_migration_that_fails_leaves_the_service_running(node):
    node.do(JobKind.START, node.service("a"))
    node.goes_wrong("migrate_to", "a", code=3)
    outcome, sight, _text = node.do(JobKind.MIGRATE, node.service("a"), other="n2")
    assert (outcome, sight, node.running()) == (Outcome.FAILED, Sight.RUNNING, ["a"])


def test_a_migration_that_was_given_up_may_go_on_behind_the_agents_back(node):
    write_agent(
        node.folder / "ocf",
        BODY.format(here=node.folder).replace("migrate_to) ", "migrate_to) sleep 30; "),
    )
    one = node.service("a", live_migration=True)
    brief = replace(one.resources[0], start_timeout=0.3, stop_timeout=0.3)
    node.do(JobKind.START, one)
    found = node.do(JobKind.MIGRATE, replace(one, resources=(brief,)), other="n2")
    assert (found[0], node.running()) == (Outcome.BLOCKED, ["a"])


def test_what_may_have_come_is_not_taken_for_stopped_where_its_agent_is_missing(node):
    (node.folder / "state-a").touch()
    (node.folder / "ocf").rename(node.folder / "elsewhere")
    found = node.do(JobKind.START, node.service("a"), other="n1")
    assert (found[0], found[1]) == (Outcome.BLOCKED, Sight.PARTLY)
    assert "may have come from n1" in found[2]


def test_what_is_gone_after_a_failed_migration_may_be_on_the_target(node):
    node.goes_wrong("migrate_to", "a", code=1)
    assert node.do(JobKind.MIGRATE, node.service("a"), other="n2")[0] is Outcome.OK


def test_what_neither_runs_nor_is_gone_blocks_its_node(node):
    node.do(JobKind.START, node.service("a"))
    node.goes_wrong("monitor", "a", code=1)
    assert node.do(JobKind.MIGRATE, node.service("a"), other="n2")[0] is Outcome.BLOCKED


def test_a_service_of_several_resources_does_not_migrate(node):
    outcome, _sight, text = node.do(JobKind.MIGRATE, node.service("a", "b"), other="n2")
    assert (outcome, node.calls()) == (Outcome.FAILED, [])
    assert "several resources" in text


def test_what_comes_while_it_runs_is_taken_in(node):
    outcome, _sight, text = node.do(JobKind.START, node.service("a"), other="n2")
    assert (outcome, node.running()) == (Outcome.OK, ["a"])
    assert node.calls() == ["migrate_from a", "monitor a"]
    assert (node.folder / "source").read_text() == "n2\n"
    assert "n2" in text


def test_what_did_not_come_is_started(node):
    node.goes_wrong("migrate_from", "a")
    assert node.do(JobKind.START, node.service("a"), other="n2")[0] is Outcome.OK
    assert node.calls() == ["migrate_from a", "start a"]


def test_without_leave_nothing_is_taken_in(node):
    node.forbidden = "the host lease is lost"
    node.do(JobKind.START, node.service("a"), other="n2")
    assert node.running() == []
