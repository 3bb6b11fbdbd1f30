# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the host lease of a node that was fenced is set free, and when it is not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    FenceReport,
    HostState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    FormatError,
    LeaseError,
    StorageError,
)
from ansible_collections.holdfast.ha.tests.unit.node.played import PlayedFreedLeases
from ansible_collections.holdfast.ha.tests.unit.node.stand_ins import LeasesStandIn, lease_view

SILENCE = 2 * 5 + 5
"""An I/O timeout of 5 s: renewed each 10 s, and 5 s for a slow write."""

PROOF = FenceReport("n3", True, "off", 10.0, 12.0)


@dataclass
class Case:
    """A fence of n3 (host id 3, lease timestamp 77) and its time."""

    log: list[Any] = field(default_factory=list)
    now: float = 100.0

    def __post_init__(self) -> None:
        self.leases = LeasesStandIn(self.log)
        self.freed = PlayedFreedLeases(self.leases, SILENCE, lambda: self.now)
        self.freed.fence_begins("n3", 3)
        self.freed.rules.recorded = {"n3": 4}

    def renewed(self, timestamp: int) -> None:
        """Let the node have renewed its lease; freeing by an older timestamp is refused then."""
        self.leases.views[3] = lease_view(3, timestamp=timestamp)
        self.leases.free_error = LeaseError("it renewed its host lease since.")

    def watch(self, seconds: float) -> list[Any]:
        """Look again that much later; return what was freed."""
        self.log.clear()
        self.now += seconds
        self.freed.watch()
        return list(self.log)


@pytest.fixture
def case() -> Case:
    return Case()


@pytest.mark.parametrize(
    "changes",
    [{"confirmed": False}, {"verified": False}, {"quiet": False}],
    ids=["not confirmed", "only assumed", "wrote something since"],
)
def test_nothing_less_than_a_devices_word_on_a_silent_node_sets_anything_free(case, changes):
    case.freed.fence_ended(replace(PROOF, **changes))
    assert case.log == []
    assert case.watch(1000) == []


def test_a_proof_of_a_fence_that_was_not_sent_from_here_sets_nothing_free(case):
    case.freed.fence_ended(replace(PROOF, node="n2"))
    assert case.log == []


def test_a_lease_that_did_not_change_since_the_fence_was_sent_is_freed_on_the_proof(case):
    case.freed.fence_ended(PROOF)
    assert case.log == [("free", 3, 4, 77)]
    assert case.watch(1000) == []


def test_a_lease_renewed_before_the_power_went_is_freed_after_a_renewals_silence(case, capsys):
    case.renewed(79)
    case.freed.fence_ended(PROOF)
    case.leases.free_error = None
    assert case.watch(1) == []
    assert "was renewed after its fence was sent" in capsys.readouterr().err
    assert case.watch(SILENCE - 0.5) == []
    assert case.watch(0.5) == [("free", 3, 4, 79)]
    assert case.watch(1000) == []


def test_a_node_that_goes_on_renewing_was_not_switched_off_and_keeps_its_lease(case, capsys):
    case.renewed(79)
    case.freed.fence_ended(PROOF)
    case.leases.free_error = None
    for timestamp in range(80, 180, 10):
        case.leases.views[3] = lease_view(3, timestamp=timestamp)
        assert case.watch(10) == []
    assert capsys.readouterr().err.count("has powered off another machine") == 1


@pytest.mark.parametrize(
    "changes",
    [{"generation": 5}, {"state": HostState.FREE}],
    ids=["joined again", "freed by another"],
)
def test_a_lease_of_another_generation_or_free_by_now_is_left_alone_for_good(case, changes):
    case.leases.free_error = LeaseError("not now.")
    case.freed.fence_ended(PROOF)
    case.leases.free_error = None
    case.leases.views[3] = lease_view(3, **changes)
    assert case.watch(1) == []
    case.leases.views[3] = lease_view(3)
    assert case.watch(1000) == []


def test_a_write_that_failed_is_tried_again_after_the_same_silence_not_each_round(case):
    case.leases.free_error = StorageError("it cannot be written.")
    case.freed.fence_ended(PROOF)
    assert case.watch(1) == []
    assert case.watch(SILENCE) == [("free", 3, 4, 77)]
    assert case.watch(1) == []
    case.leases.free_error = None
    assert case.watch(SILENCE) == [("free", 3, 4, 77)]
    assert case.watch(SILENCE) == []


def test_storage_that_cannot_be_read_frees_nothing_and_ends_nothing(case):
    case.renewed(79)
    case.freed.fence_ended(PROOF)
    case.leases.free_error = None
    case.leases.views[3] = StorageError("it cannot be read.")
    assert case.watch(1000) == []
    case.leases.views[3] = lease_view(3, timestamp=79)
    assert case.watch(0) == []
    assert case.watch(SILENCE) == [("free", 3, 4, 79)]


def test_a_node_whose_host_lease_is_damaged_is_fenced_all_the_same_and_nothing_set_free(case):
    case.leases.views[3] = FormatError("host lease of host id 3: its checksum is wrong.")
    case.freed.fence_begins("n3", 3)
    case.leases.views.clear()
    case.freed.fence_ended(PROOF)
    assert case.log == []


def test_a_fence_does_not_begin_while_the_storage_cannot_be_read(case):
    case.leases.views[3] = StorageError("it cannot be read.")
    with pytest.raises(StorageError):
        case.freed.fence_begins("n3", 3)
    case.leases.views.clear()
    case.freed.fence_ended(PROOF)
    assert case.log == [], "the lease may be another than before that fence"


def test_a_new_fence_of_the_node_begins_anew(case):
    case.renewed(79)
    case.freed.fence_ended(PROOF)
    case.leases.free_error = None
    case.watch(1)
    case.freed.fence_begins("n3", 3)
    assert case.watch(1000) == []
    case.freed.fence_ended(PROOF)
    assert case.log == [("free", 3, 4, 79)]
