# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What we make of sanlock's answers, told by a stand-in for its daemon and a clock of ours."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    HostState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    FormatError,
    InputError,
    LeaseError,
    NoAnswerError,
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.sanlock import (
    SanlockLeases,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.sanlock_binding import (
    MOST_HANGING,
    Bounded,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.sanlock_command import (
    CommandDaemon,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.sanlock_daemon import (
    DaemonStatus,
    HostStatus,
    Joined,
    Lockspace,
    Progress,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.sanlock_membership import (  # noqa: E501
    SETTLED,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.sanlock_views import (
    Renewals,
    parse_renewals,
    read_renewals,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.block_file import (
    BlockFile,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.delta_lease import (  # noqa: E501
    DeltaLease,
    LeaseArea,
    encode_delta,
    initial_lockspace,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.host_timing import (  # noqa: E501
    LATE,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.leader_record import (  # noqa: E501
    MEBIBYTE,
    Layout,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.resource_lease import (  # noqa: E501
    initial_leases,
    read_leader,
    write_leader,
)

N = 2
DEAD = 8 * N + 60


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now

    def pause(self, seconds):
        self.now += seconds


@dataclass
class StandInHolding:
    progress: Progress = Progress.TRYING
    code: int = 0
    ended: bool = False
    waited: list[float] = field(default_factory=list)

    def wait(self, seconds):
        self.waited.append(seconds)
        return self.progress

    def end(self):
        self.ended = True


class StandInDaemon:
    """A sanlock that has and says what a test gives it."""

    def __init__(self, area, clock):
        self.area = area
        self.clock = clock
        self.said = DaemonStatus("n1", (3, 8, 5), 60)
        self.joined = []
        self.known = {}
        self.silent = False
        self.used = None
        self.lost = False
        self.held = 1000.0
        self.asked_how_long = 0
        self.holdings = []
        self.asked = 0
        self.asked_whether_lost = 0

    def status(self, _deadline=5.0):
        if self.silent:
            raise LeaseError("the sanlock daemon does not answer")
        return self.said

    def lockspaces(self):
        return self.joined

    def add_lockspace(self, lockspace, io_timeout, deadline):
        assert deadline >= 5 * io_timeout
        present = self.area.read_host(lockspace.host_id)
        self.area.write_host(
            lockspace.host_id,
            replace(
                present,
                host_id=lockspace.host_id,
                host_name=self.said.host_name,
                generation=present.generation + 1,
                timestamp=int(self.clock()),
            ),
        )
        self.joined = [Joined(lockspace, False)]

    def remove_lockspace(self, lockspace, _deadline):
        assert not self.used, "sanlock does not leave a lockspace that is used"
        present = self.area.read_host(lockspace.host_id)
        self.area.write_host(lockspace.host_id, replace(present, timestamp=0))
        self.joined = []

    def set_used(self, _lockspace, used):
        self.used = used

    def has_lost(self, _lockspace):
        self.asked_whether_lost += 1
        if self.silent:
            raise LeaseError("the sanlock daemon does not answer")
        return self.lost

    def held_for(self, _lockspace):
        self.asked_how_long += 1
        return self.held

    def hosts(self, _lockspace):
        self.asked += 1
        if self.silent:
            raise LeaseError("the sanlock daemon does not answer")
        return self.known

    def acquire(self, _resource):
        self.holdings.append(StandInHolding())
        return self.holdings[-1]


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def paths(tmp_path):
    lockspace, leases = tmp_path / "c1.lockspace", tmp_path / "c1.leases"
    lockspace.write_bytes(initial_lockspace("c1", N))
    leases.write_bytes(initial_leases("c1"))
    return str(lockspace), str(leases)


@pytest.fixture
def area(paths):
    with LeaseArea(paths[0]) as area:
        yield area


@pytest.fixture
def daemon(area, clock):
    return StandInDaemon(area, clock)


@pytest.fixture
def node(paths, daemon, clock):
    made = SanlockLeases(*paths, 1, clock, daemon=daemon, pause=clock.pause)
    yield made
    made.close()


def _host(area, host_id, **fields):
    present = replace(area.read_host(host_id), host_id=host_id, host_name=f"n{host_id}")
    area.write_host(host_id, replace(present, **{"generation": 1, "timestamp": 50, **fields}))


def _own(paths, name, *, version=1, host_id=1, generation=1):
    with BlockFile.open(paths[1], writable=True, alignment=512) as file:
        leader = replace(
            read_leader(file, ("manager", "configuration").index(name)),
            owner_id=host_id,
            owner_generation=generation,
            version=version,
            timestamp=77,
        )
        write_leader(file, ("manager", "configuration").index(name), leader)


def _renew(area, clock):
    area.write_host(1, replace(area.read_host(1), timestamp=int(clock())))


def test_a_try_that_sanlock_holds_up_is_answered_with_none_and_never_doubled(node, daemon, paths):
    node.join("n1")
    assert [node.acquire("manager") for _turn in range(5)] == [None] * 5
    [holding] = daemon.holdings
    assert holding.waited[1:] == [0.0] * 4, "only the first look may wait"
    assert holding.waited[0] <= 0.5


def test_a_late_success_is_taken_by_the_next_call(node, daemon, paths):
    node.join("n1")
    assert node.acquire("manager") is None
    _own(paths, "manager", version=9)
    daemon.holdings[0].progress = Progress.HELD
    assert not node.held("manager"), "nobody knows yet that it was had"
    assert node.acquire("manager") == 9
    assert node.held("manager")


@pytest.mark.parametrize("give_up", ["release", "close", "lost"])
def test_a_late_success_that_nobody_takes_is_released(node, daemon, area, give_up):
    node.join("n1")
    node.acquire("manager")
    if give_up == "lost":
        area.write_host(1, replace(area.read_host(1), timestamp=0))
        with pytest.raises(LeaseError, match="no longer held"):
            node.acquire("manager")
    elif give_up == "close":
        node.close()
    else:
        node.release("manager")
    assert daemon.holdings[0].ended


@pytest.mark.parametrize("code", [-243, -245, -16, -17, -212])
def test_an_answer_that_only_says_not_now_is_none_and_the_next_call_tries_again(node, daemon, code):
    node.join("n1")
    node.acquire("manager")
    daemon.holdings[0].progress, daemon.holdings[0].code = Progress.ENDED, code
    assert node.acquire("manager") is None
    assert node.acquire("manager") is None
    assert len(daemon.holdings) == 2


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        (-227, FormatError, "holds another lease there"),
        (-202, StorageError, "did not answer in time"),
        (-28, LeaseError, "has not joined the lockspace"),
        (-999, LeaseError, r"\(-999\)"),
    ],
)
def test_any_other_answer_is_an_error_that_says_why(node, daemon, code, kind, text):
    node.join("n1")
    node.acquire("manager")
    daemon.holdings[0].progress, daemon.holdings[0].code = Progress.ENDED, code
    with pytest.raises(kind, match=text):
        node.acquire("manager")


def test_sanlock_that_says_held_while_the_storage_says_otherwise_is_not_believed(
    node, daemon, paths
):
    node.join("n1")
    node.acquire("manager")
    _own(paths, "manager", host_id=2)
    daemon.holdings[0].progress = Progress.HELD
    with pytest.raises(LeaseError, match="on the storage it is host id 2's"):
        node.acquire("manager")
    assert daemon.holdings[0].ended


@pytest.mark.parametrize("loss", ["holder", "version", "join", "renewal"])
def test_a_lease_is_held_no_longer_once_any_part_of_it_is_lost(
    node, daemon, paths, area, clock, loss
):
    node.join("n1")
    node.acquire("manager")
    _own(paths, "manager")
    daemon.holdings[0].progress = Progress.HELD
    node.acquire("manager")
    assert node.held("manager")
    if loss == "holder":
        daemon.holdings[0].progress = Progress.ENDED
    elif loss == "version":
        _own(paths, "manager", version=2)
    elif loss == "join":
        area.write_host(1, replace(area.read_host(1), generation=2))
    else:
        clock.now += 8 * N
    assert not node.held("manager")


def test_who_holds_a_lease_is_told_although_the_host_lease_of_that_node_is_damaged(
    node, paths, area
):
    """Every LRM reads the manager's record where its holder has written it."""
    _host(area, 2)
    _own(paths, "manager", host_id=2, version=9)
    with Path(paths[0]).open("r+b") as file:
        file.seek(512)
        file.write(b"damaged!")
    holder = node.holder("manager")
    assert (holder.host_id, holder.version, holder.active) == (2, 9, None)


def test_sanlock_is_not_asked_for_a_lease_whose_owner_is_seen_to_renew(node, daemon, paths, area):
    node.join("n1")
    _host(area, 2)
    _own(paths, "manager", host_id=2)
    node.host(2)
    _host(area, 2, timestamp=54)
    assert node.acquire("manager") is None
    assert daemon.holdings == []
    _host(area, 2, timestamp=54, generation=2)
    node.acquire("manager")
    assert len(daemon.holdings) == 1


def test_a_node_without_renewal_for_eight_io_timeouts_knows_it_by_its_own_clock(node, area, clock):
    node.join("n1")
    clock.now += 8 * N - 1
    node.renew()
    assert node.host(1).state is HostState.LIVE
    clock.now += 1
    assert (node.host(1).state, node.host(1).unchanged_for) == (HostState.FAIL, 8 * N)
    with pytest.raises(LeaseError, match="did not renew its lease for 16 s"):
        node.renew()


def test_a_host_is_dead_after_the_whole_dead_time_of_the_readers_own_clock(node, area, clock):
    node.join("n1")
    _host(area, 2)
    assert node.host(2).state is HostState.LIVE
    clock.now += DEAD - 1
    _renew(area, clock)
    assert node.host(2).state is HostState.FAIL
    clock.now += 1
    _renew(area, clock)
    assert node.host(2).state is HostState.DEAD


def test_a_host_is_dead_only_in_a_read_that_shows_our_own_renewal_after_its_dead_time(
    node, area, clock
):
    node.join("n1")
    _host(area, 2)
    node.host(2)
    clock.now += DEAD - 1
    _renew(area, clock)
    clock.now += 3
    assert node.host(2).state is HostState.FAIL, "this may be what the storage had 3 s ago"
    _renew(area, clock)
    assert node.host(2).state is HostState.FAIL, "the whole lockspace is read once a second"
    clock.now += 1
    assert node.host(2).state is HostState.DEAD
    _host(area, 2, timestamp=51)
    assert node.host(2).state is HostState.LIVE


def test_a_read_in_which_a_host_was_dead_is_no_proof_any_more_after_our_next_renewal_was_due(
    node, area, clock
):
    node.join("n1")
    _host(area, 2)
    node.host(2)
    clock.now += DEAD
    _renew(area, clock)
    assert node.host(2).state is HostState.DEAD
    old = area.read_host(2)
    _host(area, 2, generation=2, timestamp=60)
    clock.now += 2 * N + LATE
    assert node._views.view(2, old).state is HostState.DEAD, "no join ends as soon"
    clock.now += 1
    assert node._views.view(2, old).state is HostState.FAIL


def test_what_a_host_was_in_an_old_read_is_no_proof_in_a_new_one(node, area, clock):
    node.join("n1")
    _host(area, 2)
    node.host(2)
    clock.now += DEAD + 1
    old = area.read_host(2)
    _host(area, 2, timestamp=51)
    _renew(area, clock)
    assert node._views.view(2, old).state is HostState.FAIL


def test_without_a_watchdog_nobody_is_dead_by_time(node, daemon, area, clock):
    daemon.said = replace(daemon.said, watchdog_timeout=None)
    node.join("n1")
    _host(area, 2)
    node.host(2)
    daemon.known = {2: HostStatus(1, 50, HostState.DEAD)}
    clock.now += 10 * DEAD
    _renew(area, clock)
    assert node.host(2).state is HostState.FAIL


def test_sanlock_that_watched_for_longer_may_say_that_a_host_is_dead(node, daemon, area):
    node.join("n1")
    _host(area, 2)
    daemon.known = {2: HostStatus(1, 50, HostState.DEAD)}
    assert node.host(2).state is HostState.DEAD


@pytest.mark.parametrize("doubt", ["newer", "rejoined", "old read", "cannot read", "not joined"])
def test_sanlocks_dead_is_no_proof_while_anything_speaks_against_it(
    node, daemon, area, clock, doubt
):
    if doubt != "not joined":
        node.join("n1")
    _host(area, 2, timestamp=51 if doubt == "newer" else 50)
    if doubt == "rejoined":
        _host(area, 2, generation=2)
    daemon.known = {2: HostStatus(1, 50, HostState.DEAD)}
    if doubt == "old read":
        # What was read is as new as our renewal, and sanlock spoke after that.
        clock.now += 1
    if doubt == "cannot read":
        # It did not renew our own lease, so it did not look at the others either.
        clock.now += 4 * N
    assert node.host(2).state is not HostState.DEAD


def test_while_sanlock_is_silent_the_storage_tells_and_it_is_not_asked_all_the_time(
    node, daemon, area, clock
):
    node.join("n1")
    _host(area, 2)
    daemon.silent = True
    for _turn in range(20):
        assert node.host(2).state is HostState.LIVE
        clock.now += 0.1
    assert daemon.asked == 1
    assert node.host(2).active is None
    _host(area, 2, timestamp=60)
    assert node.host(2).active is True


@pytest.mark.parametrize("made_for", [10, 5])
def test_a_lockspace_made_for_another_io_timeout_is_refused(paths, daemon, clock, made_for):
    Path(paths[0]).write_bytes(initial_lockspace("c1", made_for))
    node = SanlockLeases(*paths, 1, clock, daemon=daemon, io_timeout=N)
    with pytest.raises(LeaseError, match=f"made for an I/O timeout of {made_for} s"):
        node.join("n1")
    assert daemon.joined == []


def test_a_node_that_joined_with_another_io_timeout_keeps_others_out(node, daemon, area):
    _host(area, 2, io_timeout=10)
    with pytest.raises(LeaseError, match=r"n2 \(host id 2\) joined with an I/O timeout of 10 s"):
        node.join("n1")
    assert daemon.joined == []


@pytest.mark.parametrize("free", [True, False])
def test_a_host_lease_that_was_joined_with_another_io_timeout_is_refused(node, daemon, area, free):
    _host(area, 1, io_timeout=10, timestamp=0 if free else 50)
    with pytest.raises(LeaseError, match=r"I/O timeout of 10 s, but the lockspace was made for 2"):
        node.join("n1")
    assert daemon.joined == []


def test_a_host_id_that_the_lockspace_has_no_place_for_is_refused(tmp_path, daemon, clock):
    layout = Layout(4096, MEBIBYTE)
    (tmp_path / "l").write_bytes(initial_lockspace("c1", N, layout=layout))
    node = SanlockLeases(str(tmp_path / "l"), str(tmp_path / "r"), 251, clock, daemon=daemon)
    with pytest.raises(StorageError, match="no host lease for host id 251; expected 1 to 250"):
        node.join("n1")
    assert daemon.joined == []


def test_an_io_timeout_of_one_second_is_refused_with_the_reason(paths, daemon, clock):
    Path(paths[0]).write_bytes(encode_delta(DeltaLease("c1", io_timeout=1)) * 2048)
    with pytest.raises(InputError, match="healthy nodes are reset"):
        SanlockLeases(*paths, 1, clock, daemon=daemon).join("n1")
    assert daemon.joined == []


def test_a_name_that_sanlock_would_cut_off_is_refused(node):
    with pytest.raises(InputError, match="at most 47 characters"):
        node.join("n" * 48)


def test_a_machine_that_crashed_and_one_that_lives_are_told_apart_before_joining(
    node, area, clock, monkeypatch
):
    _host(area, 1, timestamp=500)
    begun = clock.now
    assert node.join("n1") == 2
    assert 2 * N + LATE <= clock.now - begun <= 2 * N + LATE + 2
    node.leave()

    _host(area, 1, timestamp=500)
    begun = clock.now

    def renewing(seconds):
        clock.now += seconds
        if clock.now - begun > 2 * N + LATE:
            _host(area, 1, timestamp=504)

    node._membership._pause = renewing
    with pytest.raises(LeaseError, match="already held by node n1 on another machine"):
        node.join("n1")


def test_a_joined_lockspace_counts_as_used_until_it_is_left(node, daemon):
    node.join("n1")
    assert daemon.used is True
    node.disarm_watchdog()
    assert daemon.used is False
    node.arm_watchdog()
    node.leave()
    assert daemon.used is False
    assert node.host(1).state is HostState.FREE


def test_a_lockspace_that_sanlock_gave_up_is_lost_although_it_is_renewed(node, daemon, area, clock):
    """Its threads go on to renew; its main loop looks a little later whether that went well."""
    node.join("n1")
    _renew(area, clock)
    for _look in range(3):
        node.renew()
        clock.now += 0.5
    daemon.lost = True
    for _second in range(2 * N - 2):
        with pytest.raises(LeaseError, match="sanlock has lost lockspace c1"):
            node.renew()
        clock.now += 1
    assert node.host(1).state is HostState.LIVE


def test_sanlock_is_asked_once_a_renewal_has_settled_and_each_time_while_one_is_late(
    node, daemon, area, clock
):
    node.join("n1")
    asked = []
    for second in range(5 * 2 * N):
        if second < 3 * 2 * N and second % (2 * N) == 0:
            _renew(area, clock)
        before = daemon.asked_whether_lost
        node.renew()
        if daemon.asked_whether_lost > before:
            asked.append(second)
        clock.now += 1
    last = 2 * 2 * N
    settled = [renewed + 2 for renewed in (0, 2 * N, last)]
    assert asked == [*settled, *range(last + 2 * N + 2, 5 * 2 * N)]


def test_a_daemon_that_was_held_up_during_a_loss_sees_it_at_its_first_look(
    node, daemon, area, clock
):
    """Held up over the loss, it first looks just after a renewal, which has not settled."""
    node.join("n1")
    clock.now += 8 * N + 1
    _renew(area, clock)
    daemon.lost = True
    with pytest.raises(LeaseError, match="sanlock has lost lockspace c1"):
        node.renew()


def test_an_answer_before_a_renewal_has_settled_is_not_the_last_one(node, daemon, area, clock):
    node.join("n1")
    clock.now += 8 * N + 1
    _renew(area, clock)
    node.renew()
    clock.now += 1.0
    daemon.lost = True
    with pytest.raises(LeaseError, match="sanlock has lost lockspace c1"):
        node.renew()


def test_a_sanlock_that_does_not_answer_is_asked_again_at_the_next_look(node, daemon, clock):
    node.join("n1")
    node.renew()
    daemon.silent = True
    clock.now += SETTLED
    for _second in range(2):
        with pytest.raises(LeaseError, match="does not answer"):
            node.renew()


def test_a_lockspace_that_is_adopted_is_armed_by_who_runs_services_and_never_once_lost(
    node, daemon, area
):
    _host(area, 1, timestamp=1000)
    daemon.joined = [Joined(Lockspace("c1", 1, area.path), False)]
    node.adopt("n1")
    assert not daemon.used, "who only looks needs no reset of the machine"
    node.arm_watchdog()
    assert daemon.used is True
    node.disarm_watchdog()
    daemon.lost = True
    with pytest.raises(LeaseError, match=r"sanlock has lost lockspace c1 .* join it again"):
        node.arm_watchdog()
    assert daemon.used is False


def test_a_lockspace_that_sanlock_has_elsewhere_is_not_adopted(node, daemon, area):
    _host(area, 1, timestamp=1000)
    daemon.joined = [Joined(Lockspace("c1", 1, "/elsewhere"), False)]
    with pytest.raises(LeaseError, match="as host id 1 in /elsewhere"):
        node.adopt("n1")
    daemon.joined = [Joined(Lockspace("c1", 1, area.path), True)]
    with pytest.raises(LeaseError, match="join the lockspace first"):
        node.adopt("n1")
    daemon.joined = [Joined(Lockspace("c1", 1, area.path), False)]
    assert node.adopt("n1") == 1


@pytest.mark.parametrize("moment", ["since the fence", "since the last look"])
def test_a_host_that_renewed_after_its_fence_is_not_set_free(node, area, moment):
    _host(area, 2)
    observed = node.host(2)
    _host(area, 2, timestamp=54)
    known = (observed.timestamp,) if moment == "since the fence" else ()
    with pytest.raises(LeaseError, match=r"renewed it since the fence began \(timestamp 54"):
        node.free_host(2, 1, *known)
    assert area.read_host(2).timestamp == 54


def test_setting_a_host_free_changes_its_timestamp_and_nothing_else(node, paths, area):
    _host(area, 2, events=b"\x01" * 100)
    _host(area, 3)
    before = Path(paths[0]).read_bytes()
    lease = area.read_host(2)
    node.free_host(2, 1, 50)
    after = Path(paths[0]).read_bytes()
    assert area.read_host(2) == replace(lease, timestamp=0)
    changed = {at for at, pair in enumerate(zip(before, after)) if pair[0] != pair[1]}
    assert changed <= set(range(512 + 152, 512 + 160)) | set(range(512 + 168, 512 + 172))


def test_a_system_without_a_thread_to_spare_has_not_asked_and_can_ask_later(monkeypatch):
    bounded = Bounded()

    def refuse(_thread):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as exhausted:
        exhausted.setattr(threading.Thread, "start", refuse)
        for _turn in range(MOST_HANGING + 1):
            with pytest.raises(NoAnswerError, match="was not asked to look: can't start new"):
                bounded.call("look", list, 1.0)
    assert bounded.call("look", list, 10.0) == []


STATUS = """daemon n1
    our_host_name=n1
    use_watchdog={used}
    version_str={version}
    version_num={version}
{more}p -1 helper
    our_host_name=wrong
"""


@pytest.fixture
def says(tmp_path, monkeypatch):
    """Return what makes a ``sanlock`` command that says something and ends with 0."""

    def make(text):
        program = tmp_path / "sanlock"
        (tmp_path / "said").write_text(text)
        program.write_text(f"#!/bin/sh\ncat {tmp_path}/said\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        return CommandDaemon(str(tmp_path))

    return make


@pytest.mark.parametrize(
    ("version", "said", "timeout"),
    [
        ("3.8.5", "", 60),
        ("3.8.5", "    watchdog_fire_timeout=10\n", 60),
        ("3.9.5", "    watchdog_fire_timeout=10\n", 10),
        ("3.9.5", "    watchdog_fire_timeout=30\n", 30),
        ("3.9.5", "    watchdog_fire_timeout=60\n", 60),
        ("3.9.5", "    watchdog_fire_timeout=?\n", 60),
        ("3.9.0", "", 60),
        ("4.0.0", "p -1 helper\n    watchdog_fire_timeout=10\n", 60),
    ],
)
def test_the_watchdog_timeout_is_what_the_running_daemon_has_and_sixty_in_doubt(
    says, version, said, timeout
):
    daemon = says(STATUS.format(used=1, version=version, more=said))
    assert daemon.status() == DaemonStatus(
        "n1", tuple(int(part) for part in version.split(".")), timeout
    )


@pytest.mark.parametrize(
    ("rest", "lost"),
    [
        ("s c1:1:/a:0\n    space_dead=0\n", False),
        ("s c1:1:/a:0\n    space_dead=1\ns c2:1:/b:0\n    space_dead=0\n", True),
        ("s c2:1:/a:0\n    space_dead=0\n", True),
        ("s c1:1:/a:0\n    list=spaces_rem\n", True),
    ],
)
def test_a_lockspace_is_lost_unless_the_daemon_says_that_it_is_not(says, rest, lost):
    daemon = says(STATUS.format(used=1, version="3.8.5", more="") + rest)
    assert daemon.has_lost("c1") is lost


@pytest.mark.parametrize(
    ("more", "rest", "seconds"),
    [
        ("    monotime=310\n", "s c1:1:/a:0\n    acquire_last_success=101\n", 209.0),
        ("    monotime=100\n", "s c1:1:/a:0\n    acquire_last_success=101\n", 0.0),
        ("    monotime=310\n", "s c1:1:/a:0\n    list=spaces_add\n", 0.0),
        ("    monotime=310\n", "s c1:1:/a:0\n    acquire_last_success=0\n", 0.0),
        ("    monotime=310\n", "s c2:1:/a:0\n    acquire_last_success=101\n", 0.0),
        ("", "s c1:1:/a:0\n    acquire_last_success=101\n", 0.0),
    ],
)
def test_how_long_the_daemon_has_had_its_lease_is_counted_by_its_clock(says, more, rest, seconds):
    daemon = says(STATUS.format(used=1, version="3.9.5", more=more) + rest)
    assert daemon.held_for("c1") == seconds


@pytest.mark.parametrize(
    ("program", "meaning"),
    [
        ("#!/nonexistent\n", "cannot be asked"),
        ("#!/bin/sh\necho our_host_name=n1; kill -9 $$\n", "before it had answered"),
    ],
)
def test_a_question_that_was_not_put_or_broken_off_says_nothing_of_the_lease(
    says, tmp_path, program, meaning
):
    daemon = says("")
    (tmp_path / "sanlock").write_text(program)
    with pytest.raises(NoAnswerError, match=meaning):
        daemon.has_lost("c1")


def test_a_daemon_without_a_watchdog_has_no_watchdog_timeout(says):
    daemon = says(STATUS.format(used=0, version="3.8.5", more=""))
    assert daemon.status().watchdog_timeout is None


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("set_config c1 1\nset_config done -28\n", "has not joined"),
        ("", "does not answer"),
        ("garbage", "does not answer"),
    ],
)
def test_a_command_that_ends_with_0_has_done_nothing_unless_it_says_so(says, text, meaning):
    with pytest.raises(LeaseError, match=meaning):
        says(text).set_used("c1", True)


def test_lockspaces_and_hosts_are_read_whatever_their_path_looks_like(says):
    daemon = says(
        "s c3:2:/dev/mapper/a:b:8388608 \n"
        "s other:7:/a:1 b/x:0 \n"
        "h 1 gen 1 timestamp 1 DEAD\n"
        "s c1:1:/srv/c1.lockspace:0 ADD\n"
        "h 1 gen 3 timestamp 100 LIVE\n"
        "h 2 gen 4 timestamp 0 FREE\n"
        "h 3 gen 5 timestamp 9 UNKNOWN\n"
    )
    assert daemon.lockspaces() == [
        Joined(Lockspace("c3", 2, "/dev/mapper/a:b", 8 << 20), False),
        Joined(Lockspace("other", 7, "/a:1 b/x"), False),
        Joined(Lockspace("c1", 1, "/srv/c1.lockspace"), True),
    ]
    assert daemon.hosts("c1") == {
        1: HostStatus(3, 100, HostState.LIVE),
        2: HostStatus(4, 0, HostState.FREE),
        3: HostStatus(5, 9, None),
    }
    assert daemon.hosts("c2") == {}


def test_calls_that_hang_are_left_behind_and_no_more_are_begun():
    bounded, stuck = Bounded(), threading.Event()
    for _turn in range(MOST_HANGING):
        with pytest.raises(LeaseError, match=r"did not hang within 0 s"):
            bounded.call("hang", lambda: stuck.wait(10.0), 0.01)
    with pytest.raises(LeaseError, match="does not answer for some time already"):
        bounded.call("hang", stuck.wait, 0.01)
    stuck.set()


def test_a_host_lease_with_a_message_is_still_a_host_lease(area, node):
    node.join("n1")
    bit = (1).to_bytes(1, "little")
    numbers = b"".join(value.to_bytes(8, "little") for value in (1, 7, 9))
    _host(area, 2, events=numbers.ljust(80, b"\0") + bit)
    assert isinstance(area.read_host(2), DeltaLease)


def test_a_lockspace_that_sanlock_has_lost_is_not_adopted_and_can_be_let_go_without_it(
    node, daemon, area
):
    _host(area, 1, timestamp=1000)
    daemon.joined = [Joined(Lockspace("c1", 1, area.path), False)]
    daemon.lost = True
    with pytest.raises(
        LeaseError, match="sanlock has lost lockspace c1 on host id 1; join it again"
    ):
        node.adopt("n1")
    assert daemon.used is None, "called used, sanlock would keep it"
    node.disarm_watchdog()
    assert daemon.used is False


@pytest.mark.parametrize(
    ("own_age", "told", "active"),
    [
        (2 * N, 49, True),
        (2 * N, 50, True),
        (4 * N, 49, None),
        (2 * N, 51, None),
    ],
    ids=["renewed since", "unchanged since", "sanlock looked long ago", "older than sanlock saw"],
)
def test_a_single_look_tells_that_a_host_lives_if_sanlock_looked_lately(
    node, daemon, area, clock, own_age, told, active
):
    """As one who only wants to know the state of the cluster looks."""
    _host(area, 1, timestamp=int(clock()) - own_age)
    _host(area, 2, timestamp=50)
    daemon.known = {2: HostStatus(1, told, HostState.LIVE)}
    assert node.host(2).active is active


@pytest.mark.parametrize(
    ("held", "active"),
    [(0.0, None), (8 * N, None), (10 * N + 2, None), (10 * N + 3, True)],
    ids=["not known", "as long as a lease lives", "and until its first look", "longer"],
)
def test_a_host_that_sanlock_calls_live_may_be_one_that_it_never_saw_renew(
    node, daemon, area, clock, held, active
):
    """After all nodes lost their power, the first one that was back saw the last manager live."""
    _host(area, 1, timestamp=int(clock()) - 2 * N)
    _host(area, 2, timestamp=50)
    daemon.known = {2: HostStatus(1, 50, HostState.LIVE)}
    daemon.held = held
    assert node.host(2).active is active


def test_sanlock_is_asked_once_how_long_it_has_looked_however_many_hosts_there_are(
    node, daemon, area, clock
):
    """Each question starts a process: a status of 200 nodes would start 200."""
    _host(area, 1, timestamp=int(clock()) - 2 * N)
    for host_id in range(2, 10):
        _host(area, host_id, timestamp=50)
    daemon.known = {one: HostStatus(1, 50, HostState.LIVE) for one in range(2, 10)}
    assert [view.active for host_id, view in node.hosts().items() if host_id in daemon.known] == [
        True
    ] * 8
    assert daemon.asked_how_long == 1


HISTORY = """\
timestamp=41604 read_ms=0 write_ms=0 next_timeouts=0 next_errors=0
timestamp=41609 read_ms=1503 write_ms=4 next_timeouts=2 next_errors=1
timestamp=41613 read_ms=5 write_ms=1 next_timeouts=0 next_errors=0
"""


def test_the_last_the_slowest_and_the_failures_are_told():
    assert parse_renewals(HISTORY) == Renewals(0.006, 1.507, 3)


def test_a_line_without_failures_is_that_of_an_older_sanlock():
    assert parse_renewals("timestamp=1 read_ms=2 write_ms=3\n") == Renewals(0.005, 0.005, 0)


@pytest.mark.parametrize("text", ["", "renewal error -2\n", "no such lockspace"])
def test_what_is_no_history_says_nothing(text):
    assert parse_renewals(text) is None


def stand_in(folder: Path, monkeypatch, script: str) -> None:
    (folder / "sanlock").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "sanlock").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_the_daemon_of_the_node_is_asked_for_its_lockspace(tmp_path, monkeypatch):
    line = 'echo "$SANLOCK_RUN_DIR $*" >"$0.asked"; echo "timestamp=1 read_ms=2 write_ms=3"'
    stand_in(tmp_path, monkeypatch, line)
    assert read_renewals("rack1", "/run/one") == Renewals(0.005, 0.005, 0)
    assert (tmp_path / "sanlock.asked").read_text() == "/run/one client renewal -s rack1\n"


def test_a_sanlock_that_fails_or_is_not_there_says_nothing(tmp_path, monkeypatch):
    stand_in(tmp_path, monkeypatch, 'echo "timestamp=1 read_ms=2 write_ms=3"; exit 1')
    assert read_renewals("rack1") is None
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert read_renewals("rack1") is None
