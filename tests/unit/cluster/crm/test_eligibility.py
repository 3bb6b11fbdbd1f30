# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which node may be manager by its membership, and when a new membership is recorded."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.eligibility import (
    Hosts,
    why_not_manager,
    with_membership,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired_codec import (  # noqa: E501
    desired_document,
    desired_from_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.membership import (  # noqa: E501
    Acceptance,
    Place,
    acceptance_document,
    acceptance_from_document,
    differences,
    make_membership,
    membership_document,
    membership_from_document,
    with_version,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    HostView,
    LeaseSight,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    NodeState,
    NodeStatus,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state_codec import (  # noqa: E501
    state_document,
    state_from_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import verified_off

SUSPECT_AFTER = 3.0
PLACES = {f"n{number}": Place(number, f"10.0.0.{number}", 7410) for number in range(1, 7)}


def of(*names, fence="f", **places):
    """Return the membership of these nodes."""
    return make_membership({**{name: PLACES[name] for name in names}, **places}, fence)


OLD = of("n1", "n2", "n3")
ADDED = of("n1", "n2", "n3", "n4")
REMOVED = of("n1", "n2")
RENAMED = of("n1", "n2", n5=PLACES["n3"])
REFENCED = of("n1", "n2", "n3", fence="g")
MOVED_ID = of("n1", "n2", n3=Place(9, "10.0.0.3", 7410))
MOVED = of("n1", "n2", n3=Place(3, "10.0.0.33", 7410))

STATE = ClusterState(
    epoch=4,
    manager="n2",
    nodes={name: NodeStatus(NodeState.ONLINE) for name in ("n1", "n2", "n3")},
    membership=with_version(OLD, 7),
)


def runs(name, membership=None):
    return HostView(name, 0.5, True, digest=membership.digest if membership is not None else "")


def silent(name, lease=LeaseSight.FAILED):
    return HostView(name, 60.0, False, lease)


def on(service, node, state=ServiceState.STARTED):
    return replace(STATE, services={service: ServiceStatus(state, node)})


def off(node):
    return STATE.with_node(node, NodeStatus(NodeState.OFF, proof=verified_off("level 1")))


def views(**changes):
    """Return what is seen of n1, n2 and n3, by host id, from *changes* by node name."""
    return {PLACES[name].host_id: view for name, view in changes.items()}


def every(membership):
    return views(n1=runs("n1", membership), n2=runs("n2", membership), n3=runs("n3", membership))


def why(state, own, observed, acceptance=None):
    return why_not_manager(state, own, Hosts(observed, SUSPECT_AFTER), acceptance)


@pytest.mark.parametrize(
    ("own", "text"),
    [
        (OLD, ""),
        (of("n1", "n3"), "it lacks n2"),
        (ADDED, "it has n4"),
        (RENAMED, "it lacks n3; it has n5"),
        (REFENCED, "other fence settings"),
        (MOVED_ID, "other host id of n3"),
        (MOVED, "other address of n3"),
        (of("n1", "n4", fence="g"), "it lacks n2, n3; it has n4; other fence settings"),
        (replace(OLD, digest="x"), "it was computed by another version"),
    ],
)
def test_a_difference_is_told_in_words(own, text):
    assert differences(own, with_version(OLD, 7)) == text


def test_many_names_are_cut_short():
    many = make_membership({f"m{n:02}": Place(n) for n in range(1, 10)}, "")
    assert differences(make_membership({}, ""), many) == (
        "it lacks m01, m02, m03, m04, m05 and 4 more"
    )


@pytest.mark.parametrize(
    ("state", "own", "observed", "obstacle"),
    [
        # The recorded membership: whatever else is seen.
        (STATE, OLD, {}, ""),
        # All that run have changed.
        (STATE, ADDED, every(ADDED), ""),
        (STATE, REFENCED, every(REFENCED), ""),
        (STATE, MOVED, every(MOVED), ""),
        # One that runs has not, or is of a version that does not report one.
        (STATE, ADDED, {**every(ADDED), 2: runs("n2", OLD)}, "n2 runs with another membership"),
        (STATE, ADDED, {**every(ADDED), 2: runs("n2")}, "n2 did not report one"),
        # A silent one that stays does not matter while none is removed.
        (STATE, ADDED, {**every(ADDED), 2: silent("n2")}, ""),
        (on("web", "n2"), REFENCED, {**every(REFENCED), 2: silent("n2")}, ""),
        (
            STATE,
            ADDED,
            {**every(ADDED), 2: HostView("n2", 1.0, False)},
            "the heartbeat of n2 is being watched",
        ),
        # It matters where another is removed.
        (
            STATE,
            REMOVED,
            views(n1=runs("n1", REMOVED), n2=silent("n2"), n3=silent("n3", LeaseSight.FREE)),
            "n2 is silent, but its host lease is failed: it may run",
        ),
        (
            on("web", "n2"),
            REMOVED,
            views(n1=runs("n1", REMOVED), n2=silent("n2"), n3=silent("n3", LeaseSight.FREE)),
            "n2 is silent and has web in the manager's record",
        ),
        (
            off("n2"),
            REMOVED,
            views(n1=runs("n1", REMOVED), n2=silent("n2"), n3=silent("n3", LeaseSight.FREE)),
            "",
        ),
        # A removed node has no service, and does not run.
        (
            on("web", "n3"),
            REMOVED,
            {**every(REMOVED), 3: silent("n3", LeaseSight.FREE)},
            "n3 has web in the manager's record: drain it first",
        ),
        (
            on("web", "n3", ServiceState.ERROR),
            REMOVED,
            {**every(REMOVED), 3: silent("n3", LeaseSight.FREE)},
            "n3 has web in the manager's record: drain it first",
        ),
        (STATE, REMOVED, {**every(REMOVED), 3: runs("n3", OLD)}, "host id 3 still runs as n3"),
        (STATE, REMOVED, {**every(REMOVED), 3: runs("")}, "host id 3 still runs as n3"),
        (
            STATE,
            REMOVED,
            {**every(REMOVED), 3: HostView("n3", 1.0, False)},
            "the heartbeat of n3 is being watched",
        ),
        (
            STATE,
            REMOVED,
            {**every(REMOVED), 3: silent("n3")},
            "n3 is silent, but its host lease is failed: it may run",
        ),
        (STATE, REMOVED, {**every(REMOVED), 3: silent("n3", LeaseSight.FREE)}, ""),
        (STATE, REMOVED, {**every(REMOVED), 3: silent("n3", LeaseSight.DEAD)}, ""),
        (off("n3"), REMOVED, {**every(REMOVED), 3: silent("n3")}, ""),
        # A renamed node runs under its new name, with no service under the old one.
        (STATE, RENAMED, {**every(RENAMED), 3: runs("n5", RENAMED)}, ""),
        (STATE, RENAMED, {**every(RENAMED), 3: runs("n3", OLD)}, "host id 3 still runs as n3"),
        (
            on("web", "n3"),
            RENAMED,
            {**every(RENAMED), 3: runs("n5", RENAMED)},
            "n3 has web in the manager's record: drain it first",
        ),
        # A node with another host id counts as removed and added.
        (STATE, MOVED_ID, {**every(MOVED_ID), 3: runs("n3")}, "host id 3 still runs as n3"),
        (STATE, MOVED_ID, {**every(MOVED_ID), 3: silent("n3", LeaseSight.FREE)}, ""),
        # Nothing was recorded: an upgrade, or a new cluster.
        (ClusterState(), OLD, {}, ""),
        (replace(STATE, membership=None), OLD, {}, ""),
        (
            replace(STATE, membership=None),
            REMOVED,
            {},
            "it lacks n3, which is online in the manager's record",
        ),
        (
            replace(on("web", "n3"), membership=None),
            REMOVED,
            {},
            "it lacks n3, which has web in the manager's record",
        ),
        (ClusterState(), REMOVED, {3: runs("n3")}, "it lacks host id 3 (n3), which runs"),
        (
            ClusterState(),
            REMOVED,
            {3: HostView("n3", 1.0)},
            "it lacks host id 3, whose heartbeat is being watched",
        ),
        (ClusterState(), REMOVED, {3: silent("n3")}, ""),
    ],
)
def test_who_may_be_manager(state, own, observed, obstacle):
    found = why(state, own, observed)
    assert found.endswith(obstacle)
    assert bool(found) == bool(obstacle)


@pytest.mark.parametrize(
    ("state", "own", "observed", "obstacle"),
    [
        (STATE, ADDED, {**every(ADDED), 2: runs("n2", OLD)}, ""),
        (STATE, REMOVED, {**every(REMOVED), 2: silent("n2"), 3: silent("n3")}, ""),
        (
            on("web", "n3"),
            REMOVED,
            {**every(REMOVED), 3: silent("n3")},
            "n3 has web in the manager's record: drain it first",
        ),
        (STATE, REMOVED, {**every(REMOVED), 3: runs("n3", OLD)}, "host id 3 still runs as n3"),
    ],
)
def test_an_acceptance_replaces_consent_but_not_the_rules_about_services(
    state, own, observed, obstacle
):
    assert why(state, own, observed, Acceptance(own.digest, 7)).endswith(obstacle)
    assert bool(why(state, own, observed, Acceptance(own.digest, 7))) == bool(obstacle)
    assert why(state, own, observed, Acceptance(own.digest, 6)), "it was for another version"
    assert why(state, own, observed, Acceptance(OLD.digest, 7)), "it was for another membership"


def test_an_adoption_is_the_next_version_and_an_event():
    taken = with_membership(STATE, ADDED, 1000.0)
    assert taken.membership == with_version(ADDED, 8)
    event = taken.events[-1]
    assert (event.kind, event.node) == ("membership", "n2")
    assert "version 8 with 4 nodes" in event.text
    assert "it has n4" in event.text
    assert with_membership(taken, ADDED, 1001.0) is taken
    assert with_membership(ClusterState(), OLD, 1.0).membership == with_version(OLD, 1)


def test_records_are_read_back_and_older_ones_have_none():
    state = replace(STATE, foreign_hosts={"9": "n9"})
    assert state_from_document(state_document(state)) == state
    old = {key: one for key, one in state_document(STATE).items() if key != "membership"}
    assert state_from_document(old).membership is None
    assert "membership" not in state_document(ClusterState())
    later = {**membership_document(OLD), "not known": 1}
    assert membership_from_document(later) == OLD
    acceptance = Acceptance(OLD.digest, 7, Maintenance("why", "who", 1.0))
    assert acceptance_from_document(acceptance_document(acceptance)) == acceptance
    desired = DesiredState(membership=acceptance)
    assert desired_from_document(desired_document(desired)) == desired
    assert "membership" not in desired_document(DesiredState())


def test_the_digest_covers_every_part():
    found = {one.digest for one in (OLD, ADDED, REMOVED, RENAMED, REFENCED, MOVED_ID, MOVED)}
    assert len(found) == 7
    assert of("n3", "n1", "n2").digest == OLD.digest
