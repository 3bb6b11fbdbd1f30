# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The LRM daemon's round: what is begun stands on the storage first, whatever fails meanwhile.

What it decides is tested in ``cluster/lrm``; here it is what the daemon does around that.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import SimpleNamespace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm.cycle import (
    OWN_LOOK,
    REPORT_FIRST,
    ROUND,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm.round import (
    HINDERED,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm.step import (
    FREEZE_WAIT,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.effects import (
    Clocks,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.jobs import (
    JobEnd,
    JobKind,
    Sight,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    HostState,
    Timing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    WRITTEN_AGAIN,
    LocalService,
    LocalState,
    Mode,
    Outcome,
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    Resource,
    Service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    NodeState,
    NodeStatus,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    FormatError,
    LeaseError,
    NoAnswerError,
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node import (
    configuration as node_configuration,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import (
    LRM,
    SANLOCK,
    SanlockSettings,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon import lrm
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.heartbeat import (
    FULL_SCORE,
    beat_of,
    report_number,
    trouble_told,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.lrm import (
    START_WAIT,
    LocalDaemon,
    storage_with_own_record,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import verified_off
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import (
    HOST,
    Clock,
    configuration,
    create_storage,
    datagram,
)
from ansible_collections.holdfast.ha.tests.unit.node.stand_ins import (
    NetworkStandIn,
    StorageStandIn,
    lease_view,
)

WEB = Service("web", (Resource("r", "ocf:test:thing", monitor_interval=1000.0),))
UNREADABLE = StorageError("the storage is gone")
ON_ONE_COMPUTER = SanlockSettings(2, 0, "/run/of/n1")


class WorkersStandIn:
    """Notes the jobs in the storage's log, beside what was written; a test ends them."""

    def __init__(self, log):
        self.log = log
        self.jobs = {}
        self.ended = []
        self.number = 0

    def resize(self, number):
        self.number = number

    def begin(self, job):
        self.log.append((job.kind.value, job.service.id))
        self.jobs[job.service.id] = job

    def take_ended(self):
        ended, self.ended = self.ended, []
        for end in ended:
            self.jobs.pop(end.job.service.id, None)
        return ended

    def busy(self):
        return frozenset(self.jobs)

    def end(self, outcome=Outcome.OK, sight=Sight.RUNNING, text=""):
        """Let the one job that is under way end."""
        assert len(self.jobs) == 1
        job = next(iter(self.jobs.values()))
        self.ended.append(JobEnd(job, outcome, sight, text))


class Daemon:
    """An LRM on n1, and a manager's record that it is to follow."""

    def __init__(self, folder, last=None, host_lease=4, supervision=None, **changes):
        self.clock = Clock(1000.25)
        self.suspended = self.wall_jump = 0.0
        self.storage = StorageStandIn()
        self.storage.desired = DesiredState(3, {"web": WEB})
        self.storage.reports[1] = last
        self.storage.host_lease = host_lease
        self.workers = WorkersStandIn(self.storage.log)
        self.network = NetworkStandIn()
        self.configuration = replace(configuration(folder), **changes)
        self.daemon = LocalDaemon(
            self.configuration,
            network=self.network,
            storage=self.storage,
            workers=self.workers,
            supervision=supervision,
            clocks=self.clocks,
        )

    def clocks(self):
        """Return what all clocks show."""
        boottime = self.clock.now + self.suspended
        return Clocks(self.clock.now, 1e9 + boottime + self.wall_jump, boottime)

    def command(self, state, uid="7.1", epoch=7, commands=1, boot="n1-boot1"):
        """Let the manager's record say this of the service."""
        status = ServiceStatus(state, "n1", uid=uid, digest=WEB.digest())
        nodes = {"n1": NodeStatus(boot=boot)}
        self.storage.state = ClusterState(epoch, "n2", 3, 2, commands, {"web": status}, nodes)

    def round(self, seconds=ROUND):
        """Let some time pass, go round once, and return what was done but for heartbeats."""
        self.clock.go(seconds)
        del self.storage.log[:]
        self.daemon.round()
        return [row for row in self.storage.log if row[0] != "block"]

    def slow_down(self, name, seconds):
        """Let something that is asked of the storage take so many seconds."""
        done = getattr(self.storage, name)

        def take(*words):
            self.clock.go(seconds)
            return done(*words)

        setattr(self.storage, name, take)

    def run_web(self):
        """Let the service be started as the manager commands."""
        self.command(ServiceState.REQUEST_START)
        self.round()
        self.workers.end()
        self.round()


@pytest.fixture
def daemon(tmp_path):
    return Daemon(tmp_path)


def kinds(log):
    return [row[0] for row in log]


def test_a_report_is_spoken_of_on_the_whiteboard_before_the_manager_is_told_to_look(daemon):
    daemon.round()
    daemon.command(ServiceState.REQUEST_START)
    hints = len(daemon.network.hints)
    daemon.round(0.1)
    assert kinds(daemon.storage.log)[:2] == ["report", "block"]
    assert report_number(daemon.storage.log[1][1]) == 1
    assert len(daemon.network.hints) > hints


@pytest.mark.parametrize(
    ("backend", "seconds"),
    [
        ({}, 0),
        ({"backend": SANLOCK, "sanlock": SanlockSettings(watchdog_timeout=10)}, 10),
        ({"backend": SANLOCK, "sanlock": SanlockSettings(watchdog_timeout=0)}, 0),
    ],
    ids=["embedded", "sanlock", "sanlock without a watchdog"],
)
def test_the_first_report_of_an_lrm_says_after_how_long_its_watchdog_acts(
    tmp_path, monkeypatch, backend, seconds
):
    monkeypatch.setattr(node_configuration, "RUN_DIRECTORY", tmp_path / "run")
    daemon = Daemon(tmp_path, last=Report("n1", watchdog_timeout=60), **backend)
    (report,) = reports(daemon.round())
    assert report.watchdog_timeout == seconds


@pytest.mark.parametrize(("services", "coming", "bound"), [({}, (), False), ({}, ("web",), True)])
def test_a_node_is_bound_to_its_lrm_while_a_service_comes_to_it_live(
    tmp_path, services, coming, bound
):
    told = []
    supervision = SimpleNamespace(ready=lambda: None, alive=told.append)
    last = Report("n1", boot="n1-boot1", services=services, coming=coming)
    daemon = Daemon(tmp_path, last=last, supervision=supervision)
    daemon.network.listen = lambda seconds: (True, daemon.daemon._on_term() or set())
    daemon.daemon._on_term()
    daemon.daemon.run()
    assert told == [bound]


def reports(log):
    return [content for kind, content in log if kind == "report"]


@pytest.mark.parametrize("error", [StorageError("no answer"), LeaseError("a later epoch")])
def test_nothing_is_begun_that_could_not_be_written(daemon, error):
    daemon.command(ServiceState.REQUEST_START)
    daemon.storage.write_error = error
    assert [daemon.round(), daemon.round()] == [[], []]
    daemon.storage.write_error = None
    log = daemon.round()
    assert kinds(log) == ["report", "start"]
    assert log[0][1].accepted == {"7.1": "web"}


def test_a_turn_on_slow_storage_shows_life_between_its_steps(tmp_path):
    """Else the supervisor ends the LRM, or the manager takes it for gone and fences the node."""
    heard = []
    supervision = SimpleNamespace(alive=lambda _bound: heard.append(daemon.clock.now))
    daemon = Daemon(tmp_path, supervision=supervision)
    daemon.round()
    del heard[:]
    for name in ("read_orders", "own_record_stands"):
        daemon.slow_down(name, 5.0)
    daemon.round(OWN_LOOK)
    beats = [beat_of(one) for one in blocks(daemon)]
    assert [later - beat for beat, later in itertools.pairwise(beats)] == [5.0, 5.0]
    assert heard[:2] == beats[1:]


def test_a_first_turn_on_slow_storage_has_no_heartbeat_before_its_report(daemon):
    daemon.slow_down("read_orders", 2 * REPORT_FIRST)
    daemon.round()
    assert kinds(daemon.storage.log) == ["report", "block"]


def test_a_node_that_can_write_no_record_says_so_on_the_whiteboard(daemon):
    daemon.round()
    daemon.command(ServiceState.REQUEST_START)
    daemon.storage.write_error = StorageError('"n1" has no room | 1 MiB')
    for seconds in (1.0, 5.0):
        daemon.round(seconds)
        assert [trouble_told(one) for one in blocks(daemon)] == [""]
    daemon.round(HINDERED)
    (block,) = blocks(daemon)
    assert trouble_told(block).endswith("as its record is not written: 'n1' has no room ' 1 MiB")
    assert block.score == 0
    daemon.storage.write_error = None
    daemon.round(1.0)
    assert trouble_told(blocks(daemon)[-1]) == ""


def test_a_node_that_cannot_read_what_it_is_told_says_so_on_the_whiteboard(daemon):
    daemon.round()
    daemon.storage.state = UNREADABLE
    for seconds in (1.0, HINDERED - 1.0):
        daemon.round(seconds)
        assert trouble_told(blocks(daemon)[-1]) == ""
    daemon.round(1.0)
    daemon.round(1.0)
    told = "its LRM does nothing, as what the manager wrote cannot be read: the storage is gone"
    assert trouble_told(blocks(daemon)[-1]) == told
    daemon.storage.state = None
    daemon.round(1.0)
    daemon.round(1.0)
    assert trouble_told(blocks(daemon)[-1]) == ""


def test_a_command_is_begun_once(daemon):
    daemon.run_web()
    assert daemon.workers.jobs == {}
    assert [daemon.round() for _turn in range(3)] == [[], [], []]


def test_a_service_is_not_looked_at_again_while_a_look_at_it_is_under_way(daemon):
    daemon.run_web()
    daemon.command(ServiceState.STARTED)
    assert ("monitor", "web") in daemon.round(1001.0)
    assert ("monitor", "web") not in daemon.round(1001.0)
    daemon.workers.end()
    assert ("monitor", "web") not in daemon.round()
    assert ("monitor", "web") in daemon.round(1001.0)


def test_the_end_of_a_job_is_not_lost_while_it_cannot_be_written(daemon):
    daemon.command(ServiceState.REQUEST_START)
    daemon.round()
    daemon.workers.end(Outcome.FAILED, text="the port is taken")
    daemon.storage.write_error = StorageError("no answer")
    assert [daemon.round(), daemon.round()] == [[], []]
    daemon.storage.write_error = None
    (report,) = reports(daemon.round())
    assert report.results["7.1"].outcome is Outcome.FAILED
    assert report.results["7.1"].text == "the port is taken"


def test_the_end_of_a_job_counts_once(daemon):
    daemon.run_web()
    daemon.command(ServiceState.REQUEST_STOP, uid="7.2", commands=2)
    assert kinds(daemon.round()) == ["report", "stop"]
    assert [daemon.round(), daemon.round()] == [[], []]
    assert daemon.daemon._lrm.report.services["web"].state is LocalState.STOPPING


LEASE_TROUBLE = [
    (lease_view(1, state=HostState.FAIL, unchanged_for=16.0), "was not renewed for 16 s"),
    (lease_view(1, state=HostState.DEAD, unchanged_for=30.0), "was not renewed for 30 s"),
    (lease_view(1, state=HostState.FREE), "is no longer that of this start (generation 4)"),
    (lease_view(1, generation=5), "is no longer that of this start (generation 4)"),
]


@pytest.mark.parametrize(("view", "reason"), LEASE_TROUBLE)
@pytest.mark.parametrize("error", [None, StorageError("no answer")], ids=["writes", "cannot write"])
def test_without_a_host_lease_services_are_stopped_even_if_that_cannot_be_written(
    daemon, view, reason, error
):
    daemon.run_web()
    daemon.storage.leases.views[1] = view
    daemon.storage.write_error = error
    log = daemon.round()
    assert kinds(log) == (["stop"] if error else ["report", "stop"])
    assert reason in daemon.workers.jobs["web"].reason
    daemon.workers.end(Outcome.OK, Sight.STOPPED)
    assert kinds(daemon.round()) == ([] if error else ["report"])
    daemon.storage.write_error = None
    daemon.round()
    (report,) = [daemon.daemon._lrm.written]
    assert (report.services["web"].state, report.lease_lost) == (LocalState.STOPPED, True)


@pytest.mark.parametrize(("view", "reason"), LEASE_TROUBLE)
def test_without_a_host_lease_nothing_is_started(daemon, view, reason):
    daemon.storage.leases.views[1] = view
    daemon.command(ServiceState.REQUEST_START)
    assert not {"start"} & set(kinds(daemon.round() + daemon.round()))
    assert reason in daemon.daemon._start_obstacle()


def test_a_storage_that_cannot_be_read_stops_services_only_after_the_fail_time(daemon):
    daemon.run_web()
    renewed = daemon.clock.now - lease_view(1).unchanged_for
    daemon.storage.leases.views[1] = UNREADABLE
    daemon.storage.state = UNREADABLE
    daemon.storage.write_error = UNREADABLE
    stops = []
    while not stops:
        stops = [row for row in daemon.round() if row[0] == "stop"]
        seconds = daemon.clock.now - renewed
        assert bool(stops) == (seconds >= daemon.storage.leases.fail_seconds)
    assert (
        "was not observed to be renewed for 16 s: the storage is gone"
        in daemon.workers.jobs["web"].reason
    )


def test_a_storage_that_comes_back_in_time_stops_nothing(daemon):
    daemon.run_web()
    for _turn in range(3):
        daemon.storage.leases.views[1] = UNREADABLE
        assert set(kinds(daemon.round(15.0))) <= {"report"}
        daemon.storage.leases.views.clear()
        assert "stop" not in kinds(daemon.round())


def test_workers_may_start_nothing_once_the_lease_was_not_seen_renewed_for_the_fail_time(daemon):
    daemon.storage.leases.views[1] = lease_view(1, unchanged_for=4.0)
    daemon.round()
    assert daemon.daemon._start_obstacle() == ""
    daemon.clock.go(11.9)
    assert daemon.daemon._start_obstacle() == ""
    daemon.clock.go(0.1)
    assert "was not observed to be renewed for 16 s" in daemon.daemon._start_obstacle()
    daemon.round(0.0)
    assert daemon.daemon._start_obstacle() == ""


@pytest.mark.parametrize(
    ("jump", "reason"),
    [
        ({"suspended": 2.0}, "this node was suspended for 2 s"),
        ({"wall_jump": 2.0}, "the wall clock of this node jumped ahead by 2 s"),
        ({"wall_jump": -3600.0}, ""),
    ],
)
def test_workers_start_nothing_after_a_jump_until_lease_and_record_were_read_again(
    daemon, jump, reason
):
    daemon.run_web()
    for name, seconds in jump.items():
        setattr(daemon, name, seconds)
    assert bool(reason) == bool(daemon.daemon._start_obstacle())
    assert reason in daemon.daemon._start_obstacle()
    daemon.storage.state, state = UNREADABLE, daemon.storage.state
    daemon.round()
    assert reason in daemon.daemon._start_obstacle()
    daemon.storage.state = state
    assert "stop" not in kinds(daemon.round())
    assert daemon.daemon._start_obstacle() == ""


def test_a_jump_in_the_middle_of_a_turn_is_known_to_the_workers_until_the_next_one(daemon):
    """The host lease was read before it, so that it may have failed since."""
    daemon.run_web()
    read_orders = daemon.storage.read_orders

    def suspended():
        daemon.suspended += 2.0
        return read_orders()

    daemon.storage.read_orders = suspended
    daemon.round()
    assert "this node was suspended for 2 s" in daemon.daemon._start_obstacle()
    daemon.storage.read_orders = read_orders
    daemon.round()
    assert daemon.daemon._start_obstacle() == ""


def test_a_node_that_was_suspended_for_long_stops_its_services(tmp_path):
    daemon = Daemon(tmp_path, backend=SANLOCK, sanlock=ON_ONE_COMPUTER)
    daemon.run_web()
    daemon.suspended = 16.0
    assert "this node was suspended for 16 s" in daemon.daemon._start_obstacle()
    assert kinds(daemon.round()) == ["report", "stop"]
    assert "this node was suspended for 16 s" in daemon.workers.jobs["web"].reason
    assert "may have failed meanwhile" in daemon.daemon._start_obstacle()


@pytest.mark.parametrize(
    ("status", "stops"),
    [
        (NodeStatus(NodeState.OFF, boot="n1-boot1", proof=verified_off("fenced")), True),
        (NodeStatus(NodeState.FENCE, boot="n1-boot1", proof=verified_off("fenced")), True),
        (NodeStatus(NodeState.FENCE, boot="n1-boot1"), False),
        (NodeStatus(NodeState.SUSPECT, boot="n1-boot1"), False),
        (NodeStatus(NodeState.OFF, boot="n1-boot0", proof=verified_off("fenced")), False),
    ],
)
def test_a_node_whose_present_start_was_proved_dead_stops_all_it_runs(daemon, status, stops):
    daemon.run_web()
    daemon.command(ServiceState.STARTED)
    daemon.round()
    daemon.storage.state = replace(daemon.storage.state, nodes={"n1": status})
    assert ("stop" in kinds(daemon.round())) is stops
    assert ("node dead: fenced" in daemon.daemon._start_obstacle()) is stops


@pytest.mark.parametrize("virtual", ["", "kvm", None])
def test_the_first_report_of_an_lrm_says_whether_its_node_is_a_virtual_machine(
    tmp_path, monkeypatch, virtual
):
    monkeypatch.setattr(lrm, "virtual_machine", lambda configuration: virtual)
    daemon = Daemon(tmp_path, last=Report("n1", virtual="xen"))
    (report,) = reports(daemon.round())
    assert report.virtual == virtual


def blocks(daemon):
    return [content for kind, content in daemon.storage.log if kind == "block"]


def test_the_heartbeat_goes_on_while_all_else_on_the_storage_fails(daemon):
    daemon.round()
    first = beat_of(blocks(daemon)[-1])
    daemon.storage.write_error = daemon.storage.state = UNREADABLE
    daemon.storage.leases.views[1] = UNREADABLE
    written = []
    for _turn in range(8):
        daemon.round(Timing().heartbeat / 2)
        written += [beat_of(block) - first for block in blocks(daemon)]
    assert written == [0.5, 1.0, 1.5, 2.0]


def test_a_heartbeat_that_cannot_be_written_holds_up_nothing_and_is_tried_again(daemon, capsys):
    daemon.command(ServiceState.REQUEST_START)
    daemon.storage.board.error = StorageError("no answer")
    assert kinds(daemon.round()) == ["report", "start"]
    assert "heartbeat not written: no answer" in capsys.readouterr().err
    daemon.storage.board.error = None
    daemon.round(1.0)
    assert len(blocks(daemon)) == 1


def test_the_heartbeat_says_what_runs_here_and_whether_the_node_is_drained(daemon):
    daemon.round()
    *_first, idle = blocks(daemon)
    assert (idle.host_id, idle.host_name, idle.score) == (1, "n1", FULL_SCORE)
    health = {"vm": "down", "health": "bad", "detail": "0 services", "report": 1, "part": 25}
    assert idle.health == health
    assert (idle.maintenance, idle.stopped) == (False, False)
    daemon.run_web()
    daemon.storage.desired = DesiredState(4, {"web": WEB}, maintenance={"n1": Maintenance("disks")})
    daemon.storage.state = replace(daemon.storage.state, config_version=4)
    daemon.round(1.0)
    daemon.round(1.0)
    *_earlier, busy = blocks(daemon)
    detail = {"vm": "up", "health": "good", "detail": "1 services"}
    assert {key: busy.health[key] for key in detail} == detail
    assert (busy.score, busy.maintenance) == (0, True)


def test_a_managers_record_that_cannot_be_read_changes_nothing_here(daemon, capsys):
    daemon.run_web()
    for error in (UNREADABLE, FormatError("no copy is whole")):
        daemon.storage.state = error
        assert daemon.round() == []
        assert f"the manager's record cannot be read: {error}" in capsys.readouterr().err


def test_what_the_last_record_said_is_not_begun_while_the_next_cannot_be_read(daemon):
    daemon.storage.leases.views[1] = lease_view(1, state=HostState.FAIL, unchanged_for=20.0)
    daemon.command(ServiceState.REQUEST_START)
    daemon.round()
    daemon.storage.leases.views.clear()
    daemon.storage.state, state = FormatError("no copy is whole"), daemon.storage.state
    assert "start" not in kinds([*daemon.round(), *daemon.round()])
    daemon.storage.state = state
    assert "start" in kinds([*daemon.round(), *daemon.round()])


def test_a_configuration_older_than_the_managers_record_starts_nothing(daemon):
    daemon.storage.desired = DesiredState(2, {"web": WEB})
    daemon.command(ServiceState.REQUEST_START)
    assert "start" not in kinds(daemon.round())
    daemon.storage.desired = DesiredState(3, {"web": WEB})
    assert "start" in kinds(daemon.round())


def test_the_configuration_is_read_once_for_all_records_that_the_manager_made_from_it(daemon):
    daemon.run_web()
    for _round in range(3):
        daemon.round()
    assert daemon.storage.asked_for_desired == [2]
    daemon.storage.desired = DesiredState(4, {})
    daemon.storage.state = replace(daemon.storage.state, config_version=4, config_slot=1)
    daemon.round()
    assert daemon.storage.asked_for_desired == [2, 1]


def test_a_report_is_written_only_when_it_changed_and_the_manager_is_told_then(daemon):
    daemon.command(ServiceState.REQUEST_STOP)
    daemon.run_web()
    manager = daemon.configuration.members["n2"]
    assert set(daemon.network.hints) == {(manager.address, manager.port + 2)}
    told = len(daemon.network.hints)
    assert daemon.round() == []
    assert len(daemon.network.hints) == told


def test_a_report_that_nothing_changes_is_written_again_now_and_then_as_it_may_be_damaged(daemon):
    (written,) = reports(daemon.round())
    assert daemon.round(WRITTEN_AGAIN - 1.0) == []
    assert daemon.round(1.0) == [("report", written)]
    assert daemon.round(1.0) == []


def test_what_a_predecessor_left_is_probed_before_anything_else_is_done_with_it(tmp_path):
    local = LocalService(WEB, LocalState.RUNNING, "7.1")
    last = Report("n1", "n1-boot1", 7, 1, 3, services={"web": local})
    daemon = Daemon(tmp_path, last)
    daemon.command(ServiceState.REQUEST_STOP, uid="7.2", commands=2)
    assert kinds(daemon.round()) == ["report", JobKind.PROBE.value]
    daemon.workers.end()
    assert kinds(daemon.round()) == ["report", "stop"]


def test_a_report_of_its_own_that_is_damaged_is_not_taken_for_an_empty_one(tmp_path):
    with pytest.raises(FormatError, match="no copy is whole"):
        Daemon(tmp_path, FormatError("no copy is whole"))


ON_SANLOCK = {"backend": SANLOCK, "sanlock": SanlockSettings(2, 0, "/tmp/sanlock-of-n1")}
LOST = LeaseError("sanlock has lost lockspace c1")
RUNS = Report("n1", "n1-boot1", 7, 1, 3, services={"web": LocalService(WEB, LocalState.RUNNING)})


def test_the_watchdog_is_disarmed_only_once_the_last_service_has_stopped(tmp_path):
    daemon = Daemon(tmp_path, **ON_SANLOCK)
    leases = daemon.storage.leases
    daemon.run_web()
    leases.renew_error = daemon.storage.host_lease = LOST
    assert kinds(daemon.round(1.0)) == ["report", "stop"]
    assert "is lost: sanlock has lost lockspace c1" in daemon.workers.jobs["web"].reason
    daemon.round()
    assert leases.disarmed == 0
    daemon.workers.end(Outcome.OK, Sight.STOPPED)
    daemon.round()
    assert leases.disarmed == 1


def test_the_watchdog_stays_armed_over_a_service_that_cannot_be_stopped(tmp_path):
    daemon = Daemon(tmp_path, **ON_SANLOCK)
    daemon.run_web()
    daemon.storage.leases.renew_error = daemon.storage.host_lease = LOST
    daemon.round(1.0)
    daemon.workers.end(Outcome.BLOCKED, Sight.PARTLY, "it does not stop")
    for _turn in range(5):
        daemon.round()
    assert daemon.storage.leases.disarmed == 0


def test_services_of_a_predecessor_run_on_while_the_host_lease_cannot_be_looked_at(tmp_path):
    daemon = Daemon(tmp_path, RUNS, NoAnswerError("sanlock hangs"), **ON_SANLOCK)
    assert [daemon.round() for _turn in range(4)] == [[], [], [], []]
    daemon.storage.host_lease = 4
    assert kinds(daemon.round(1.0)) == ["report", "probe"]


def test_services_of_a_predecessor_are_stopped_when_there_is_no_host_lease(tmp_path):
    daemon = Daemon(tmp_path, RUNS, LOST, **ON_SANLOCK)
    assert kinds(daemon.round()) == ["probe"]
    daemon.workers.end()
    assert kinds(daemon.round()) == ["stop"]
    assert daemon.storage.leases.disarmed == 0


@pytest.mark.parametrize(
    ("state", "ran"),
    [
        (LocalState.RUNNING, True),
        (LocalState.UNKNOWN, True),
        (LocalState.STOPPING, True),
        (LocalState.MIGRATING, True),
        (LocalState.BLOCKED, True),
        (LocalState.STARTING, False),
        (LocalState.STOPPED, False),
        (LocalState.FAILED, False),
    ],
)
def test_workers_are_told_what_a_predecessor_saw_running_here(tmp_path, state, ran):
    daemon = Daemon(tmp_path, replace(RUNS, services={"web": LocalService(WEB, state)}))
    assert daemon.daemon._ran_here("web") is ran
    assert not daemon.daemon._ran_here("other")


def test_an_lrm_waits_at_its_start_for_a_storage_that_is_late_and_says_so_once(tmp_path, capfd):
    create_storage(tmp_path)
    node, clock, late = configuration(tmp_path), Clock(), tmp_path / "late"
    node.state_path.rename(late)

    def pause(seconds):
        clock.go(seconds)
        if clock.now >= 1005.0 and late.exists():
            late.rename(node.state_path)

    storage = storage_with_own_record(node, clock, pause)
    assert storage.read_report(node.me.host_id) is None
    assert clock.now == 1005.0
    assert capfd.readouterr().err.count("waits for the storage") == 1
    node.state_path.unlink()
    with pytest.raises(StorageError):
        storage_with_own_record(node, clock, clock.go)
    assert clock.now == 1005.0 + START_WAIT


def test_an_lrm_without_storage_ends_twice_before_its_node_would_be_fenced():
    # With each start systemd tries to mount the storage again.
    assert Timing().daemon_grace > 2 * START_WAIT


def test_a_node_is_answered_for_while_its_lrm_waits_at_its_start_for_the_storage(
    tmp_path, monkeypatch, port, n2
):
    answers = []

    def wait(node, _clock):
        n2.sendto(datagram("ask"), (HOST, node.me.at(LRM)[1]))
        answers.append(n2.recv(512))
        return StorageStandIn()

    monkeypatch.setattr(lrm, "storage_with_own_record", wait)
    daemon = LocalDaemon(configuration(tmp_path, first_port=port - 3), workers=WorkersStandIn([]))
    daemon._network.close()
    assert b'"answer"' in answers[0]


def test_workers_are_told_what_was_left_to_its_operator_here(tmp_path):
    daemon = Daemon(tmp_path, replace(RUNS, services={}, left=("web",)))
    assert daemon.daemon._ran_here("web")
    assert not daemon.daemon._ran_here("other")


def test_a_node_that_never_had_the_host_lease_writes_into_no_slot(tmp_path):
    """The host id may be another node's by mistake."""
    daemon = Daemon(tmp_path, None, LOST)
    for _turn in range(3):
        daemon.round(1.0)
        assert daemon.storage.log == []
    daemon.storage.host_lease = 4
    daemon.round(1.0)
    assert set(kinds(daemon.storage.log)) == {"block", "report"}


def test_a_lease_whose_next_renewal_is_in_doubt_lets_nothing_new_be_started(daemon):
    daemon.round()
    daemon.storage.leases.views[1] = UNREADABLE
    daemon.round(15.0)
    daemon.command(ServiceState.REQUEST_START)
    assert "start" not in kinds(daemon.round(0.1))
    daemon.storage.leases.views.clear()
    assert "start" in kinds(daemon.round() + daemon.round())


@pytest.mark.parametrize(("unchanged_for", "starts"), [(7.9, True), (8.0, False)])
def test_nothing_new_is_started_from_half_of_the_fail_time_without_a_renewal(
    daemon, unchanged_for, starts
):
    daemon.storage.leases.views[1] = lease_view(1, unchanged_for=unchanged_for)
    daemon.command(ServiceState.REQUEST_START)
    assert ("start" in kinds(daemon.round() + daemon.round())) is starts


@pytest.mark.parametrize("why", ["reboot", "poweroff", "restart"])
def test_an_lrm_that_is_told_to_end_says_so_before_it_does_anything_else(daemon, monkeypatch, why):
    monkeypatch.setattr(lrm, "why_ending", lambda *_rest: why)
    daemon.run_web()
    daemon.daemon._on_term()
    (said,) = reports(daemon.round())
    assert said.mode is {"poweroff": Mode.SHUTDOWN}.get(why, Mode.RESTART)
    assert ("stop" in kinds(daemon.round())) == (why != "restart")
    assert not daemon.daemon._lrm.ends


def test_an_lrm_ends_once_its_services_have_stopped_or_when_it_is_told_twice(daemon, monkeypatch):
    monkeypatch.setattr(lrm, "why_ending", lambda *_rest: "poweroff")
    daemon.run_web()
    daemon.daemon._on_term()
    daemon.round()
    daemon.round()
    daemon.workers.end(sight=Sight.STOPPED)
    daemon.round()
    assert daemon.daemon._lrm.ends
    daemon.daemon._lrm.ends = False
    daemon.daemon._on_term()
    daemon.round()
    assert daemon.daemon._lrm.ends


@pytest.mark.parametrize("why", ["poweroff", "reboot"])
def test_the_last_block_of_a_node_that_shuts_down_in_order_says_that_it_stopped(
    daemon, monkeypatch, why
):
    monkeypatch.setattr(lrm, "why_ending", lambda *_rest: why)
    daemon.run_web()
    daemon.daemon._on_term()
    for _turn in range(int(FREEZE_WAIT) + 2):
        daemon.round(1.0)
    assert not any(one.stopped for one in blocks(daemon))
    daemon.workers.end(sight=Sight.STOPPED)
    daemon.round()
    assert daemon.daemon._lrm.ends
    *_earlier, last = blocks(daemon)
    assert (last.stopped, last.score) == (True, 0)


def test_a_node_whose_daemons_alone_are_restarted_has_not_stopped(daemon, monkeypatch):
    monkeypatch.setattr(lrm, "why_ending", lambda *_rest: "restart")
    daemon.round()
    daemon.daemon._on_term()
    daemon.round(1.0)
    assert daemon.daemon._lrm.ends
    assert not any(one.stopped for one in blocks(daemon))


def test_an_lrm_that_alone_is_started_anew_waits_for_a_manager_only_for_a_while(
    daemon, monkeypatch
):
    monkeypatch.setattr(lrm, "why_ending", lambda *_rest: "restart")
    daemon.run_web()
    daemon.daemon._on_term()
    daemon.round()
    daemon.round(FREEZE_WAIT - 2.0)
    assert not daemon.daemon._lrm.ends
    daemon.round(2.0)
    assert daemon.daemon._lrm.ends
    assert "stop" not in kinds(daemon.storage.log)


def test_the_report_says_what_room_the_node_has(tmp_path, monkeypatch):
    monkeypatch.setattr(lrm, "node_room", lambda: (4.0, 2048.0))
    daemon = Daemon(tmp_path)
    assert [one.room for one in reports(daemon.round())] == [(4.0, 2048.0)]


def test_an_lrm_asks_again_why_it_is_to_end_while_nobody_says(daemon, monkeypatch):
    answers = ["", "", "poweroff"]
    monkeypatch.setattr(lrm, "why_ending", lambda _configuration, tried: answers[tried - 1])
    daemon.run_web()
    daemon.daemon._on_term()
    said = []
    for _turn in range(4):
        said += [one.mode for one in reports(daemon.round())]
    assert (said[:1], daemon.daemon._lrm.ends) == ([Mode.SHUTDOWN], False)


def test_looks_at_a_service_that_runs_well_are_not_logged_and_those_that_find_it_failed_are(
    daemon, capsys
):
    daemon.run_web()
    capsys.readouterr()
    daemon.round(seconds=1000.0)
    daemon.workers.end(sight=Sight.RUNNING)
    daemon.round()
    assert "monitor web" not in capsys.readouterr().err
    daemon.round(seconds=1000.0)
    daemon.workers.end(sight=Sight.STOPPED, text="r: 7 (not running)")
    daemon.round()
    assert "monitor web 7.1: ok, r: 7 (not running)" in capsys.readouterr().err


def test_a_new_managers_record_that_knows_less_than_was_acted_on_is_not_followed(daemon):
    daemon.run_web()
    running = daemon.daemon._lrm.report.services["web"]
    daemon.command(ServiceState.REQUEST_STOP, uid="8.1", epoch=8, commands=9)
    daemon.storage.state = replace(daemon.storage.state, base=0)
    for _turn in range(30):
        daemon.round()
    assert daemon.daemon._lrm.report.services["web"].uid == running.uid
    assert daemon.workers.jobs == {}
    told = [row[1] for row in daemon.storage.log if row[0] == "block"]
    assert "older than what n1 acted on" in trouble_told(told[-1])
    daemon.storage.state = replace(daemon.storage.state, base=1)
    daemon.round()
    assert daemon.workers.jobs["web"].kind.value == "stop"


def test_a_record_after_a_repair_is_followed_and_lowers_the_floors(daemon):
    daemon.run_web()
    daemon.command(ServiceState.REQUEST_STOP, uid="2.1", epoch=2, commands=1)
    daemon.storage.state = replace(daemon.storage.state, base=0, generation=1, config_version=1)
    daemon.storage.desired = replace(daemon.storage.desired, version=1, generation=1)
    (report, *_rest) = reports(daemon.round())
    acted_on = (report.generation, report.epoch, report.commands, report.config_version)
    assert acted_on == (1, 2, 1, 1)


def test_the_next_lrm_goes_on_from_the_local_copy_where_the_storage_went_back(tmp_path):
    first = Daemon(tmp_path)
    first.run_web()
    kept = first.daemon._lrm.report
    again = Daemon(tmp_path, last=None)
    assert again.daemon._lrm.report.services["web"].uid == kept.services["web"].uid
    assert (again.daemon._lrm.report.epoch, again.daemon._lrm.report.commands) == (7, 1)
    assert again.storage.after >= 1
    damaged = Daemon(tmp_path, last=FormatError("no copy is whole"))
    assert damaged.daemon._lrm.report.services.keys() == {"web"}


def test_without_a_local_copy_a_damaged_record_is_an_error(tmp_path):
    with pytest.raises(FormatError):
        Daemon(tmp_path, last=FormatError("no copy is whole"))


def test_an_own_record_that_is_not_as_it_was_written_is_written_again(daemon):
    daemon.round()
    assert reports(daemon.round(OWN_LOOK + 1)) == []
    daemon.storage.stands = False
    assert len(reports(daemon.round(OWN_LOOK + 1))) == 1
    daemon.storage.stands = UNREADABLE
    assert reports(daemon.round(OWN_LOOK + 1)) == []


def test_a_full_local_disk_keeps_no_node_from_its_work(daemon, monkeypatch):
    def full(*_arguments):
        raise StorageError("no space is left")

    monkeypatch.setattr(daemon.daemon._kept, "write", full)
    daemon.command(ServiceState.REQUEST_START)
    daemon.round()
    assert daemon.workers.jobs.keys() == {"web"}


def test_only_a_heartbeat_that_was_written_is_named_in_answers(daemon):
    daemon.round()
    named = list(daemon.network.written)
    assert named
    assert named[-1] == int(daemon.clock.now)
    daemon.storage.board.error = UNREADABLE
    daemon.round(2.0)
    assert daemon.network.written == named


def test_the_agents_that_the_last_lrm_left_are_ended_before_its_report_is_read(
    tmp_path, monkeypatch
):
    done = []
    read_report = StorageStandIn.read_report

    def read(*arguments):
        done.append("report")
        return read_report(*arguments)

    monkeypatch.setattr(lrm, "end_leftover_agents", lambda configuration: done.append("agents"))
    monkeypatch.setattr(StorageStandIn, "read_report", read)
    Daemon(tmp_path)
    assert done[:2] == ["agents", "report"]


def test_before_the_host_lease_is_adopted_it_counts_as_failed_after_eight_io_timeouts(daemon):
    io_timeout = daemon.configuration.sanlock.io_timeout
    assert daemon.daemon._settings().fail_seconds == 8.0 * io_timeout


def test_a_managers_record_is_not_followed_while_a_newer_one_may_be_damaged(daemon):
    daemon.command(ServiceState.REQUEST_START)
    state, daemon.storage.state = daemon.storage.state, FormatError("a newer record is damaged")
    daemon.storage.readable_manager = lambda: (state, "a newer record is damaged")
    assert "start" not in kinds([*daemon.round(), *daemon.round()])


@pytest.mark.parametrize(("boot", "beats"), [("n1-boot1", True), ("n1-boot0", False)])
def test_after_a_boot_the_report_comes_before_the_first_heartbeat(tmp_path, boot, beats):
    daemon = Daemon(tmp_path, last=Report("n1", boot=boot))
    daemon.storage.write_error = UNREADABLE
    daemon.round()
    assert bool(blocks(daemon)) is beats
    daemon.round(REPORT_FIRST)
    assert blocks(daemon)


def test_after_a_boot_whose_join_takes_long_the_report_still_comes_before_the_first_heartbeat(
    tmp_path,
):
    """Else the manager takes the node for one that was confirmed dead and goes on writing."""
    daemon = Daemon(tmp_path, last=Report("n1", boot="n1-boot0"), host_lease=LOST)
    daemon.round(2 * REPORT_FIRST)
    daemon.storage.host_lease = 4
    daemon.round()
    assert kinds(daemon.storage.log) == ["report", "block"]
