# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An LRM's host lease: taken up as it is, given up when it is lost, had again without a human.

With real daemons it is tested in ``tests/system``.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm.host_lease import (
    JOIN_AGAIN,
    LOOK,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.effects import (
    Clocks,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    HostState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    LeaseError,
    NoAnswerError,
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import (
    EMBEDDED,
    SANLOCK,
)
from ansible_collections.holdfast.ha.tests.unit.node.played import PlayedHostLease
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import Clock, configuration
from ansible_collections.holdfast.ha.tests.unit.node.stand_ins import (
    StorageStandIn,
    given,
    lease_view,
)

NOBODY = LeaseError("nobody has joined")
FAIL = 16.0


class JoiningStandIn:
    """A join that ends when and as a test says."""

    def __init__(self):
        self.over = False
        self.why = None

    def ended(self):
        return given(self.over)

    def error(self):
        return self.why


class Node:
    """The host lease of n1, and what its sanlock has to say."""

    def __init__(self, folder, backend=SANLOCK):
        self.clock = Clock()
        self.storage = StorageStandIn()
        self.leases = self.storage.leases
        self.joins = []
        self.suspended = 0.0
        node = replace(configuration(folder), backend=backend)
        self.lease = PlayedHostLease(node, self.storage, self.clock, self._join, self._clocks, FAIL)

    def _clocks(self):
        """Return what the clocks show: the monotonic one stood still while it was suspended."""
        boottime = self.clock.now + self.suspended
        return Clocks(self.clock.now, 1e9 + boottime, boottime)

    def _join(self, _configuration):
        self.joins.append(JoiningStandIn())
        return self.joins[-1]

    def look(self, seconds=LOOK):
        self.clock.go(seconds)
        return self.lease.look()

    def lose(self):
        """Let sanlock lose the lockspace for good."""
        self.leases.renew_error = LeaseError("sanlock has lost lockspace c1")
        self.storage.host_lease = NOBODY
        assert self.look().startswith("is lost: sanlock has lost lockspace c1")


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


@pytest.fixture
def member(node):
    assert node.look() == ""
    assert node.leases.armed == 1
    return node


def test_a_host_lease_that_is_held_is_taken_up_and_nobody_joins(node):
    assert node.look() == ""
    assert (node.lease.generation, node.lease.owns_slot, node.joins) == (4, True, [])


@pytest.mark.parametrize("error", [StorageError("unreadable"), NoAnswerError("it hangs")])
def test_what_a_predecessor_left_is_not_stopped_while_it_cannot_be_told_whether_it_must_be(
    node, error
):
    node.storage.host_lease = error
    begun = node.clock.now
    found = [node.look() for _turn in range(10)]
    waited = [at for at, one in enumerate(found, start=1) if one is None]
    assert waited == [one for one in range(1, 11) if begun + one - begun < FAIL / 2]
    assert found[-1] == f"could not be acquired: {error}"
    node.storage.host_lease = 4
    assert node.look() == ""


def test_a_watchdog_that_is_not_armed_in_time_is_armed_with_the_next_look_and_stops_nothing(node):
    """Real leases refuse to be taken up a second time, as these do."""
    taken_up = []

    def adopt():
        if len(taken_up) > node.leases.left:
            raise LeaseError("host id 1 is already joined as node n1.")
        taken_up.append(node.clock.now)
        return 4

    node.storage.adopt_host_lease = adopt
    node.leases.armed = NoAnswerError("it did not answer to status within 1 s.")
    assert [node.look(), node.look()] == [None, None]
    node.leases.armed = 0
    assert node.look() == ""
    assert (node.lease.generation, node.leases.armed) == (4, 1)


def test_a_host_lease_that_nobody_holds_is_trouble_at_once_and_its_slots_are_not_ours(node):
    node.storage.host_lease = NOBODY
    assert node.look() == "is not held: nobody has joined"
    assert not node.lease.owns_slot


@pytest.mark.parametrize(
    ("change", "trouble"),
    [
        ({"state": HostState.FAIL, "unchanged_for": 16.0}, "was not renewed for 16 s"),
        ({"state": HostState.FREE}, "is no longer that of this start (generation 4)"),
        ({"generation": 5}, "is no longer that of this start (generation 4)"),
    ],
)
def test_a_record_that_says_otherwise_is_trouble_until_it_was_let_go(member, change, trouble):
    member.leases.views[1] = lease_view(1, **change)
    assert member.look(0.1) == trouble
    member.leases.views.clear()
    assert member.look(0.1) == trouble
    member.lease.come_back()
    assert member.look() == ""


def test_what_was_lost_is_not_had_again_because_sanlock_goes_on_renewing_it(member):
    """sanlock is asked only when a renewal has settled; nothing may start before that either."""
    member.lose()
    member.leases.renew_error = None
    for _turn in range(8):
        assert member.look(0.5).startswith("is lost: sanlock has lost lockspace c1")
    member.lease.come_back()
    assert member.look() == "is not held: nobody has joined"


def test_a_lockspace_that_sanlock_has_lost_is_trouble_though_its_record_is_renewed(member):
    member.lose()
    assert member.look(0.1).startswith("is lost")
    assert member.lease.owns_slot, "that its services have stopped has still to be said"


def test_sanlock_is_asked_once_a_second_and_the_record_read_each_round(member):
    member.leases.renew_error = NoAnswerError("it hangs")
    member.look()
    member.leases.renew_error = None
    member.look(0.0)
    asked = []
    member.leases.renew = lambda: asked.append(member.clock.now)
    for _turn in range(8):
        member.look(0.5)
    assert len(asked) == 4


def test_a_sanlock_that_does_not_answer_is_trouble_only_after_the_fail_time(member):
    member.leases.renew_error = NoAnswerError("it hangs")
    assert member.look() == ""
    renewed_at = member.lease.renewed_at
    while member.look(0.5) == "":
        assert member.clock.now - renewed_at < FAIL
    assert member.clock.now - renewed_at == FAIL
    member.leases.renew_error = None
    assert member.look(0.5) == "was not observed to be renewed for 16 s: it hangs"
    member.lease.come_back()
    assert member.look() == ""
    assert member.lease.renewed_at > renewed_at


def test_the_fail_time_counts_from_the_renewal_and_not_from_the_last_look_at_it(member):
    """The others count from there, and with the watchdog's time begin to take over."""
    member.leases.views[1] = lease_view(1, unchanged_for=11.0)
    assert member.look() == ""
    assert member.lease.renewed_at == member.clock.now - 11.0
    member.leases.views[1] = StorageError("unreadable")
    assert member.look(FAIL - 11.5) == ""
    assert member.look(0.5) == "was not observed to be renewed for 16 s: unreadable"


def test_while_sanlock_does_not_answer_the_lease_does_not_count_as_renewed(member):
    member.leases.renew_error = NoAnswerError("it hangs")
    before = member.lease.renewed_at
    assert member.look() == ""
    assert member.lease.renewed_at == before


def test_after_a_loss_the_watchdog_is_disarmed_and_the_node_joins_and_goes_on(member):
    member.lose()
    assert member.leases.disarmed == 0, "services may still run"
    member.lease.come_back()
    assert (member.leases.disarmed, member.leases.left, member.joins) == (1, 1, [])
    member.lease.come_back()
    assert member.look() == "is being joined"
    assert len(member.joins) == 1
    member.lease.come_back()
    assert len(member.joins) == 1, "one at a time"
    member.leases.renew_error, member.storage.host_lease = None, 6
    member.leases.views[1] = lease_view(1, generation=6)
    assert member.look() == "is being joined", "adopting beside a join would be confusing"
    member.joins[0].over = True
    assert member.look() == ""
    assert member.lease.generation == 6


def test_the_watchdog_is_disarmed_while_it_is_known_of_which_lockspace(member, monkeypatch):
    """To let go of the lease forgets that, and a storage that is gone cannot be asked."""
    order = []
    for name in ("disarm_watchdog", "leave"):
        monkeypatch.setattr(member.leases, name, lambda name=name: order.append(name))
    member.lose()
    member.lease.come_back()
    assert order == ["disarm_watchdog", "leave"]


def test_the_watchdog_is_not_believed_to_be_disarmed_before_sanlock_answered(member):
    member.lose()
    member.leases.disarmed = NoAnswerError("it hangs")
    member.lease.come_back()
    member.lease.come_back()
    assert member.joins == []
    member.leases.disarmed = 0
    member.lease.come_back()
    member.lease.come_back()
    assert (member.leases.disarmed, len(member.joins)) == (1, 1)


@pytest.mark.parametrize("error", [LeaseError("no such lockspace"), StorageError("unreadable")])
def test_a_lockspace_that_sanlock_no_longer_has_needs_not_be_disarmed(member, error):
    member.lose()
    member.leases.disarmed = error
    member.lease.come_back()
    member.lease.come_back()
    assert len(member.joins) == 1


def test_a_join_that_fails_is_said_and_tried_again_after_a_while(member, capsys):
    member.lose()
    member.lease.come_back()
    member.lease.come_back()
    member.joins[0].over, member.joins[0].why = True, LeaseError("another I/O timeout")
    assert member.look() == "cannot be joined: another I/O timeout"
    said = "the host lease cannot be joined: another I/O timeout"
    assert said in capsys.readouterr().err
    member.lease.come_back()
    assert len(member.joins) == 1
    member.clock.go(JOIN_AGAIN)
    member.lease.come_back()
    assert member.leases.disarmed == 2, "sanlock may have been told meanwhile that it is in use"
    member.lease.come_back()
    assert len(member.joins) == 2
    member.joins[1].over, member.joins[1].why = True, LeaseError("another I/O timeout")
    assert member.look() == "cannot be joined: another I/O timeout"
    assert said not in capsys.readouterr().err, "once is enough"


def test_a_join_that_hangs_ends_the_daemon(member):
    member.lose()
    member.lease.come_back()
    member.lease.come_back()
    member.joins[0].over = LeaseError("Joining as host id 1 did not end")
    with pytest.raises(LeaseError, match="Joining as host id 1 did not end"):
        member.look()


def test_a_lockspace_that_somebody_else_joined_again_is_taken_up(member):
    member.lose()
    member.lease.come_back()
    member.leases.renew_error, member.storage.host_lease = None, 5
    member.leases.views[1] = lease_view(1, generation=5)
    assert member.look() == ""
    assert (member.lease.generation, member.joins) == (5, [])


def test_the_slots_are_given_up_when_another_node_has_the_host_id(member):
    member.lose()
    member.lease.come_back()
    member.leases.views[1] = lease_view(1, host_name="n9", generation=9)
    member.look()
    assert not member.lease.owns_slot


def test_an_embedded_node_leaves_joining_to_its_machine(tmp_path):
    node = Node(tmp_path, EMBEDDED)
    node.storage.host_lease = NOBODY
    node.look()
    for _turn in range(3):
        node.lease.come_back()
    assert (node.joins, node.leases.disarmed) == ([], 0)
    node.storage.host_lease = 4
    assert node.look() == ""


def test_a_node_that_was_suspended_for_longer_than_its_lease_lasts_leaves_and_joins_again(member):
    """Its sanlock renews on at once as if nothing had happened."""
    member.suspended = FAIL
    for _turn in range(3):
        assert member.look() == "may have failed meanwhile: this node was suspended for 16 s"
    member.lease.come_back()
    assert (member.leases.disarmed, member.leases.left) == (1, 1)
    member.storage.host_lease = NOBODY
    assert member.look() == "is not held: nobody has joined"
    member.clock.go(JOIN_AGAIN)
    member.lease.come_back()
    (join,) = member.joins
    join.over = True
    member.storage.host_lease = 5
    member.leases.views[1] = lease_view(1, generation=5)
    assert member.look() == ""
    assert member.lease.generation == 5


@pytest.mark.parametrize(
    ("age", "suspended", "trouble"),
    [
        (0.5, 14.4, False),
        (0.5, 14.5, True),
        (7.0, 7.9, False),
        (7.0, 8.0, True),
        (15.0, 0.0, False),
    ],
)
def test_a_suspension_counts_from_the_renewal_that_was_seen_before_it(
    member, age, suspended, trouble
):
    member.leases.views[1] = lease_view(1, unchanged_for=age)
    assert member.look(0.0) == ""
    member.suspended = suspended
    # It was renewed by the time of the next look.
    member.leases.views[1] = lease_view(1, unchanged_for=0.1)
    assert bool(member.look(1.0)) is trouble


def test_short_suspensions_do_not_add_up_while_the_lease_is_renewed(member):
    for _turn in range(5):
        member.suspended += 10.0
        assert member.look() == ""


def test_the_machines_of_an_embedded_cluster_are_suspended_together(tmp_path):
    node = Node(tmp_path, EMBEDDED)
    assert node.look() == ""
    node.suspended = 1000.0
    assert node.look() == ""
