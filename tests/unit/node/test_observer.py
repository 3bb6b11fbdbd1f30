# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an observer says of other nodes: by its own clock, and only what it saw itself."""

from __future__ import annotations

import math
from dataclasses import replace
from unittest import mock

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Answer,
    HostState,
    LeaseSight,
    ObservedKeepalive,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.profiles import (
    FAST,
    PROFILES,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    FormatError,
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import (
    EMBEDDED,
    SANLOCK,
    SanlockSettings,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon import observer
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.heartbeat import (
    heartbeat,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.observer import (
    Observer,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.block import (  # noqa: E501
    GlobalBlock,
    HostBlock,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.board import (  # noqa: E501
    Board,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import Clock, configuration
from ansible_collections.holdfast.ha.tests.unit.node.stand_ins import (
    NetworkStandIn,
    StorageStandIn,
    lease_view,
)


class Watching:
    """An observer on n1, and the board that it sees."""

    def __init__(self, folder, **backend):
        self.clock = Clock()
        self.storage = StorageStandIn()
        self.network = NetworkStandIn()
        self.write(1, 2, 3)
        node = replace(configuration(folder, suspect_after=3.0), **backend)
        self.observer = Observer(node, self.storage, self.network, self.clock)

    def write(self, *host_ids, timestamp=None):
        """Let nodes write their blocks; the timestamp goes by a clock of their own."""
        hosts = dict(self.storage.board.board.hosts)
        for host_id in host_ids:
            before = hosts[host_id].timestamp if host_id in hosts else 5_000_000
            at = before + 1 if timestamp is None else timestamp
            hosts[host_id] = HostBlock(host_id, at, 3400, f"n{host_id}")
        self.board(hosts=hosts)

    def board(self, **changes):
        """Put something else on the board; what is not given stays."""
        now = self.storage.board.board
        values = {"global_block": now.global_block, "hosts": now.hosts, "problems": now.problems}
        self.storage.board.board = Board(4, **{**values, **changes})

    def after(self, seconds, *writers):
        """Return what is seen after some time in which only *writers* wrote."""
        self.clock.go(seconds)
        self.write(*writers)
        return self.observer.look()


@pytest.fixture
def watching(tmp_path):
    return Watching(tmp_path, backend=SANLOCK)


@pytest.mark.parametrize(
    "backend",
    [
        {"backend": EMBEDDED},
        {"backend": SANLOCK, "sanlock": SanlockSettings(watchdog_timeout=0)},
    ],
    ids=["embedded", "sanlock without a watchdog"],
)
def test_without_a_watchdog_on_all_nodes_no_host_lease_proves_a_death(tmp_path, backend):
    watching = Watching(tmp_path, **backend)
    watching.storage.reports[2] = Report("n2", watchdog_timeout=60)
    view = lease_view(2, state=HostState.DEAD, unchanged_for=999.0)
    watching.storage.leases.views[2] = view
    watching.after(0.0)
    watching.after(1.0, 1, 2, 3)
    assert watching.after(2.0, 1, 3).nodes["n2"].lease is LeaseSight.FAILED


def test_a_heartbeat_is_new_only_until_the_next_look(watching):
    watching.after(0.0, 2, 3)
    assert not watching.observer.has_new_heartbeat("n3")
    watching.write(3)
    assert watching.observer.has_new_heartbeat("n3")
    assert not watching.observer.has_new_heartbeat("n2")
    watching.observer.look()
    assert not watching.observer.has_new_heartbeat("n3")
    watching.board(hosts={})
    assert not watching.observer.has_new_heartbeat("n3")


def test_an_old_block_alone_is_no_sign_of_life(watching):
    for age in (0.0, 2.0, 3.0, 3.0):
        observed = watching.after(age).nodes["n2"]
        assert not observed.beats
    assert observed.heartbeat_age == 8.0


def test_silence_counts_from_the_first_look_however_long_the_daemon_waited_for_it(watching):
    found = watching.after(60.0)
    assert {observed.heartbeat_age for observed in found.nodes.values()} == {0.0}
    assert watching.after(2.5, 1, 3).nodes["n2"].heartbeat_age == 2.5


def test_silence_while_nobody_looked_is_none_but_is_no_sign_of_life_either(watching):
    watching.after(0.0)
    last_sign = watching.after(1.0, 1, 2, 3).changed["n2"]
    assert watching.after(3.0, 1).nodes["n2"].heartbeat_age == 3.0
    unwatched = watching.after(3.5, 1).nodes["n2"]
    assert (unwatched.heartbeat_age, unwatched.beats) == (0.0, False)
    found = watching.after(2.0, 1)
    assert (found.nodes["n2"].heartbeat_age, found.changed["n2"]) == (2.0, last_sign)


def test_what_was_written_while_nobody_looked_is_no_sign_of_life_after(watching):
    """After an outage a write that hung lands, and its node may have been reset since."""
    watching.after(0.0)
    watching.after(1.0, 1, 2, 3)
    observation = watching.after(3.5, 1, 2)
    found = observation.nodes["n2"]
    assert (found.heartbeat_age, found.beats) == (0.0, False)
    assert observation.changed["n2"] == watching.clock()
    assert not watching.after(0.5, 1).nodes["n2"].beats
    assert watching.after(0.5, 1, 2).nodes["n2"].beats


def test_a_read_that_took_as_long_as_a_death_is_no_silence(watching):
    watching.after(0.0)
    watching.after(1.0, 1, 2, 3)
    watching.storage.board.on_read = lambda: watching.clock.go(20.0)
    found = watching.after(0.5)
    assert {observed.heartbeat_age for observed in found.nodes.values()} == {0.0}
    assert "take 20.0 s" in found.trouble


def test_the_first_change_is_a_sign_of_life_and_its_age_is_by_the_observers_clock(watching):
    watching.after(0.0)
    assert watching.after(2.0, 2).nodes["n2"].heartbeat_age == 0.0
    found = watching.after(2.5)
    assert (found.nodes["n2"].heartbeat_age, found.nodes["n2"].beats) == (2.5, True)
    assert (found.nodes["n3"].heartbeat_age, found.nodes["n3"].beats) == (4.5, False)
    assert found.changed["n2"] == 1002.0


def test_of_a_fresh_node_that_report_is_read_of_which_its_block_speaks_else_what_there_is(watching):
    hosts = dict(watching.storage.board.board.hosts)
    hosts[2] = replace(hosts[2], timestamp=7, health={"report": 41})
    hosts[3] = replace(hosts[3], timestamp=7, health={"report": "41"})
    watching.board(hosts=hosts)
    watching.observer.look()
    assert watching.storage.asked_for_reports == [(1, 0), (2, 41), (3, 0)]
    del watching.storage.asked_for_reports[:]
    watching.clock.go(2.0)
    watching.observer.look()
    assert watching.storage.asked_for_reports == [(1, 0), (2, 0), (3, 0)]


def test_a_report_that_is_older_than_its_nodes_heartbeat_says_is_not_believed(watching):
    watching.storage.reports[2] = Report("n2")
    watching.storage.numbers[2] = 6
    hosts = dict(watching.storage.board.board.hosts)
    hosts[2] = replace(hosts[2], timestamp=7, health={"report": 7})
    watching.board(hosts=hosts)
    observed = watching.observer.look().nodes["n2"]
    assert (observed.report, observed.report_lost) == (None, True)
    older = "its report on storage is older (number 6) than its heartbeat says (number 7)"
    assert observed.problem == older
    watching.storage.numbers[2] = 7
    observed = watching.observer.look().nodes["n2"]
    assert (observed.report, observed.report_lost, observed.problem) == (Report("n2"), False, "")


@pytest.mark.parametrize("timestamp", [1, 4_999_999, 10**12])
def test_a_clock_that_jumps_is_as_good_a_sign_of_life_as_any(watching, timestamp):
    watching.after(0.0, 2)
    watching.after(4.0, 2)
    watching.clock.go(4.0)
    watching.write(2, timestamp=timestamp)
    assert watching.observer.look().nodes["n2"].heartbeat_age == 0.0


def test_the_first_block_of_a_node_that_had_none_is_a_sign_of_life(watching):
    watching.board(hosts={})
    assert not watching.after(0.0).nodes["n2"].beats
    observed = watching.after(1.0, 2).nodes["n2"]
    assert (observed.beats, observed.heartbeat_age) == (True, 0.0)


def test_a_block_that_was_damaged_when_it_was_first_looked_at_is_none(watching):
    hosts = watching.storage.board.board.hosts
    watching.board(hosts={1: hosts[1]}, problems={2: "the checksum is wrong"})
    watching.after(0.0)
    watching.board(hosts=hosts, problems={})
    assert not watching.observer.look().nodes["n2"].beats
    assert watching.after(1.0, 2).nodes["n2"].beats


def test_a_damaged_block_changes_nothing_but_its_own_nodes_problem(watching):
    watching.after(0.0)
    before = watching.after(1.0, 1, 2, 3).nodes
    hosts = watching.storage.board.board.hosts
    left = {1: hosts[1], 3: hosts[3]}
    watching.board(hosts=left, problems={2: "the checksum is wrong"})
    watching.clock.go(1.0)
    found = watching.observer.look()
    assert found.nodes["n2"].problem == "the checksum is wrong"
    assert (found.nodes["n2"].beats, found.nodes["n2"].heartbeat_age) == (True, 1.0)
    assert (found.nodes["n3"].problem, found.nodes["n3"].beats) == ("", before["n3"].beats)
    assert (found.held, found.trouble) == ("", "")
    watching.board(hosts=hosts, problems={})
    assert watching.observer.look().nodes["n2"].heartbeat_age == 1.0


def test_a_block_that_vanishes_and_comes_back_changed_is_a_sign_of_life(watching):
    watching.after(0.0)
    hosts = watching.storage.board.board.hosts
    watching.board(hosts={1: hosts[1]})
    watching.after(5.0)
    watching.board(hosts=hosts)
    assert not watching.observer.look().nodes["n2"].beats
    assert watching.after(0.0, 2).nodes["n2"].beats


@pytest.mark.parametrize(
    ("global_block", "held"),
    [
        (None, "the whiteboard's global block is damaged"),
        (GlobalBlock(True), "set on the whiteboard"),
        (GlobalBlock(False), ""),
    ],
)
def test_everything_is_held_in_maintenance_and_when_that_cannot_be_told(
    watching, global_block, held
):
    watching.board(global_block=global_block)
    assert watching.observer.look().held == held


def test_a_whiteboard_that_cannot_be_read_is_an_error_and_no_sight(watching):
    watching.storage.board.board = StorageError("the storage is gone")
    with pytest.raises(StorageError):
        watching.observer.look()


def test_a_silence_is_due_once_if_nobody_looks_then(watching):
    """A CRM that becomes a reserve does not look any more: it would play turns without a pause."""
    watching.after(0.0)
    watching.after(1.0, 1, 2, 3)
    due = watching.observer.due_in()
    assert 0.0 < due < 3.0
    watching.clock.go(due + 0.1)
    assert watching.observer.due_in() == 0.0
    assert watching.observer.due_in() == math.inf
    watching.after(0.1, 1, 2, 3)
    assert 0.0 < watching.observer.due_in() < 3.0


def test_a_node_is_asked_only_from_half_the_suspicion_on(watching):
    watching.after(0.0)
    watching.after(1.0, 1, 2, 3)
    assert watching.after(1.5, 1, 3).nodes["n2"].answer is Answer.UNKNOWN
    assert watching.network.asked == []
    watching.after(0.1)
    assert watching.network.asked == ["n2"]


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({}, {0.0: Answer.UNKNOWN, 0.5: Answer.UNKNOWN, 1.0: Answer.NO, 3.0: Answer.NO}),
        ({0.5: True}, {0.5: Answer.YES, 1.5: Answer.YES, 1.6: Answer.NO}),
        ({1.5: True}, {1.0: Answer.NO, 1.5: Answer.YES, 2.5: Answer.YES, 2.6: Answer.NO}),
    ],
)
def test_no_answer_within_a_second_of_asking_is_none(watching, answers, expected):
    watching.after(0.0)
    watching.after(1.0, 1, 2, 3)
    watching.clock.go(2.0)
    begun = watching.clock.now
    found = {}
    for at in sorted({0.0, *answers, *expected}):
        watching.clock.now = begun + at
        if at in answers:
            watching.observer.answered({"n2"})
        found[at] = watching.observer.look().nodes["n2"].answer
    assert {at: found[at] for at in expected} == expected


def test_who_is_no_member_is_not_remembered_for_an_answer(watching):
    """Anybody on the network can send datagrams, each with another name."""
    watching.observer.answered({"n2", *(f"x{number}" for number in range(1000))})
    assert list(watching.after(0.0).answered) == ["n2"]


def answers(watching, beat):
    """Let n2 answer, and return what is seen a second later."""
    watching.network.beats = {"n2": beat, "stranger": 1}
    watching.observer.answered({"n2"})
    return watching.after(1.0, 1, 3)


def test_who_answers_with_a_heartbeat_that_is_not_here_makes_every_verdict_worthless(watching):
    watching.after(0.0)
    watching.after(1.0, 1, 2, 3)
    here = watching.storage.board.board.hosts[2].timestamp
    assert not answers(watching, 9).elsewhere, "it is not silent yet"
    watching.after(1.0, 1, 3)
    assert not answers(watching, here).elsewhere
    found = answers(watching, 9)
    assert found.elsewhere.startswith("n2 writes heartbeats that n1 does not see")
    assert found.trouble == found.elsewhere
    assert not watching.after(1.0, 1, 2, 3).elsewhere, "it writes here again"


def test_a_host_lease_that_is_renewed_elsewhere_proves_nothing(watching):
    watching.storage.reports[2] = Report("n2", watchdog_timeout=60)
    view = lease_view(2, state=HostState.DEAD, unchanged_for=999.0)
    watching.storage.leases.views[2] = view
    watching.after(0.0)
    watching.after(1.0, 1, 2, 3)
    watching.after(3.0, 1, 3)
    assert watching.after(0.0).nodes["n2"].lease is LeaseSight.DEAD
    for beat in range(10, 14):
        answers(watching, beat)
    for _turn in range(20):
        found = watching.after(3.0, 1, 3)
    assert not found.trouble, "it does not answer any more"
    assert found.nodes["n2"].lease is LeaseSight.FAILED
    assert "another storage" in found.nodes["n2"].lease_note


def test_a_node_that_was_fresh_in_between_is_asked_anew(watching):
    watching.after(0.0)
    watching.after(2.0)
    assert watching.after(1.0).nodes["n2"].answer is Answer.NO
    assert watching.after(0.5, 2).nodes["n2"].answer is Answer.UNKNOWN
    assert watching.after(2.0).nodes["n2"].answer is Answer.UNKNOWN
    assert watching.after(1.0).nodes["n2"].answer is Answer.NO


def test_an_answer_from_before_it_fell_silent_is_not_one_from_now(watching):
    watching.after(0.0)
    watching.observer.answered({"n2"})
    assert watching.after(2.0).nodes["n2"].answer is Answer.UNKNOWN
    assert watching.after(1.0).nodes["n2"].answer is Answer.NO


@pytest.mark.parametrize(
    ("view", "sight"),
    [
        (StorageError("unreadable"), LeaseSight.STALE),
        (lease_view(2, unchanged_for=7.9), LeaseSight.RENEWED),
        (lease_view(2, unchanged_for=8.0), LeaseSight.STALE),
        (lease_view(2, state=HostState.FAIL, unchanged_for=16.0), LeaseSight.FAILED),
        (lease_view(2, state=HostState.DEAD), LeaseSight.DEAD),
        (lease_view(2, state=HostState.FREE), LeaseSight.FREE),
    ],
)
@pytest.mark.parametrize("many", [False, True])
def test_the_host_lease_of_a_silent_node_is_seen_for_what_it_is(
    watching, view, sight, many, monkeypatch
):
    if many:
        monkeypatch.setattr(observer, "ONE_BY_ONE", 0)
    watching.storage.reports[2] = Report("n2")
    watching.storage.leases.views[2] = view
    watching.after(0.0)
    assert watching.after(1.0, 1, 2, 3).nodes["n2"].lease is LeaseSight.RENEWED
    assert watching.after(2.0, 1, 3).nodes["n2"].lease is sight


def test_of_many_silent_nodes_the_host_leases_are_read_in_one_read(watching, monkeypatch):
    monkeypatch.setattr(observer, "ONE_BY_ONE", 1)
    leases, reads = watching.storage.leases, []
    dead = {number: lease_view(number, state=HostState.DEAD) for number in (2, 3)}
    monkeypatch.setattr(leases, "hosts", lambda: reads.append("all") or dead)
    monkeypatch.setattr(leases, "host", lambda number: reads.append(number) or lease_view(number))
    watching.after(0.0)
    del reads[:]
    watching.after(2.0, 1)
    assert reads == [1, "all"]
    # One that was never held is not among all.
    del dead[3], reads[:]
    watching.after(0.5, 1)
    assert reads == [1, "all", 3]


def test_a_lockspace_that_cannot_be_read_says_nothing_of_many_silent_nodes(watching, monkeypatch):
    monkeypatch.setattr(observer, "ONE_BY_ONE", 1)
    failing = mock.Mock(side_effect=StorageError("unreadable"))
    monkeypatch.setattr(watching.storage.leases, "hosts", failing)
    watching.after(0.0)
    observed = watching.after(2.0, 1).nodes
    assert {observed["n2"].lease, observed["n3"].lease} == {LeaseSight.STALE}


@pytest.mark.parametrize(
    ("report", "unchanged_for", "sight"),
    [
        (Report("n2", watchdog_timeout=60), 26.0, LeaseSight.FAILED),
        (Report("n2", watchdog_timeout=60), 75.9, LeaseSight.FAILED),
        (Report("n2", watchdog_timeout=60), 76.0, LeaseSight.DEAD),
        (Report("n2", watchdog_timeout=10), 26.0, LeaseSight.DEAD),
        (Report("n2", watchdog_timeout=5), 26.0, LeaseSight.DEAD),
        (Report("n2", watchdog_timeout=0), 999.0, LeaseSight.FAILED),
        (Report("n2"), 26.0, LeaseSight.DEAD),
    ],
)
def test_a_node_whose_watchdog_acts_later_than_ours_lives_so_much_longer(
    tmp_path, report, unchanged_for, sight
):
    watching = Watching(tmp_path, backend=SANLOCK, sanlock=SanlockSettings(watchdog_timeout=10))
    watching.storage.reports[2] = report
    view = lease_view(2, state=HostState.DEAD, unchanged_for=unchanged_for)
    watching.storage.leases.views[2] = view
    watching.after(0.0)
    assert watching.after(2.0, 1, 3).nodes["n2"].lease is sight


@pytest.mark.parametrize(
    ("lease_proof", "report", "sight"),
    [
        (None, Report("n2"), LeaseSight.DEAD),
        (None, Report("n2", virtual=""), LeaseSight.DEAD),
        (None, Report("n2", virtual="kvm"), LeaseSight.FAILED),
        (None, FormatError("no copy is whole"), LeaseSight.FAILED),
        (True, Report("n2", virtual="kvm"), LeaseSight.DEAD),
        (True, FormatError("no copy is whole"), LeaseSight.DEAD),
        (False, Report("n2", virtual=""), LeaseSight.FAILED),
    ],
)
def test_a_host_lease_that_ran_out_is_no_proof_where_the_watchdog_may_have_stopped(
    tmp_path, lease_proof, report, sight
):
    members = dict(configuration(tmp_path).members)
    members["n2"] = replace(members["n2"], lease_proof=lease_proof)
    watching = Watching(tmp_path, backend=SANLOCK, members=members)
    watching.storage.reports[2] = report
    watching.storage.leases.views[2] = lease_view(2, state=HostState.DEAD, unchanged_for=76.0)
    watching.after(0.0)
    observed = watching.after(2.0, 1, 3).nodes["n2"]
    assert observed.lease is sight
    assert bool(observed.lease_note) == (sight is LeaseSight.FAILED)


@pytest.mark.parametrize(("unchanged_for", "noted"), [(75.9, False), (76.0, True)])
def test_a_lease_is_not_called_run_out_before_the_watchdog_had_its_time(
    tmp_path, unchanged_for, noted
):
    watching = Watching(tmp_path, backend=SANLOCK, sanlock=SanlockSettings(watchdog_timeout=10))
    watching.storage.reports[2] = FormatError("no copy is whole")
    view = lease_view(2, state=HostState.DEAD, unchanged_for=unchanged_for)
    watching.storage.leases.views[2] = view
    watching.after(0.0)
    observed = watching.after(2.0, 1, 3).nodes["n2"]
    assert (observed.lease, bool(observed.lease_note)) == (LeaseSight.FAILED, noted)


def test_what_a_node_wrote_while_its_host_lease_was_read_is_known(watching, monkeypatch):
    last = Report("n2", commands=8, watchdog_timeout=0)
    watching.storage.reports[2] = Report("n2", commands=7)
    views = watching.storage.leases

    def host(host_id):
        if host_id != 2:
            return lease_view(host_id)
        watching.storage.reports[2] = last
        return lease_view(2, state=HostState.DEAD, unchanged_for=26.0)

    monkeypatch.setattr(views, "host", host)
    watching.after(0.0)
    observed = watching.after(2.0, 1, 3).nodes["n2"]
    assert (observed.report, observed.lease) == (last, LeaseSight.FAILED)


@pytest.mark.parametrize(
    ("unchanged_for", "silent_for", "sight"),
    [
        (39.0, 32.9, LeaseSight.RENEWED),
        (39.0, 33.0, LeaseSight.STALE),
        (30.0, 33.0, LeaseSight.STALE),
        (29.9, 33.0, LeaseSight.RENEWED),
        (39.9, 60.0, LeaseSight.RENEWED),
        (40.0, 60.0, LeaseSight.STALE),
    ],
)
def test_an_lrm_counts_as_gone_for_good_only_if_the_lease_was_renewed_since_it_fell_silent(
    watching, unchanged_for, silent_for, sight
):
    watching.storage.leases.fail_seconds = 80.0
    watching.storage.leases.views[2] = lease_view(2, unchanged_for=unchanged_for)
    watching.after(0.0)
    watching.after(1.0, 1, 2, 3)
    while silent_for > 2.0:
        # Nobody else looks away: a pause of this node's own would count as nobody's silence.
        watching.after(1.0, 1, 3)
        silent_for -= 1.0
    assert watching.after(silent_for, 1, 3).nodes["n2"].lease is sight


@pytest.mark.parametrize("seconds", [1.0, 1.1])
def test_a_slow_look_at_the_storage_is_this_nodes_own_trouble(watching, seconds):
    watching.storage.board.on_read = lambda: watching.clock.go(seconds)
    trouble = watching.observer.look().trouble
    assert trouble == ("" if seconds == 1.0 else "this node's own reads of the storage take 1.1 s")


@pytest.mark.parametrize("state", [HostState.FAIL, HostState.FREE, HostState.DEAD])
def test_a_host_lease_of_our_own_that_is_not_live_is_our_own_trouble(watching, state):
    watching.storage.leases.views[1] = lease_view(1, state=state)
    assert watching.observer.look().trouble == f"this node's own host lease is {state.value}"


@pytest.mark.parametrize("seconds", [5.9, 6.0])
def test_what_is_read_without_a_late_renewal_of_our_own_may_be_old_and_is_no_verdict(
    watching, seconds
):
    watching.storage.leases.views[1] = lease_view(1, unchanged_for=seconds)
    trouble = watching.observer.look().trouble
    assert ("was not observed to be renewed for 6 s, so what it reads may be old" in trouble) == (
        seconds == 6.0
    )


def test_our_own_host_lease_that_cannot_be_read_makes_the_look_worthless(watching):
    watching.storage.leases.views[1] = StorageError("unreadable")
    with pytest.raises(StorageError):
        watching.observer.look()


def test_a_damaged_report_is_none_and_harms_no_other(watching):
    reports = {1: Report("n1"), 2: FormatError("no copy is whole"), 3: Report("n3")}
    watching.storage.reports = reports
    nodes = watching.observer.look().nodes
    assert [nodes[name].report for name in ("n1", "n2", "n3")] == [reports[1], None, reports[3]]


def test_the_record_of_another_machine_under_a_nodes_host_id_says_nothing_of_the_node(watching):
    watching.after(0.0)
    watching.storage.reports[2] = Report("n9", boot="n9-boot1")
    found = watching.after(1.0, 1, 2, 3).nodes["n2"]
    assert found.report is None
    assert found.problem == "its host id's record is that of n9"


def test_a_node_that_says_that_it_can_do_nothing_is_seen_with_that(watching):
    watching.after(0.0)
    hosts = dict(watching.storage.board.board.hosts)
    told = heartbeat(2, "n2", 9.0, running=0, drained=False, report=0, trouble="its disk is full")
    watching.board(hosts={**hosts, 2: told})
    assert watching.after(1.0).nodes["n2"].problem == "its disk is full"


def test_the_own_host_lease_is_read_first_so_that_what_is_read_after_it_is_no_older(
    watching, monkeypatch
):
    """Else storage that shows an old state, and a new one in the middle of a look, fools it."""
    reads = []
    host, read = watching.storage.leases.host, watching.storage.board.read
    monkeypatch.setattr(
        watching.storage.leases, "host", lambda host_id: reads.append(host_id) or host(host_id)
    )
    monkeypatch.setattr(watching.storage.board, "read", lambda: reads.append("board") or read())
    watching.after(0.0)
    assert reads[:2] == [1, "board"]


@pytest.mark.parametrize("global_block", [None, GlobalBlock(False)])
def test_a_look_says_whether_the_global_block_could_be_read(watching, global_block):
    watching.board(global_block=global_block)
    assert watching.observer.look().board_readable is (global_block is not None)


def test_a_report_that_cannot_be_read_is_lost_only_if_the_node_has_written_one(watching):
    hosts = watching.storage.board.board.hosts
    wrote = heartbeat(2, "n2", 9.0, running=0, drained=False, report=4)
    watching.board(hosts={**hosts, 2: wrote})
    watching.storage.reports = {2: FormatError("no copy is whole"), 3: FormatError("no copy")}
    nodes = watching.observer.look().nodes
    assert (nodes["n2"].report_lost, nodes["n3"].report_lost) == (True, False)
    assert "no copy is whole" in nodes["n2"].problem


def test_a_host_id_without_a_member_is_seen_with_its_host_lease(watching):
    watching.after(0.0, 4)
    view = watching.after(1.0, 4).foreign.get(4)
    assert view is not None and view.beats
    watching.storage.leases.views[4] = lease_view(4, state=HostState.FREE)
    assert watching.observer.with_lease(4, view).lease is LeaseSight.FREE
    assert watching.observer.with_lease(4, None).lease is LeaseSight.FREE


def test_all_other_nodes_are_asked_for_keepalives_twice_a_second(tmp_path):
    watching = Watching(tmp_path, timing=PROFILES[FAST])
    watching.after(0.0)
    assert watching.network.requested == ["n2", "n3"]
    watching.after(0.4)
    assert len(watching.network.requested) == 2
    watching.after(0.1)
    assert len(watching.network.requested) == 4


def test_without_keepalives_nobody_is_asked_for_them(watching):
    watching.after(0.0)
    assert watching.network.requested == []


def test_a_keepalive_is_a_sign_of_life_just_before_a_fence(watching):
    watching.after(0.0, 2, 3)
    watching.network.keepalives["n3"] = [ObservedKeepalive(watching.clock.now)]
    assert watching.observer.has_new_heartbeat("n3")
    assert not watching.observer.has_new_heartbeat("n2")


def test_a_node_that_sends_keepalives_only_answers_with_them(tmp_path):
    watching = Watching(tmp_path, timing=PROFILES[FAST])
    for _look in range(20):
        watching.network.keepalives["n2"] = [ObservedKeepalive(watching.clock.now)]
        observation = watching.after(0.2, 1, 3)
    assert observation.nodes["n2"].answer is Answer.YES
    assert observation.answered["n2"] == pytest.approx(watching.clock.now - 0.2)
    observation = watching.after(1.5, 1, 3)
    assert observation.nodes["n2"].answer is Answer.NO
