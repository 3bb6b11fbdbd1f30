# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manager records the membership, and a node with another one does not manage."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.eligibility import (
    RESIGN_AFTER,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.membership import (  # noqa: E501
    Acceptance,
    Place,
    make_membership,
    with_version,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    HostView,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.interface import (
    LeaseHolder,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.own_membership import (  # noqa: E501
    OwnMembership,
)
from ansible_collections.holdfast.ha.tests.unit.node.crm.crm_daemon import (
    EPOCH,
    kinds,
    silent,
)


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
