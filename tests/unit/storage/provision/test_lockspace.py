# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Between plan and act the world may change: a node joins, another playbook was faster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import LeaseError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.kernel_lock import (
    KernelLock,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.delta_lease import (  # noqa: E501
    DeltaLease,
    LeaseArea,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.provision.lockspace import (  # noqa: E501
    DesiredLockspace,
    apply_lockspace,
    look_lockspace,
    plan_lockspace,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whole_file import (
    cluster_paths,
)

WANTED = DesiredLockspace("c1")


@pytest.fixture
def paths(tmp_path):
    existing = cluster_paths(str(tmp_path), "c1")
    apply_lockspace(plan(WANTED, existing), WANTED, existing)
    return existing


def plan(desired, paths):
    return plan_lockspace(desired, look_lockspace(paths), paths)


def content(paths):
    return {path.name: path.read_bytes() for path in Path(paths.folder).iterdir()}


@pytest.mark.parametrize("change", [{"present": False}, {"io_timeout": 9}])
def test_a_node_that_joined_after_the_plan_keeps_its_lockspace(paths, change):
    desired = replace(WANTED, **change)
    made = plan(desired, paths)
    with LeaseArea(paths.lockspace) as area:
        area.write_host(5, DeltaLease("c1", 5, "n5", 1, 77, 2))
    before = content(paths)
    with pytest.raises(LeaseError, match=r"node n5 \(host id 5\)"):
        apply_lockspace(made, desired, paths)
    assert content(paths) == before


@pytest.mark.parametrize("change", [{"present": False}, {"io_timeout": 9}])
def test_a_node_that_is_just_joining_keeps_its_lockspace(paths, change):
    desired = replace(WANTED, **change)
    made = plan(desired, paths)
    joining = KernelLock(paths.lockspace, 4 * 512, 512)
    joining.take()
    before = content(paths)
    with pytest.raises(LeaseError, match="locks host id 5"):
        apply_lockspace(made, desired, paths)
    assert content(paths) == before
    joining.release()


def test_nobody_can_join_a_lockspace_while_it_is_removed(paths, monkeypatch):
    desired = replace(WANTED, present=False)
    made = plan(desired, paths)
    tried = []
    real = Path.unlink

    def joining(path, *rest, **more):
        if path.name == "c1.lockspace":
            tried.append(KernelLock(paths.lockspace, 0, 512).take())
        return real(path, *rest, **more)

    monkeypatch.setattr(Path, "unlink", joining)
    assert apply_lockspace(made, desired, paths)
    assert tried == [False]
    assert content(paths) == {}


def test_of_two_playbooks_that_create_the_second_changes_nothing(tmp_path):
    paths = cluster_paths(str(tmp_path), "c1")
    first, second = plan(WANTED, paths), plan(WANTED, paths)
    assert apply_lockspace(first, WANTED, paths)
    with LeaseArea(paths.lockspace) as area:
        area.write_host(5, DeltaLease("c1", 5, "n5", 1, 77, 2))
    before = content(paths)
    assert not apply_lockspace(second, WANTED, paths)
    assert content(paths) == before


def test_a_damaged_host_lease_may_be_one_in_use(paths):
    with Path(paths.lockspace).open("r+b") as file:
        file.seek(9 * 512 + 40)
        file.write(b"\xff")
    with pytest.raises(LeaseError, match="perhaps host id 10"):
        plan(replace(WANTED, present=False), paths)
    assert plan(WANTED, paths).steps == ()
