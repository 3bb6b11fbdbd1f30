# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CRM daemon: nothing is ordered that is not written, and nothing by who lost the lease.

What it decides is tested with ``manager/``; here it is what the daemon does around that.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.cycle import (
    CONFIRM,
    OWN_LOOK,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.effects import (
    Fence,
    FenceEnd,
    Observation,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.eligibility import (
    RESIGN_AFTER,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.memory import LATE
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.pausing import (
    DISARMED,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    FREEZE,
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.effects import (
    Clocks,
    ReadClocks,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.lease_freeing import (  # noqa: E501
    Freeing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.membership import (  # noqa: E501
    Acceptance,
    Place,
    make_membership,
    with_version,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Answer,
    FenceReport,
    HostState,
    HostView,
    LeaseSight,
    ObservedNode,
    PowerReport,
    Timing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    Resource,
    Service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    Intent,
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
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.interface import (
    LeaseHolder,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.crm import (
    ClusterDaemon,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.heartbeat import (
    read_trouble,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.own_membership import (  # noqa: E501
    OwnMembership,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.record_guard import (  # noqa: E501
    KeptReport,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.telemetry import (
    read_telemetry,
    telemetry_path,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import pending
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import NODES, Clock, configuration
from ansible_collections.holdfast.ha.tests.unit.node.stand_ins import (
    NetworkStandIn,
    StorageStandIn,
    given,
    lease_view,
)

WEB = Service("web", (Resource("r", "ocf:test:thing"),))
EPOCH = 8
LOOK = Timing().look


class ObserverStandIn:
    """Says of the nodes what a test says."""

    def __init__(self, clock):
        self.clock = clock
        self.nodes = {name: observed(name) for name in NODES}
        self.trouble = self.held = self.elsewhere = ""
        self.error = None
        self.changed = dict.fromkeys(NODES, 0.0)
        self.answering = set()
        self.beating = set()
        self.foreign = {}
        self.took = 0.0

    def look(self):
        given(self.error)
        took, self.took = self.took, 0.0
        self.clock.go(took)
        nodes = dict(self.nodes)
        return Observation(
            nodes,
            self.held,
            self.trouble or self.elsewhere,
            took,
            dict(self.changed),
            dict.fromkeys(self.answering, self.clock.now),
            foreign=self.foreign,
            elsewhere=self.elsewhere,
        )

    def due_in(self):
        return math.inf

    def answered(self, nodes):
        return None

    def has_new_heartbeat(self, node):
        return node in self.beating

    def with_lease(self, host_id, view):
        return view or HostView(age=60.0, lease=LeaseSight.FREE)


class OrdersStandIn:
    """Notes the orders in the storage's log, beside what was written."""

    def __init__(self, log):
        self.log = log
        self.under_way = set()
        self.ended = []
        self.powered = []

    def fence(self, node):
        self.log.append(("fence", node))
        self.under_way.add(node)

    def power_on(self, node):
        self.log.append(("power on", node))

    def fencing(self):
        return frozenset(self.under_way)

    def take_fences(self):
        ended, self.ended = self.ended, []
        self.under_way -= {end.report.node for end in ended}
        return ended

    def take_powers(self):
        powered, self.powered = self.powered, []
        return powered


def observed(name, age=0.5, **changes):
    return ObservedNode(age, report=Report(name, boot=f"{name}-boot1"), **changes)


def silent(name, age=4.0):
    return observed(name, age, answer=Answer.NO)


GIVES_UP = [("release", "manager")]
"""What a CRM does that has no state when its storage fails."""


class Daemon:
    """A CRM on n1 that has the manager lease, and a service that runs on n3."""

    def __init__(self, folder):
        self.clock = Clock()
        self.storage = StorageStandIn()
        self.storage.leases.epoch = EPOCH
        self.storage.desired = DesiredState(3, {"web": WEB})
        self.storage.state = ClusterState(
            epoch=EPOCH - 1,
            manager="n2",
            config_version=3,
            config_slot=1,
            services={
                "web": ServiceStatus(ServiceState.STARTED, "n3", uid="7.1", digest=WEB.digest())
            },
            nodes={name: NodeStatus(NodeState.ONLINE, boot=f"{name}-boot1") for name in NODES},
        )
        self.observer = ObserverStandIn(self.clock)
        self.orders = OrdersStandIn(self.storage.log)
        self.network = NetworkStandIn()
        self.configuration = configuration(folder, suspect_after=3.0)
        self.daemon = ClusterDaemon(
            self.configuration,
            network=self.network,
            storage=self.storage,
            observer=self.observer,
            orders=self.orders,
            clocks=self.clocks,
        )

    def clocks(self):
        """Return what all clocks show."""
        return Clocks(self.clock.now, time.time(), self.clock.now)

    def round(self, seconds=LOOK):
        """Let some time pass, go round once, and return what was done."""
        self.clock.go(seconds)
        del self.storage.log[:]
        self.daemon.round()
        return list(self.storage.log)

    def failing_round(self):
        """Go round once; it ends without a decision as the storage or a lease fails."""
        orders = self.round()
        assert self.daemon._crm.trouble.startswith("this node's own storage fails")
        return orders

    def end_fence(self, node="n3", confirmed=True, took=1.0):
        """Let a fence end that was sent *took* seconds ago."""
        report = FenceReport(node, confirmed, "its own status", 0.0, 0.0)
        self.orders.ended.append(FenceEnd(report, self.clock.now - took, self.clock.now))

    def written(self):
        """Return the last state that was written."""
        return [row[1] for row in self.storage.log if row[0] == "state"][-1]


@pytest.fixture
def daemon(tmp_path):
    return Daemon(tmp_path)


@pytest.fixture
def manager(daemon):
    """A manager that has just written its first record."""
    assert kinds(daemon.round()) == ["state"]
    return daemon


def kinds(log):
    return [row[0] for row in log]


def test_who_does_not_use_the_storage_of_the_others_does_not_become_manager(daemon):
    daemon.observer.nodes["n3"] = observed("n3", 4.0, answer=Answer.YES)
    daemon.configuration.run_directory.mkdir(parents=True)
    daemon.observer.elsewhere = "n3 writes heartbeats that n1 does not see"
    daemon.storage.leases.manager = LeaseHolder(3, 4, EPOCH, True)
    for _turn in range(3):
        assert set(kinds(daemon.round())) <= {"release"}
    assert read_trouble(daemon.configuration.run_directory, daemon.clock.now)
    daemon.observer.elsewhere = ""
    assert "state" in kinds(daemon.round())
    assert not read_trouble(daemon.configuration.run_directory, daemon.clock.now)


def test_a_manager_whose_storage_others_do_not_use_fences_nobody(manager):
    manager.observer.nodes["n3"] = observed("n3", 400.0, answer=Answer.NO, lease=LeaseSight.DEAD)
    manager.observer.elsewhere = "n2 writes heartbeats that n1 does not see"
    for _turn in range(3):
        assert "fence" not in kinds(manager.round())
    manager.observer.elsewhere = ""
    log = manager.round()
    assert log[0][1].nodes["n3"].state is NodeState.OFF


def test_who_has_just_joined_gives_a_node_that_it_never_saw_time_to_boot(manager):
    manager.observer.nodes["n3"] = replace(silent("n3"), beats=False)
    assert kinds(manager.round()) == ["state"]
    assert "joined only" in manager.written().nodes["n3"].reason
    assert "fence" not in kinds(manager.round(20.0))
    assert "fence" in kinds(manager.round(20.0))


def test_no_fence_is_sent_whose_reason_could_not_be_written(manager):
    manager.observer.nodes["n3"] = silent("n3")
    manager.storage.write_error = StorageError("the storage is full")
    assert manager.failing_round() == GIVES_UP
    manager.storage.write_error = None
    assert kinds(manager.round()) == ["state"], "it judges no node by what it read before"
    log = manager.round()
    assert kinds(log) == ["state", "fence"]
    assert log[0][1].nodes["n3"].state is NodeState.FENCE
    assert log[0][1].nodes["n3"].reason


def test_after_a_write_that_failed_the_record_is_read_anew(manager):
    manager.observer.nodes["n3"] = silent("n3")
    manager.storage.write_error = StorageError("no answer")
    manager.failing_round()
    manager.storage.write_error = None
    known = replace(manager.storage.state, epoch=EPOCH, manager="n1", commands=41)
    manager.storage.state = known
    manager.round()
    assert manager.written().commands >= 41


@pytest.mark.parametrize("answer", [False, StorageError("unreadable")])
def test_no_order_is_given_by_who_lost_the_lease_while_it_wrote(manager, answer):
    manager.observer.nodes["n3"] = silent("n3")
    manager.storage.leases.held_answers = [True, answer]
    assert kinds(manager.failing_round()) == ["state"]


def test_who_lost_the_lease_writes_nothing_and_orders_nothing(manager):
    manager.observer.nodes["n3"] = silent("n3")
    manager.storage.leases.held_answers = [False]
    manager.storage.leases.epoch = None
    manager.storage.leases.manager = LeaseHolder(2, 4, EPOCH + 1, True)
    assert manager.round() == []
    assert manager.round() == []


@pytest.mark.parametrize("took", [LATE, LATE + 0.1])
def test_a_round_that_was_held_up_is_thrown_away(manager, took):
    manager.observer.nodes["n3"] = silent("n3")
    read_desired = manager.storage.read_desired

    def slow():
        manager.clock.go(took)
        return read_desired()

    manager.storage.read_desired = slow
    assert kinds(manager.round()) == ([] if took > LATE else ["state", "fence"])
    run_directory = manager.daemon._configuration.run_directory
    run_directory.mkdir(parents=True, exist_ok=True)
    manager.daemon._telemetry.keep()
    measured = read_telemetry(telemetry_path(run_directory, "crm"), math.inf)
    assert measured is not None
    assert measured.values[("rounds_thrown_away", ())] == (1 if took > LATE else 0)
    manager.storage.read_desired = read_desired
    if took > LATE:
        assert "fence" not in kinds(manager.round()), "who was held up judges nobody yet"
        assert "fence" in kinds(manager.round())


def test_a_fence_that_ended_in_a_round_that_was_held_up_is_not_forgotten(manager):
    manager.observer.nodes["n3"] = silent("n3")
    manager.round()
    manager.end_fence()
    read_desired = manager.storage.read_desired
    manager.storage.read_desired = lambda: (manager.clock.go(LATE + 1), read_desired())[1]
    assert manager.round() == []
    manager.storage.read_desired = read_desired
    manager.round()
    assert manager.written().nodes["n3"].proof


def test_after_a_look_that_failed_nobody_is_judged_once(manager, monkeypatch):
    manager.observer.nodes["n3"] = silent("n3")
    manager.observer.error = StorageError("no answer")
    turns = []

    def listen(seconds):
        turns.append(list(manager.storage.log))
        manager.observer.error = None
        manager.clock.go(LOOK)
        manager.daemon._stop = len(turns) == 3
        return False, set()

    monkeypatch.setattr("signal.signal", lambda *_rest: None)
    del manager.storage.log[:]
    manager.network.listen = listen
    manager.daemon.run()
    assert [("fence", "n3") in log for log in turns] == [False, False, True]
    assert manager.storage.log[-1] == ("release", "manager")


def test_nothing_is_written_while_nothing_changes(manager):
    assert [manager.round() for _turn in range(3)] == [[], [], []]


def test_every_lrm_is_told_of_a_new_record(manager):
    assert sorted(port for _address, port in manager.network.hints) == [21004, 21007, 21010]


def test_the_last_managers_record_is_the_next_ones_beginning(daemon):
    daemon.round()
    state = daemon.written()
    assert (state.epoch, state.manager) == (EPOCH, "n1")
    assert state.services == daemon.storage.state.services


def test_a_record_that_cannot_be_read_makes_no_manager_with_an_empty_one(daemon):
    last = daemon.storage.state
    daemon.storage.state = StorageError("unreadable")
    assert daemon.failing_round() == GIVES_UP
    daemon.storage.state = last
    daemon.round()
    assert daemon.written().services == last.services


@pytest.mark.parametrize(
    ("wrote_after_sent", "silent_for", "proved"),
    [
        (None, 0.0, True),
        (0.5, 2.9, None),
        (0.5, 3.0, True),
        (1.0 + LOOK, 0.0, None),
        (1.1 + LOOK, 0.0, False),
    ],
    ids=["wrote nothing", "silent too short", "silent long enough", "just at its end", "goes on"],
)
def test_the_proof_of_a_node_that_wrote_after_the_fence_waits_until_it_is_quiet(
    manager, wrote_after_sent, silent_for, proved
):
    manager.observer.nodes["n3"] = silent("n3")
    manager.round()
    sent = manager.clock.now
    manager.clock.go(1.0)
    manager.end_fence(took=1.0)
    if wrote_after_sent is not None:
        manager.observer.changed["n3"] = sent + wrote_after_sent
        manager.clock.now = max(manager.clock.now, sent + wrote_after_sent + silent_for)
    log = manager.round(0.0)
    if proved is None:
        assert not [row for row in log if row[0] in ("fence", "free")]
        assert manager.daemon._crm.held_back
        return
    state = manager.written()
    assert (state.nodes["n3"].state is NodeState.OFF) == proved
    assert (state.services["web"].underlying is ServiceState.STARTED) == (not proved)
    assert ("free", 3, 4, 77) in log if proved else "free" not in kinds(log)
    assert proved or "it went on writing" in state.nodes["n3"].reason


def test_a_manager_that_was_held_up_in_its_look_takes_what_it_saw_before_for_no_silence(manager):
    """The device lies, and this process was frozen with the whiteboard as it was before."""
    manager.observer.nodes["n3"] = silent("n3")
    manager.round()
    manager.observer.changed["n3"] = manager.clock.now
    manager.clock.go(0.5)
    manager.end_fence(took=0.5)
    manager.observer.took = 60.0
    manager.round(0.0)
    manager.observer.nodes["n3"] = observed("n3")
    manager.observer.changed["n3"] = manager.clock.now
    manager.round(0.0)
    assert manager.written().nodes["n3"].state is not NodeState.OFF


def fenced_while_it_answered(manager):
    manager.observer.nodes["n3"] = replace(silent("n3"), answer=Answer.YES, lease=LeaseSight.FAILED)
    manager.round()
    manager.clock.go(1.0)
    manager.observer.answering = {"n3"}
    manager.end_fence(took=1.0)
    manager.round(0.0)


def test_an_answer_from_before_the_fence_does_not_speak_against_its_proof(manager):
    fenced_while_it_answered(manager)
    assert manager.daemon._crm.state.nodes["n3"].state is NodeState.FENCE
    assert manager.daemon._crm.held_back
    manager.observer.nodes["n3"], manager.observer.answering = silent("n3"), set()
    manager.round(0.5)
    assert manager.written().nodes["n3"].state is NodeState.OFF


def test_a_node_that_goes_on_answering_after_its_fence_is_not_taken_for_dead(manager):
    fenced_while_it_answered(manager)
    manager.round(1.1)
    node = manager.written().nodes["n3"]
    assert node.state is NodeState.FENCE
    assert "still answers on the network" in node.reason
    # Its host lease is the other proof that may come.
    assert "free" not in kinds(manager.storage.log)


def test_a_proof_that_the_manager_does_not_accept_frees_no_host_lease(manager):
    manager.observer.nodes["n3"] = silent("n3")
    manager.round()
    manager.clock.go(4.0)
    manager.end_fence()
    manager.observer.nodes["n3"] = replace(silent("n3"), answer=Answer.YES)
    log = manager.round(0.0)
    assert manager.written().nodes["n3"].state is NodeState.FENCE
    assert "free" not in kinds(log)


def test_a_proof_from_a_round_that_was_thrown_away_is_none_of_a_node_that_writes_again(manager):
    manager.observer.nodes["n3"] = silent("n3")
    manager.round()
    manager.end_fence()
    manager.clock.go(3.0)
    manager.observer.took = 2.0
    assert manager.round() == []
    manager.observer.took = 0.0
    manager.observer.nodes["n3"] = observed("n3", 0.4, beats=True)
    manager.observer.changed["n3"] = manager.clock.now
    manager.round()
    state = manager.daemon._crm.state
    assert state.nodes["n3"].proof is None
    assert state.services["web"].node == "n3"


def test_a_proof_that_is_held_back_counts_as_a_fence_under_way(manager):
    manager.observer.nodes["n3"] = silent("n3")
    manager.round()
    manager.clock.go(1.0)
    manager.end_fence()
    manager.observer.changed["n3"] = manager.clock.now
    manager.observer.nodes["n3"] = observed("n3")
    for _turn in range(5):
        assert "fence" not in kinds(manager.round())
        assert manager.daemon._crm.state.nodes["n3"].state is NodeState.FENCE
    manager.observer.nodes["n3"] = silent("n3", 3.0)
    assert ("free", 3, 4, 77) in manager.round()
    assert manager.written().nodes["n3"].state is NodeState.OFF


@pytest.mark.parametrize(("confirmed", "freed"), [(False, []), (True, [("free", 3, 4, 77)])])
def test_a_host_lease_is_set_free_only_after_a_proof_and_of_the_fenced_generation(
    manager, confirmed, freed
):
    manager.observer.nodes["n3"] = silent("n3")
    manager.round()
    manager.storage.leases.views[3] = lease_view(3, generation=5)
    manager.end_fence(confirmed=confirmed)
    log = manager.round()
    assert [row for row in log if row[0] == "free"] == freed
    assert kinds(log)[0] == "state", "the proof stands in the record first"
    assert manager.storage.freeing.leases == ({"n3": 4} if confirmed else {})
    manager.round()
    assert manager.storage.freeing.leases == {}, "it has returned"


def test_a_proof_that_could_not_be_written_sets_nothing_free_until_it_is(manager):
    manager.observer.nodes["n3"] = silent("n3")
    manager.round()
    manager.end_fence()
    manager.storage.write_error = StorageError("no answer")
    assert manager.failing_round() == GIVES_UP
    manager.storage.write_error = None
    manager.storage.state = replace(
        manager.storage.state,
        epoch=EPOCH,
        nodes={
            **manager.storage.state.nodes,
            "n3": NodeStatus(NodeState.FENCE, pending_fences=pending(manager=1.0), boot="n3-boot1"),
        },
    )
    log = manager.round()
    assert ("free", 3, 4, 77) in log
    assert manager.written().nodes["n3"].state is NodeState.OFF


def test_a_host_lease_that_cannot_be_set_free_does_not_end_the_recovery(manager, capsys):
    manager.observer.nodes["n3"] = silent("n3")
    manager.round()
    manager.storage.leases.free_error = LeaseError("its generation is 5, not 4.")
    manager.end_fence()
    manager.round()
    assert manager.written().nodes["n3"].state is NodeState.OFF
    assert "host lease of n3 not freed yet: its generation is 5" in capsys.readouterr().err


def test_a_host_lease_is_freed_under_a_new_own_one_only_once_that_is_recorded(manager):
    """Nobody waits for a record of a host lease that this node has no more."""
    manager.observer.nodes["n3"] = silent("n3")
    manager.round()
    manager.storage.leases.free_error = StorageError("it cannot be written.")
    manager.end_fence()
    manager.round()
    assert manager.storage.freeing == Freeing(4, {"n3": 4})
    manager.storage.state = manager.written()
    manager.storage.leases.renew_error = manager.storage.host_lease = LOST
    assert manager.round(CONFIRM) == []
    manager.storage.leases.renew_error = manager.storage.leases.free_error = None
    manager.storage.host_lease, manager.storage.leases.epoch = 5, EPOCH + 1
    log = manager.round(1000.0)
    assert "free" not in kinds(log)
    assert manager.storage.freeing == Freeing(5, {"n3": 4})
    assert kinds(manager.round()).count("free") == 1


def test_a_node_is_switched_on_again_once_its_services_run_elsewhere(manager):
    manager.observer.nodes["n3"] = silent("n3")
    manager.round()
    manager.end_fence()
    log = [row for _turn in range(3) for row in manager.round()]
    assert log.count(("power on", "n3")) == 1
    before = [row for row in log[: log.index(("power on", "n3"))] if row[0] == "state"]
    assert before[-1][1].services["web"].node != "n3"
    manager.orders.powered.append(PowerReport("n3", True, ""))
    manager.round()
    assert manager.written().nodes["n3"].power == "on"


def hold(manager):
    """Declare a global maintenance."""
    asked = Maintenance("new switches", "ada", 900.0)
    manager.storage.desired = replace(manager.storage.desired, version=4, global_maintenance=asked)


def test_a_declared_maintenance_stands_in_the_record_before_it_is_on_the_whiteboard(manager):
    hold(manager)
    log = manager.round()
    assert kinds(log) == ["state", "global"]
    assert (log[0][1].hold.owner, log[0][1].board_pending, log[1][1]) == ("ada", True, True)
    manager.observer.held = "set on the whiteboard"
    assert kinds(manager.round()) == ["state"]
    assert manager.round() == []


def test_a_whiteboard_that_could_not_be_written_is_written_in_the_next_round(manager):
    hold(manager)
    manager.storage.board.error = StorageError("no answer")
    assert kinds(manager.failing_round()) == ["state"]
    manager.storage.board.error = None
    assert manager.round() == [("global", True)]


def test_who_lost_the_lease_does_not_write_the_whiteboard(manager):
    hold(manager)
    manager.storage.leases.held_answers = [True, False]
    assert kinds(manager.failing_round()) == ["state"]


@pytest.fixture
def candidate(daemon):
    """A CRM that does not get the lease: n2 has it, with the lease's version 12."""
    daemon.storage.leases.epoch = None
    daemon.storage.leases.manager = LeaseHolder(2, 4, 12, True)
    return daemon


def test_a_candidate_leaves_a_manager_that_lives_alone(candidate):
    assert [candidate.round() for _turn in range(3)] == [[], [], []]


def test_a_candidate_writes_its_intent_before_it_fences(candidate):
    candidate.observer.nodes["n2"] = silent("n2")
    log = candidate.round()
    assert kinds(log) == ["intent", "fence"]
    intent = log[0][1]
    assert (intent.node, intent.epoch) == ("n2", 12)
    assert "no answer on the network" in intent.reason
    assert intent.recorded - intent.last_heartbeat == pytest.approx(4.0)


def test_a_candidate_that_cannot_write_its_intent_does_not_fence(candidate):
    candidate.observer.nodes["n2"] = silent("n2")
    candidate.storage.write_error = StorageError("no answer")
    assert candidate.failing_round() == GIVES_UP


@pytest.mark.parametrize(
    "change",
    [
        {"held": "set on the whiteboard"},
        {"trouble": "this node's own reads of the storage take 1.1 s"},
    ],
)
def test_a_candidate_that_may_not_judge_does_not_fence(candidate, change):
    candidate.observer.nodes["n2"] = silent("n2")
    for name, value in change.items():
        setattr(candidate.observer, name, value)
    assert candidate.round() == []


def test_a_candidate_does_not_fence_in_a_maintenance_that_the_manager_could_not_take_up(
    candidate, capsys
):
    hold(candidate)
    candidate.observer.nodes["n2"] = silent("n2")
    assert candidate.round() == []
    assert "not fenced: global maintenance" in capsys.readouterr().err


def test_a_candidate_does_not_fence_while_the_cluster_is_disarmed(candidate):
    candidate.storage.state = ClusterState(EPOCH, "n2", disarm=DISARMED, disarm_mode=FREEZE)
    candidate.storage.desired = replace(candidate.storage.desired, disarm=FREEZE)
    candidate.observer.nodes["n2"] = silent("n2")
    assert candidate.round() == []
    candidate.storage.desired = candidate.storage.desired.with_disarm("")
    assert kinds(candidate.round()) == ["intent", "fence"]


def test_a_candidate_that_does_not_read_back_its_intent_does_not_fence(candidate, capsys):
    candidate.observer.nodes["n2"] = silent("n2")
    candidate.storage.stands = False
    assert "fence" not in kinds(candidate.round())
    assert "what it reads may be old" in capsys.readouterr().err
    candidate.storage.stands = True
    assert kinds(candidate.round(5.0)) == ["intent", "fence"]


def test_a_candidate_does_not_fence_a_manager_that_writes_again(candidate):
    candidate.observer.nodes["n2"] = silent("n2")
    candidate.observer.beating = {"n2"}
    assert "fence" not in kinds(candidate.round())
    candidate.observer.beating = set()
    assert "fence" in kinds(candidate.round(5.0))


def test_a_candidate_reads_after_its_intent_whether_the_cluster_was_disarmed(candidate):
    candidate.observer.nodes["n2"] = silent("n2")

    def disarmed(_kind):
        desired = replace(candidate.storage.desired, disarm=FREEZE)
        state = ClusterState(EPOCH, "n2", disarm=DISARMED, disarm_mode=FREEZE)
        candidate.storage.state, candidate.storage.desired = state, desired
        return True

    candidate.storage.own_record_stands = disarmed
    log = kinds(candidate.round())
    assert "intent" in log and "fence" not in log


def test_a_candidate_that_was_held_up_does_not_fence_by_what_it_saw_before(candidate):
    candidate.observer.nodes["n2"] = silent("n2")
    leases = candidate.storage.leases
    holder = leases.holder

    def slow(name):
        candidate.clock.go(LATE + 0.1)
        return holder(name)

    leases.holder = slow
    assert candidate.round() == []
    leases.holder = holder
    assert candidate.round() == [], "who was held up judges nobody yet"
    assert kinds(candidate.round()) == ["intent", "fence"]


@pytest.mark.parametrize("took", [LATE, LATE + 0.1])
def test_a_candidate_that_was_held_up_in_writing_its_intent_does_not_fence(candidate, took):
    candidate.observer.nodes["n2"] = silent("n2")
    write_intent = candidate.storage.write_intent

    def slow(*written):
        write_intent(*written)
        candidate.clock.go(took)

    candidate.storage.write_intent = slow
    done = kinds(candidate.round())
    assert done == (["intent", "freeing"] if took > LATE else ["intent", "fence"])
    assert bool(candidate.storage.freeing.leases) == (took <= LATE)


def test_a_candidate_does_not_fence_once_another_is_manager_who_did_not_see_its_intent(candidate):
    candidate.observer.nodes["n2"] = silent("n2")
    leases, write_intent = candidate.storage.leases, candidate.storage.write_intent

    def another_was_faster(*written):
        leases.manager = replace(leases.manager, host_id=3, version=leases.manager.version + 1)
        write_intent(*written)

    candidate.storage.write_intent = another_was_faster
    assert kinds(candidate.round()) == ["intent", "freeing"]
    assert candidate.storage.freeing.leases == {}


def test_a_manager_that_was_held_up_in_writing_gives_no_orders_and_decides_anew(manager):
    well = manager.observer.nodes["n3"]
    manager.observer.nodes["n3"] = silent("n3")
    write_manager = manager.storage.write_manager

    def slow(*written):
        write_manager(*written)
        manager.clock.go(LATE + 0.1)

    manager.storage.write_manager = slow
    assert kinds(manager.round()) == ["state"]
    manager.storage.write_manager = write_manager
    manager.observer.nodes["n3"] = well
    assert "fence" not in kinds([*manager.round(), *manager.round()])
    assert manager.daemon._crm.state.nodes["n3"].state is NodeState.ONLINE


def test_who_was_held_up_in_the_last_look_at_the_lease_gives_no_orders(manager):
    """Between that look and an order nothing may come in which time passes."""
    manager.observer.nodes["n3"] = silent("n3")
    looks = []

    def slow(lease_name):
        looks.append(lease_name)
        manager.clock.go(LATE + 0.1 if len(looks) == 2 else 0.0)
        return True

    manager.storage.leases.held = slow
    assert kinds(manager.round()) == ["state"]
    assert len(looks) == 2
    assert manager.daemon._crm.state is None, "it decides again by the record that it reads then"


def test_nothing_comes_between_the_last_look_at_the_clock_and_an_order(manager, monkeypatch):
    manager.observer.nodes["n3"] = silent("n3")
    performed = []

    def noted(kind, perform):
        return lambda effect: (performed.append(kind), perform(effect))[1]

    performers = manager.daemon._performers
    for kind, perform in list(performers.items()):
        monkeypatch.setitem(performers, kind, noted(kind, perform))
    assert kinds(manager.round()) == ["state", "fence"]
    fence = performed.index(Fence)
    assert performed[fence - 1] is ReadClocks


def test_a_candidate_fences_once_and_again_only_after_the_retry_time(candidate):
    candidate.observer.nodes["n2"] = silent("n2")
    assert kinds(candidate.round()) == ["intent", "fence"]
    assert candidate.round() == []
    candidate.end_fence("n2", confirmed=False)
    retry = candidate.daemon._configuration.timing.fence_retry
    assert candidate.round() == [("freeing", {})]
    assert kinds(candidate.round(retry)) == ["intent", "fence"]


def test_a_candidates_proof_sets_the_managers_host_lease_free_and_counts_once_it_is_manager(
    candidate,
):
    candidate.observer.nodes["n2"] = silent("n2")
    intent = candidate.round()[0][1]
    candidate.end_fence("n2")
    assert candidate.storage.freeing.leases == {"n2": 4}
    assert candidate.round() == [("free", 2, 4, 77), ("freeing", {})]
    candidate.storage.leases.epoch = 13
    candidate.storage.intent = intent
    candidate.round()
    state = candidate.written()
    assert (state.epoch, state.nodes["n2"].state) == (13, NodeState.OFF)
    assert state.failovers[-1].reason == intent.reason


def test_a_candidates_proof_against_a_node_that_answers_sets_nothing_free(candidate, capsys):
    candidate.observer.nodes["n2"] = silent("n2")
    candidate.round()
    candidate.end_fence("n2")
    candidate.observer.answering = {"n2"}
    for _turn in range(4):
        assert "free" not in kinds(candidate.round())
    assert "fence of n2 failed" in capsys.readouterr().err


def test_a_candidates_proof_is_dropped_when_the_node_answers_after_it(candidate, capsys):
    candidate.observer.nodes["n2"] = silent("n2")
    candidate.round()
    candidate.end_fence("n2")
    candidate.round()
    candidate.observer.answering = {"n2"}
    candidate.round()
    assert "fence of n2 failed" in capsys.readouterr().err
    candidate.observer.answering = set()
    candidate.storage.leases.epoch = 13
    candidate.round()
    assert candidate.written().nodes["n2"].state is not NodeState.OFF


def test_a_fence_that_proved_nothing_about_the_holder_is_said_and_dropped(candidate, capsys):
    candidate.observer.nodes["n2"] = silent("n2")
    candidate.round()
    candidate.end_fence("n2", confirmed=False)
    assert candidate.round() == [("freeing", {})]
    assert "fence of n2 failed" in capsys.readouterr().err
    candidate.storage.leases.epoch = 13
    candidate.observer.nodes["n2"] = observed("n2")
    candidate.round()
    assert candidate.written().nodes["n2"].state is NodeState.ONLINE


def test_a_candidates_proof_says_nothing_of_a_node_that_is_manager_no_more(candidate):
    candidate.observer.nodes["n2"] = silent("n2")
    candidate.round()
    candidate.end_fence("n2")
    candidate.observer.nodes["n2"] = observed("n2")
    candidate.storage.leases.manager = LeaseHolder(3, 4, 13, True)
    assert candidate.round() == [("freeing", {})]
    candidate.storage.leases.epoch = 14
    candidate.round()
    assert candidate.written().nodes["n2"].state is NodeState.ONLINE


def test_an_intent_for_an_earlier_manager_is_not_held_against_the_node(daemon):
    daemon.storage.intent = Intent("n2", "it was silent", 1.0, 2.0, EPOCH - 2)
    daemon.round()
    assert daemon.written().nodes["n2"].state is NodeState.ONLINE


LOST = LeaseError("sanlock has lost lockspace c1")


def test_a_manager_whose_host_lease_is_lost_is_none_at_once_and_again_once_it_is_back(
    manager, capsys
):
    manager.observer.nodes["n3"] = silent("n3")
    manager.storage.leases.renew_error = manager.storage.host_lease = LOST
    assert manager.round(CONFIRM) == []
    assert manager.storage.leases.left == 1, "the manager lease is let go"
    assert manager.round() == manager.round() == []
    said = capsys.readouterr().err
    assert said.count("no longer manager: the host lease is lost") == 1
    assert said.count("sanlock has lost lockspace c1") == 1
    manager.storage.leases.renew_error = None
    manager.storage.host_lease = 5
    manager.storage.leases.epoch = EPOCH + 1
    manager.round()
    assert manager.written().epoch == EPOCH + 1


def test_a_manager_that_cannot_learn_of_its_host_lease_decides_nothing_and_lets_nothing_go(
    manager,
):
    manager.observer.nodes["n3"] = silent("n3")
    manager.storage.leases.renew_error = NoAnswerError("sanlock hangs")
    manager.clock.go(CONFIRM)
    assert manager.failing_round() == []
    assert manager.storage.leases.left == 0
    manager.storage.leases.renew_error = None
    assert "fence" not in kinds(manager.round()), "it judges no node by what it read before"
    assert "fence" in kinds(manager.round())


def test_a_node_without_a_host_lease_does_not_try_for_the_manager_lease(tmp_path):
    daemon = Daemon(tmp_path)
    daemon.storage.host_lease = LeaseError("host id 1 is not held for node n1")
    tried = []
    daemon.storage.leases.acquire = tried.append
    assert [daemon.round() for _turn in range(3)] == [[], [], []]
    assert tried == []


def test_a_candidate_whose_round_fails_gives_up_its_try_for_the_lease(candidate):
    candidate.observer.error = StorageError("no answer")
    turns = []

    def listen(seconds):
        turns.append(list(candidate.storage.log))
        candidate.daemon._stop = True
        return False, set()

    candidate.network.listen = listen
    candidate.daemon.run()
    assert turns == [[("release", "manager")]]


def test_a_manager_keeps_its_lease_when_a_single_round_fails(manager):
    manager.observer.error = StorageError("no answer")
    turns = []

    def listen(seconds):
        turns.append(list(manager.storage.log))
        manager.daemon._stop = True
        return False, set()

    manager.network.listen = listen
    del manager.storage.log[:]
    manager.daemon.run()
    assert turns == [[]]


def test_who_is_ended_in_the_middle_of_a_round_gives_no_orders(manager):
    """With the binding sanlock ends the holder of a lease in a lost lockspace by SIGTERM."""
    manager.observer.nodes["n3"] = silent("n3")
    manager.storage.on_write = manager.daemon._on_term
    assert kinds(manager.round()) == ["state"]


def acted_on(name, **versions):
    """What is seen of a node that has acted on these versions."""
    return ObservedNode(0.5, report=Report(name, boot=f"{name}-boot1", **versions))


@pytest.mark.parametrize(
    ("versions", "named"),
    [
        ({"commands": 12}, "the manager's record is older (command 0)"),
        ({"epoch": EPOCH + 1}, f"the manager's record is older (epoch {EPOCH - 1})"),
        ({"epoch": EPOCH - 1, "config_version": 4}, "the configuration is older (version 3)"),
        ({"generation": 1}, "the manager's record is older (generation 0)"),
    ],
)
def test_who_would_be_manager_pauses_while_a_node_has_acted_on_more(
    daemon, capsys, versions, named
):
    known = {"epoch": EPOCH - 1, **versions}
    daemon.observer.nodes["n2"] = acted_on("n2", **known)
    daemon.observer.nodes["n3"] = silent("n3")
    for _turn in range(5):
        assert daemon.round() == [], "nothing is written, fenced or started"
    assert daemon.storage.leases.held("manager"), "nobody else could know better"
    assert named in capsys.readouterr().err
    daemon.observer.nodes["n2"] = observed("n2")
    assert kinds(daemon.round())[0] == "state", "the pause ends with its reason"


def test_a_manager_pauses_when_a_node_turns_out_to_have_acted_on_more(manager):
    manager.observer.nodes["n2"] = acted_on("n2", epoch=EPOCH, commands=99)
    manager.observer.nodes["n3"] = silent("n3")
    for _turn in range(5):
        assert manager.round() == []


def test_a_manager_pauses_when_the_configuration_goes_back(manager):
    manager.storage.desired = DesiredState(2, {})
    for _turn in range(5):
        assert manager.round() == [], "web is neither stopped nor forgotten"


@pytest.mark.parametrize(
    "unheard",
    [
        ObservedNode(0.5, report=Report("n2"), beats=False),
        ObservedNode(0.5, report_lost=True, problem="its report on storage is older"),
    ],
    ids=["not watched yet", "its report is not what it wrote"],
)
def test_who_would_be_manager_hears_every_node_that_is_alive_first(daemon, unheard):
    daemon.observer.nodes["n2"] = unheard
    assert daemon.round() == []
    daemon.observer.nodes["n2"] = observed("n2")
    assert kinds(daemon.round()) == ["state"]


def test_what_this_node_acted_on_by_its_local_disk_is_a_floor(tmp_path):
    configuration_ = configuration(tmp_path)
    KeptReport(configuration_.folder, configuration_.cluster).write(
        9, Report("n1", epoch=EPOCH - 1, commands=12)
    )
    assert Daemon(tmp_path).round() == []


@pytest.mark.parametrize("when", ["paused", "managing"])
def test_a_repair_is_taken_up_and_believes_nothing_of_the_old_record(daemon, when):
    if when == "paused":
        daemon.observer.nodes["n2"] = acted_on("n2", epoch=EPOCH - 1, commands=12)
    daemon.round()
    daemon.storage.desired = replace(daemon.storage.desired, version=5, generation=1)
    log = [*daemon.round(), *daemon.round()]
    state = [content for kind, content in log if kind == "state"][-1]
    assert state.generation == 1
    assert state.services["web"].state is ServiceState.PROBE
    assert state.commands > (12 if when == "paused" else 0)


def test_a_fence_that_ended_during_the_pause_proves_nothing_after_it(manager):
    manager.observer.nodes["n3"] = silent("n3")
    assert "fence" in kinds(manager.round())
    manager.observer.nodes["n2"] = acted_on("n2", epoch=EPOCH, commands=99)
    manager.end_fence()
    manager.observer.changed["n3"] = manager.clock.now - 60.0
    assert manager.round(4.0) == []
    manager.storage.desired = replace(manager.storage.desired, version=5, generation=1)
    manager.round()
    assert manager.written().nodes["n3"].state is not NodeState.OFF


def test_a_managers_record_that_is_not_as_it_was_written_is_written_again(manager):
    assert manager.round(OWN_LOOK) == []
    manager.storage.stands = False
    assert kinds(manager.round(OWN_LOOK)) == ["state"]
    assert manager.written().events[-1].kind == "record_restored"
    manager.storage.stands = True
    assert manager.round(OWN_LOOK) == []


def test_no_candidate_fences_while_the_records_are_older_than_what_was_acted_on(daemon):
    daemon.storage.leases.epoch = None
    daemon.storage.leases.manager = LeaseHolder(2, 4, EPOCH, True)
    daemon.observer.nodes["n2"] = silent("n2", 20.0)
    daemon.observer.nodes["n3"] = acted_on("n3", epoch=EPOCH, commands=40)
    for _turn in range(3):
        assert daemon.round() == []
    daemon.observer.nodes["n3"] = observed("n3")
    assert kinds(daemon.round()) == ["intent", "fence"]


def membership_of(daemon):
    """Return the membership that the daemon's own configuration has."""
    return OwnMembership(daemon.configuration).get()


def with_reports(daemon, digest):
    """Let all nodes report the membership *digest*."""
    for name, one in daemon.observer.nodes.items():
        daemon.observer.nodes[name] = replace(one, report=replace(one.report, membership=digest))


def recorded(daemon, **changes):
    """Let the record have a membership that differs from the daemon's own."""
    own = membership_of(daemon)
    other = make_membership({**own.members, **changes}, own.fence)
    daemon.storage.state = replace(daemon.storage.state, membership=with_version(other, 4))
    return own


def test_the_first_manager_records_its_membership(manager):
    assert manager.written().membership == with_version(membership_of(manager), 1)


def test_a_node_with_another_membership_is_neither_manager_nor_candidate(daemon, capfd):
    recorded(daemon, n4=Place(4))
    assert kinds(daemon.round()) == ["release"]
    assert "n1 cannot be manager" in capfd.readouterr().err
    daemon.storage.leases.epoch = None
    daemon.storage.leases.manager = LeaseHolder(2, 1, EPOCH - 1, True)
    daemon.observer.nodes["n2"] = silent("n2", 60.0)
    for _turn in range(4):
        assert kinds(daemon.round()) == ["release"], "no fence"


def test_a_membership_that_all_nodes_have_is_recorded_by_the_next_manager(daemon):
    own = recorded(daemon, n2=Place(2, "10.9.9.9", 1))
    with_reports(daemon, own.digest)
    assert kinds(daemon.round()) == ["state"]
    assert daemon.written().membership == with_version(own, 5)
    assert daemon.written().events[-1].kind == "membership"


def test_an_accepted_membership_is_recorded_without_the_others(daemon):
    own = recorded(daemon, n2=Place(2, "10.9.9.9", 1))
    with_reports(daemon, "0" * 32)
    assert kinds(daemon.round()) == ["release"]
    daemon.storage.desired = replace(daemon.storage.desired, membership=Acceptance(own.digest, 4))
    assert kinds(daemon.round()) == ["state"]


def test_the_lease_is_dropped_where_another_membership_was_recorded_meanwhile(daemon):
    states = [daemon.storage.state]
    recorded(daemon, n4=Place(4))
    states.append(daemon.storage.state)
    daemon.storage.read_manager = lambda: states.pop(0)
    assert kinds(daemon.round()) == ["release"]


def test_a_manager_whose_fence_settings_change_waits_for_the_others_and_then_resigns(manager):
    manager.storage.state = manager.written()
    with_reports(manager, membership_of(manager).digest)
    (manager.configuration.fence_configuration).write_text('{"nodes": {"n1": {"levels": []}}}')
    manager.observer.nodes["n3"] = silent("n3")
    begun = manager.clock.now
    while manager.clock.now - begun < RESIGN_AFTER:
        assert kinds(manager.round()) == []
    assert kinds(manager.round()) == ["release"]
    assert kinds(manager.round()) == ["release"], "it is no candidate either"


def test_a_manager_whose_fence_settings_change_everywhere_goes_on(manager):
    (manager.configuration.fence_configuration).write_text('{"nodes": {"n1": {"levels": []}}}')
    assert kinds(manager.round()) == []
    with_reports(manager, membership_of(manager).digest)
    assert kinds(manager.round()) == ["state"]
    assert manager.written().membership == with_version(membership_of(manager), 2)


def test_a_running_host_id_without_a_member_is_recorded(manager):
    manager.observer.foreign = {9: HostView("n9", 0.5, True), 8: HostView("n8", 60.0, True)}
    assert kinds(manager.round()) == ["state"]
    assert manager.written().foreign_hosts == {"9": "n9"}


def test_a_manager_that_does_not_read_back_what_it_wrote_fences_nobody(manager, capsys):
    manager.observer.nodes["n3"] = silent("n3")
    manager.storage.stands = False
    for _turn in range(5):
        assert "fence" not in kinds(manager.round())
    assert "what it reads may be old" in capsys.readouterr().err
    manager.storage.stands = True
    assert "fence" in kinds([row for _turn in range(3) for row in manager.round()])


def test_a_manager_does_not_fence_a_node_that_writes_again(manager):
    """A hypervisor that pauses this node stops all its clocks: it cannot tell how late it is."""
    manager.observer.nodes["n3"] = silent("n3")
    manager.observer.beating = {"n3"}
    assert "fence" not in kinds(manager.round())
    manager.observer.beating = set()
    assert "fence" in kinds([row for _turn in range(3) for row in manager.round()])


def test_a_node_whose_fence_is_under_way_is_not_fenced_again(manager):
    manager.observer.nodes["n3"] = silent("n3")
    assert kinds(manager.round()).count("fence") == 1
    assert "fence" not in kinds([row for _turn in range(20) for row in manager.round()])


def test_a_host_lease_that_another_crm_has_freed_is_not_freed_again(manager):
    manager.observer.nodes["n3"] = silent("n3")
    manager.round()
    manager.storage.leases.free_error = LeaseError("it cannot be written.")
    manager.end_fence()
    manager.round()
    manager.storage.leases.free_error = None
    manager.storage.leases.views[3] = lease_view(3, state=HostState.FREE)
    assert "free" not in kinds(manager.round(1000.0))


def test_no_host_lease_is_freed_by_a_node_that_has_just_lost_its_own(manager):
    manager.observer.nodes["n3"] = silent("n3")
    manager.round(CONFIRM)
    manager.end_fence()
    manager.storage.leases.renew_error = LOST
    assert "free" not in kinds(manager.round(CONFIRM / 4))
    assert manager.written().nodes["n3"].state is NodeState.OFF


def test_a_host_lease_is_watched_for_three_io_timeouts_after_a_proof(manager):
    io_timeout = manager.configuration.sanlock.io_timeout
    assert manager.daemon._crm.settings.lease_silence == 3.0 * io_timeout


@pytest.mark.parametrize("record", ["manager", "configuration"])
def test_who_would_be_manager_pauses_where_a_newer_record_may_be_damaged(daemon, record):
    storage = daemon.storage
    if record == "manager":
        storage.readable_manager = lambda: (storage.state, "a newer record is damaged")
    else:
        desired, storage.desired = storage.desired, FormatError("a newer record is damaged")
        storage.readable_desired = lambda: (desired, 1)
    assert daemon.round() == []
    assert "a newer record is damaged" in daemon.daemon._crm.pause_reason


def test_who_answered_is_told_to_the_observer_and_not_that_somebody_gave_a_hint(manager):
    heard = []
    manager.observer.answered = heard.append
    manager.network.listen = lambda seconds: (True, {"n3"})
    manager.daemon._listen(0.0)
    assert heard == [{"n3"}]
