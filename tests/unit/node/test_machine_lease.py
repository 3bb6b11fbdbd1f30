# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps a machine's host lease: only one that surely runs nothing gives it back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    HostState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    InputError,
    LeaseError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_storage import (
    make_leases,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import (
    SANLOCK,
    SanlockSettings,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.machine import (
    machine as machine_lease,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.machine.machine import (
    take_machine_lease,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import (
    configuration,
    create_storage,
)


@pytest.fixture
def node(tmp_path):
    create_storage(tmp_path)
    return configuration(tmp_path)


@pytest.fixture
def log(monkeypatch):
    """What is done with sanlock, of which no process is started."""
    done = []

    class Child:
        pid = 4711

    def start(run_directory, host_name):
        done.append(("start", run_directory, host_name))
        return Child()

    monkeypatch.setattr(machine_lease, "start_daemon", start)
    monkeypatch.setattr(machine_lease, "await_daemon", lambda _run_directory: done.append("up"))
    monkeypatch.setattr(machine_lease, "_answers", lambda _daemon: "runs" in done)
    monkeypatch.setattr(machine_lease, "leave_cluster", lambda _node: done.append("leave"))
    return done


def on_sanlock(node, tmp_path):
    settings = SanlockSettings(2, 0, str(tmp_path / "run"))
    return replace(node, backend=SANLOCK, sanlock=settings)


def test_an_embedded_machine_gives_its_host_lease_back_after_all_else_was_ended(node):
    lease = take_machine_lease(node)
    looker = make_leases(node)
    states = []
    lease.switch_off(lambda: states.append(looker.host(1).state))
    states.append(looker.host(1).state)
    assert states == [HostState.LIVE, HostState.FREE]
    looker.close()


def test_a_machine_starts_its_sanlock_under_the_nodes_name(node, tmp_path, log):
    lease = take_machine_lease(on_sanlock(node, tmp_path))
    assert log == [("start", str(tmp_path / "run"), "n1"), "up"]
    lease.renew()
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700


def test_a_machine_leaves_while_its_sanlock_still_runs(node, tmp_path, log):
    lease = take_machine_lease(on_sanlock(node, tmp_path))
    lease.switch_off(lambda: log.append("off"))
    assert log[2:] == ["leave", "off"]


def test_a_machine_that_may_not_leave_is_switched_off_all_the_same(
    node, tmp_path, log, monkeypatch, capsys
):
    def refuse(_node):
        raise LeaseError("web may still run here")

    lease = take_machine_lease(on_sanlock(node, tmp_path))
    monkeypatch.setattr(machine_lease, "leave_cluster", refuse)
    lease.switch_off(lambda: log.append("off"))
    assert log[2:] == ["off"]
    assert "the host lease is not given back: web may still run here" in capsys.readouterr().err


def test_a_machine_needs_a_sanlock_to_itself(node, tmp_path, log):
    with pytest.raises(InputError, match=r"sanlock\.run_directory"):
        take_machine_lease(replace(node, backend=SANLOCK))
    log.append("runs")
    with pytest.raises(LeaseError, match="Another sanlock runs in"):
        take_machine_lease(on_sanlock(node, tmp_path))
    assert log == ["runs"]
