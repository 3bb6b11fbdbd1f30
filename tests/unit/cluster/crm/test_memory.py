# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a CRM keeps from turn to turn."""

from __future__ import annotations

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.effects import (
    HostLease,
    ReadHostLease,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.memory import (
    CrmSettings,
    start_crm,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    FenceReport,
    Timing,
)


def test_a_node_does_not_wait_to_join_for_a_fence_whose_end_was_dropped() -> None:
    crm = start_crm(CrmSettings("n1", {"n1": 1, "n2": 2}, Timing(), lease_silence=8.0))
    begins = crm.freed_leases.fence_begins("n2", 2)
    assert isinstance(next(begins), ReadHostLease)
    try:
        begins.send(HostLease(2, 7, 100, False))
    except StopIteration:
        pass
    crm.freed_leases.recorded = crm.freed_leases.to_record_with("n2")
    assert crm.freed_leases.to_record() == {"n2": 7}
    crm.fences.append(FenceReport("n2", True, "its device reports off", 1000.0, 1001.0))
    crm.drop_ends()
    assert crm.freed_leases.to_record() == {}
