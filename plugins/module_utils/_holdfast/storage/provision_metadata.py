# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whiteboard and records of a cluster, from nothing to wanted and back.

Whether they may be replaced or removed is for the lockspace beside them to say.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import FormatError, InputError
from ..names import MAX_HOST_ID
from .paths import ClusterPaths
from .provision import Plan, Step, check_folder, exists, make, refuse_users
from .provision_lockspace import LockspaceFound, look_lockspace, refuse_use
from .records import Geometry, RecordFile
from .whiteboard import GlobalBlock, Whiteboard
from .whole_file import remove

DEFAULT_MAX_HOSTS = 64


@dataclass(frozen=True)
class MetadataWanted:
    """What the operator wants of whiteboard and records; None leaves a thing as it is."""

    name: str
    present: bool = True
    max_hosts: int | None = None
    maintenance: bool | None = None
    force: bool = False


@dataclass(frozen=True)
class MetadataFound:
    """What there is; ``maintenance`` is None when the global block is damaged."""

    board_hosts: int | None = None
    board_problem: str = ""
    maintenance: bool | None = False
    geometry: Geometry | None = None
    state_problem: str = ""
    lockspace: LockspaceFound = field(default_factory=LockspaceFound)


def look_metadata(paths: ClusterPaths) -> MetadataFound:
    """Return what there is of whiteboard, records and the lockspace beside them."""
    board_hosts, board_problem, maintenance = _look_whiteboard(paths.metadata)
    geometry = None
    state_problem = ""
    if exists(paths.state):
        with RecordFile(paths.state) as records:
            try:
                geometry = records.geometry()
            except FormatError as error:
                state_problem = str(error)
    return MetadataFound(
        board_hosts, board_problem, maintenance, geometry, state_problem, look_lockspace(paths)
    )


def plan_metadata(wanted: MetadataWanted, found: MetadataFound, paths: ClusterPaths) -> Plan:
    """Return the steps to the wanted whiteboard and records.

    Raises ``StorageError`` for a file of another format or cluster in the way and
    ``LeaseError`` when files in use would go, unless forced; ``InputError`` for a
    number of hosts out of range or other than that of files which exist.
    """
    before = _state(found, paths)
    if not wanted.present:
        return _removal(wanted, found, paths)
    max_hosts = _max_hosts(wanted, found)
    steps: list[Step] = []
    if found.board_hosts is None:
        steps.append(make(paths.metadata, found.board_problem, wanted.force))
    state_problem = found.state_problem
    if found.geometry is not None and found.geometry.cluster != wanted.name:
        state_problem = f"{paths.state} belongs to cluster {found.geometry.cluster}"
    if found.geometry is None or state_problem:
        steps.append(make(paths.state, state_problem, wanted.force))
    if any(step.action == "replace" for step in steps):
        refuse_users(wanted.force, found.lockspace.users, "made anew", paths)
    maintenance = found.maintenance if found.board_hosts is not None else False
    if wanted.maintenance is not None and wanted.maintenance != maintenance:
        steps.append(Step("set-maintenance", paths.metadata))
        maintenance = wanted.maintenance
    after = {
        "metadata": {"path": paths.metadata, "max_hosts": found.board_hosts or max_hosts},
        "state": {"path": paths.state, "cluster": wanted.name, "max_hosts": max_hosts},
        "maintenance": maintenance,
    }
    return Plan(before, after, tuple(steps))


def apply_metadata(plan: Plan, wanted: MetadataWanted, paths: ClusterPaths) -> bool:
    """Take the steps of *plan*; return whether any of them changed something."""
    check_folder(plan, paths)
    changed = False
    for step in plan.steps:
        replace = step.action == "replace"
        if step.action == "remove":
            changed |= remove(step.path)
        elif step.action == "set-maintenance":
            with Whiteboard(paths.metadata) as whiteboard:
                whiteboard.write_global(GlobalBlock(bool(wanted.maintenance)))
            changed = True
        elif step.path == paths.metadata:
            number = _planned_number(plan, "metadata")
            changed |= Whiteboard(step.path).create(number, replace=replace)
        else:
            number = _planned_number(plan, "state")
            changed |= RecordFile(step.path).create(wanted.name, number, replace=replace)
    return changed


def _look_whiteboard(path: str) -> tuple[int | None, str, bool | None]:
    """Return number of hosts, problem and maintenance of the whiteboard at *path*."""
    if not exists(path):
        return None, "", False
    with Whiteboard(path) as whiteboard:
        try:
            number = whiteboard.max_hosts()
        except FormatError as error:
            return None, str(error), False
        try:
            return number, "", whiteboard.read_global().maintenance
        except FormatError:
            return number, "", None


def _removal(wanted: MetadataWanted, found: MetadataFound, paths: ClusterPaths) -> Plan:
    """Return the plan that removes what there is."""
    steps = []
    if found.board_hosts is not None or found.board_problem:
        steps.append(Step("remove", paths.metadata))
    if found.geometry is not None or found.state_problem:
        steps.append(Step("remove", paths.state))
    if steps:
        refuse_use(wanted.force, found.lockspace, "removed", paths)
    return Plan(_state(found, paths), {}, tuple(steps))


def _state(found: MetadataFound, paths: ClusterPaths) -> dict[str, object]:
    """Return whiteboard and records as they are, as plain data."""
    state: dict[str, object] = {}
    if found.board_hosts is not None:
        state["metadata"] = {"path": paths.metadata, "max_hosts": found.board_hosts}
        state["maintenance"] = found.maintenance
    elif found.board_problem:
        state["metadata"] = {"path": paths.metadata, "problem": found.board_problem}
    if found.geometry is not None:
        state["state"] = {
            "path": paths.state,
            "cluster": found.geometry.cluster,
            "max_hosts": found.geometry.max_hosts,
        }
    elif found.state_problem:
        state["state"] = {"path": paths.state, "problem": found.state_problem}
    return state


def _max_hosts(wanted: MetadataWanted, found: MetadataFound) -> int:
    """Return for how many hosts the records are or will be.

    The number of existing files is not changed.  A whiteboard without records, as
    hosted engine leaves it, may have blocks for more hosts than the records.
    """
    recorded = found.geometry.max_hosts if found.geometry is not None else None
    number = wanted.max_hosts
    if number is None:
        return recorded or found.board_hosts or DEFAULT_MAX_HOSTS
    if not 1 <= number <= MAX_HOST_ID:
        raise InputError("max_hosts", number, f"a number from 1 to {MAX_HOST_ID}")
    if recorded is not None and recorded != number:
        raise InputError("max_hosts", number, f"{recorded}, as the existing files have it")
    if found.board_hosts is not None and found.board_hosts < number:
        raise InputError(
            "max_hosts", number, f"at most {found.board_hosts}, as the existing whiteboard has it"
        )
    return number


def _planned_number(plan: Plan, what: str) -> int:
    """Return the number of hosts that *plan* has for one file."""
    state = plan.after[what]
    return int(state["max_hosts"]) if isinstance(state, dict) else DEFAULT_MAX_HOSTS
