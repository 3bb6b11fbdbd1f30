# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Creating and removing whiteboard and records of a cluster.

The lockspace beside them shows whether they may be replaced or removed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ...errors import FormatError, InputError, LeaseError
from ...names import MAX_HOST_ID, host_id, whole_number
from ..record_format import DEFAULT_COPY_BYTES, Geometry, Kind
from ..records import RecordFile
from ..whiteboard.block import (
    BLOCK_BYTES,
    GlobalBlock,
    check_block_bytes,
    decode_global,
    encode_global,
    without_padding,
)
from ..whiteboard.file import Whiteboard
from ..whiteboard.lint import (
    LEAVE,
    Repair,
    Sighting,
    apply_repair,
    host_guard,
    lint,
    look,
    look_twice,
    plan_block,
    plan_repair,
)
from ..whole_file import ClusterPaths, create, exists, remove
from .lockspace import ExistingLockspace, look_lockspace, refuse_use, refuse_users
from .plan import Plan, Step, check_folder, make
from .records import (
    ExistingRecords,
    check_layout,
    desired_layout,
    lay_out_anew,
    look_records,
    nobody_joins,
    other_owner,
    records_document,
    refuse_conversion,
)

DEFAULT_MAX_HOSTS = 64


@dataclass(frozen=True)
class DesiredMetadata:
    """The desired whiteboard and records; None leaves a value as it is.

    ``clear_host`` is the host id whose block shall be blank; ``watch`` is for how many seconds
    nodes are watched for signs of life before their blocks are touched; ``record_sizes`` is the
    bytes of a copy by kind.
    """

    name: str
    present: bool = True
    max_hosts: int | None = None
    maintenance: bool | None = None
    force: bool = False
    block_bytes: int | None = None
    clear_host: int | None = None
    repair: bool = False
    watch: float = 0.0
    record_sizes: Mapping[Kind, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ExistingMetadata:
    """What there is; ``maintenance`` is None when the global block is damaged.

    ``board_owner`` says that the whiteboard is another user's, if it is to be converted.

    ``observed`` is two looks at the nodes, if they had to be watched.  ``direct`` is False where
    the file system refuses direct I/O.  ``records`` is about a file whose records are to get
    another layout.
    """

    board_hosts: int | None = None
    board_problem: str = ""
    board_owner: str = ""
    maintenance: bool | None = False
    geometry: Geometry | None = None
    state_problem: str = ""
    lockspace: ExistingLockspace = field(default_factory=ExistingLockspace)
    block_bytes: int | None = None
    global_bytes: bytes = b""
    observed: Sighting | None = None
    direct: bool = True
    records: ExistingRecords = field(default_factory=ExistingRecords)


def look_metadata(
    paths: ClusterPaths,
    desired: DesiredMetadata | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> ExistingMetadata:
    """Return what there is of whiteboard, records and the lockspace beside them.

    Where a block is to be cleared or repaired, the nodes are watched for as long as *desired*
    says.
    """
    board = _look_whiteboard(paths, desired, sleep)
    geometry = None
    state_problem = ""
    records = ExistingRecords()
    if exists(paths.state):
        with RecordFile(paths.state) as file:
            try:
                geometry = file.geometry()
            except FormatError as error:
                state_problem = str(error)
        if geometry is not None and desired is not None and desired.present:
            layout = desired_layout(geometry, desired.record_sizes, desired.max_hosts)
            records = look_records(paths.state, geometry, layout)
    return replace(
        board,
        geometry=geometry,
        state_problem=state_problem,
        lockspace=look_lockspace(paths),
        records=records,
    )


def plan_metadata(
    desired: DesiredMetadata, existing: ExistingMetadata, paths: ClusterPaths
) -> Plan:
    """Return the steps to the desired whiteboard and records.

    Raises ``StorageError`` for a file of another format or cluster in the way, and
    ``LeaseError`` when files in use would be replaced, unless forced, or laid out again;
    ``InputError`` for a number of hosts out of range or smaller than that of existing files.
    """
    before = _state(existing, paths)
    if not desired.present:
        return _removal(desired, existing, paths)
    max_hosts = _max_hosts(desired, existing)
    _check_block_bytes(desired, existing)
    block_bytes = existing.block_bytes or desired.block_bytes or BLOCK_BYTES
    repairs = _repairs(desired, existing)
    steps = _file_steps(desired, existing, paths)
    records = _geometry(desired, existing, max_hosts, steps, paths)
    if records != existing.geometry and not any(step.path == paths.state for step in steps):
        steps.append(Step("lay-out-anew", paths.state))
    present = existing.maintenance if existing.board_hosts is not None else False
    maintenance = present if desired.maintenance is None else desired.maintenance
    changes: dict[int, tuple[bytes, bytes]] = {}
    if maintenance != present:
        # For the global block the operator's value counts, not that of a repair.
        repairs = [repair for repair in repairs if repair.host_id]
        steps.append(Step("set-maintenance", paths.metadata))
        block = GlobalBlock(bool(maintenance))
        changes[0] = (existing.global_bytes, encode_global(block, block_bytes))
    for repair in repairs:
        if repair.action != LEAVE:
            steps.append(Step("repair", paths.metadata, repair))
            changes[repair.host_id] = (repair.before, repair.after)
    if 0 in changes:
        maintenance = decode_global(changes[0][1]).maintenance
    after: dict[str, object] = {
        "metadata": {
            "path": paths.metadata,
            "max_hosts": max(existing.board_hosts or 0, max_hosts),
            "block_size": block_bytes,
        },
        "state": records_document(records, paths),
        "maintenance": maintenance,
    }
    if changes:
        before["blocks"] = {str(number): _shown(old) for number, (old, _new) in changes.items()}
        after["blocks"] = {str(number): _shown(new) for number, (_old, new) in changes.items()}
    warnings = tuple(
        f"{repair.problem}; it is left as it is: {repair.reason}."
        for repair in repairs
        if repair.action == LEAVE
    )
    sizes = {
        paths.metadata: (max_hosts + 1) * block_bytes,
        paths.state: records.size,
    }
    return Plan(before, after, tuple(steps), warnings, sizes)


def apply_metadata(plan: Plan, desired: DesiredMetadata, paths: ClusterPaths) -> bool:
    """Take the steps of *plan*; return whether any of them changed something.

    A step that another node took in the meantime is no change.
    """
    check_folder(plan, paths)
    changed = False
    for step in plan.steps:
        replaced = step.action == "replace"
        if step.action == "remove":
            changed |= remove(step.path)
        elif step.action == "set-maintenance":
            with Whiteboard(paths.metadata) as whiteboard:
                whiteboard.write_global(GlobalBlock(bool(desired.maintenance)))
            changed = True
        elif step.repair is not None:
            guard = None
            if not desired.force and exists(paths.lockspace):
                guard = host_guard(paths.lockspace)
            with Whiteboard(paths.metadata) as whiteboard:
                changed |= apply_repair(whiteboard, [step.repair], guard) > 0
        elif step.action == "grow":
            changed |= _grow(paths, _planned_number(plan, "metadata", "max_hosts", 0))
        elif step.path == paths.metadata:
            number = _planned_number(plan, "metadata", "max_hosts", DEFAULT_MAX_HOSTS)
            size = _planned_number(plan, "metadata", "block_size", BLOCK_BYTES)
            changed |= Whiteboard(step.path).create(number, replace=replaced, block_bytes=size)
        else:
            changed |= _apply_records(step, plan, desired, paths)
    return changed


def _apply_records(step: Step, plan: Plan, desired: DesiredMetadata, paths: ClusterPaths) -> bool:
    """Create the file of records, or change its sizes."""
    if step.action == "lay-out-anew":
        with RecordFile(paths.state) as file:
            present = file.geometry()
        return lay_out_anew(paths, desired_layout(present, desired.record_sizes, desired.max_hosts))
    number = _planned_number(plan, "state", "max_hosts", DEFAULT_MAX_HOSTS)
    records = RecordFile(step.path)
    replaced = step.action == "replace"
    return records.create(desired.name, number, desired.record_sizes, replace=replaced)


def _geometry(
    desired: DesiredMetadata,
    existing: ExistingMetadata,
    max_hosts: int,
    steps: list[Step],
    paths: ClusterPaths,
) -> Geometry:
    """Return the geometry that the file of records will have."""
    if existing.geometry is None or any(step.path == paths.state for step in steps):
        sizes = {**DEFAULT_COPY_BYTES, **desired.record_sizes}
        return Geometry(desired.name, max_hosts, sizes)
    layout = desired_layout(existing.geometry, desired.record_sizes, max_hosts)
    check_layout(existing.geometry, layout, existing.records, _users(existing))
    return layout


def _users(existing: ExistingMetadata) -> tuple[str, ...]:
    """Return who may be using the files, and why nobody knows if that is so."""
    problem = existing.lockspace.hosts_problem.rstrip(".")
    return (*existing.lockspace.users, problem) if problem else tuple(existing.lockspace.users)


def _grow(paths: ClusterPaths, max_hosts: int) -> bool:
    """Give the whiteboard blank blocks for more hosts; return False when it has them already."""
    with nobody_joins(paths):
        with Whiteboard(paths.metadata) as whiteboard:
            if whiteboard.max_hosts() >= max_hosts:
                return False
            data, block_bytes = whiteboard.read_bytes(), whiteboard.block_bytes()
        size = (max_hosts + 1) * block_bytes
        return create(paths.metadata, size, [(0, data)], replace=True)


def _look_whiteboard(
    paths: ClusterPaths, desired: DesiredMetadata | None, sleep: Callable[[float], None]
) -> ExistingMetadata:
    """Return what there is of the whiteboard."""
    if not exists(paths.metadata):
        return ExistingMetadata()
    with Whiteboard(paths.metadata) as whiteboard:
        try:
            number = whiteboard.max_hosts()
        except FormatError as error:
            return ExistingMetadata(board_problem=str(error))
        existing = ExistingMetadata(
            board_hosts=number,
            block_bytes=whiteboard.block_bytes(),
            global_bytes=whiteboard.read_block(0),
            direct=whiteboard.direct,
        )
        if desired is not None and number < (desired.max_hosts or 0):
            existing = replace(existing, board_owner=other_owner(paths.metadata))
        try:
            existing = replace(existing, maintenance=whiteboard.read_global().maintenance)
        except FormatError:
            existing = replace(existing, maintenance=None)
        if desired is not None and (desired.repair or desired.clear_host is not None):
            existing = replace(existing, observed=_look_at_nodes(whiteboard, paths, desired, sleep))
    return existing


def _look_at_nodes(
    whiteboard: Whiteboard,
    paths: ClusterPaths,
    desired: DesiredMetadata,
    sleep: Callable[[float], None],
) -> Sighting:
    """Return one look at the nodes, or two if there is anything to clear or repair."""
    first = look(whiteboard, paths.lockspace)
    observed = Sighting(first, first)
    if not _changes(desired, observed):
        return observed
    return look_twice(whiteboard, paths.lockspace, desired.watch, sleep)


def _file_steps(
    desired: DesiredMetadata, existing: ExistingMetadata, paths: ClusterPaths
) -> list[Step]:
    """Return the steps that create or replace the two files."""
    steps: list[Step] = []
    if existing.board_hosts is None:
        steps.append(make(paths.metadata, existing.board_problem, desired.force))
    elif existing.board_hosts < (desired.max_hosts or 0):
        has = f"max_hosts={existing.board_hosts}"
        refuse_conversion("The whiteboard", has, _users(existing), existing.board_owner)
        steps.append(Step("grow", paths.metadata))
    state_problem = existing.state_problem
    if existing.geometry is not None and existing.geometry.cluster != desired.name:
        state_problem = f"{paths.state} belongs to cluster {existing.geometry.cluster}"
    if existing.geometry is None or state_problem:
        steps.append(make(paths.state, state_problem, desired.force))
    if any(step.action == "replace" for step in steps):
        refuse_users(desired.force, existing.lockspace.users, "recreated", paths)
    return steps


def _changes(desired: DesiredMetadata, observed: Sighting) -> list[Repair]:
    """Return the changes of blocks that are to be cleared or repaired."""
    last = observed.second
    repairs = []
    if desired.repair:
        repairs = plan_repair(lint(last.board, last.block_bytes), observed, force=desired.force)
    number = desired.clear_host
    if number is not None and any(last.block(number)):
        repairs = [repair for repair in repairs if repair.host_id != number]
        blank = bytes(last.block_bytes)
        repairs.append(
            plan_block(number, "it shall be blank", blank, observed, force=desired.force)
        )
    return repairs


def _repairs(desired: DesiredMetadata, existing: ExistingMetadata) -> list[Repair]:
    """Return the changes of blocks; ``LeaseError`` when the block to clear is a live node's."""
    if desired.clear_host is not None:
        limit = (
            existing.board_hosts
            if existing.board_hosts is not None
            else _max_hosts(desired, existing)
        )
        if host_id(desired.clear_host, "clear_host") > limit:
            raise InputError(
                "clear_host", desired.clear_host, f"a host id of the board, 1 to {limit}"
            )
    if existing.observed is None:
        return []
    repairs = _changes(desired, existing.observed)
    for repair in repairs:
        if repair.host_id == desired.clear_host and repair.action == LEAVE:
            raise LeaseError(
                f"The block of host id {repair.host_id} is not cleared: {repair.reason}. Stop"
                " holdfast there, or use force if that node is certainly off."
            )
    return repairs


def _shown(block: bytes) -> str:
    """Return a block without its padding as text for a diff."""
    return without_padding(block).decode("ascii", "backslashreplace")


def _removal(desired: DesiredMetadata, existing: ExistingMetadata, paths: ClusterPaths) -> Plan:
    """Return the plan that removes what there is."""
    steps = []
    if existing.board_hosts is not None or existing.board_problem:
        steps.append(Step("remove", paths.metadata))
    if existing.geometry is not None or existing.state_problem:
        steps.append(Step("remove", paths.state))
    if steps:
        refuse_use(desired.force, existing.lockspace, "removed", paths)
    return Plan(_state(existing, paths), {}, tuple(steps))


def _state(existing: ExistingMetadata, paths: ClusterPaths) -> dict[str, object]:
    """Return whiteboard and records as they are, as plain data."""
    state: dict[str, object] = {}
    if existing.board_hosts is not None:
        state["metadata"] = {
            "path": paths.metadata,
            "max_hosts": existing.board_hosts,
            "block_size": existing.block_bytes,
        }
        state["maintenance"] = existing.maintenance
    elif existing.board_problem:
        state["metadata"] = {"path": paths.metadata, "problem": existing.board_problem}
    if existing.geometry is not None:
        state["state"] = records_document(existing.geometry, paths)
    elif existing.state_problem:
        state["state"] = {"path": paths.state, "problem": existing.state_problem}
    return state


def _max_hosts(desired: DesiredMetadata, existing: ExistingMetadata) -> int:
    """Return for how many hosts the records are or will be.

    Existing files become larger, not smaller.  A whiteboard without records, as hosted engine
    leaves it, may have blocks for more hosts than the records.
    """
    recorded = existing.geometry.max_hosts if existing.geometry is not None else None
    number = desired.max_hosts
    if number is None:
        return recorded or existing.board_hosts or DEFAULT_MAX_HOSTS
    whole_number(number, "max_hosts", 1, MAX_HOST_ID, "a number")
    if recorded is not None and number < recorded:
        raise InputError("max_hosts", number, f"at least {recorded}, as the existing files have it")
    return number


def _check_block_bytes(desired: DesiredMetadata, existing: ExistingMetadata) -> None:
    """Raise ``InputError`` for an impossible size of blocks, or one other than the board's."""
    if desired.block_bytes is None:
        return
    check_block_bytes(desired.block_bytes)
    if existing.block_bytes not in (None, desired.block_bytes):
        raise InputError(
            "block_size",
            desired.block_bytes,
            f"{existing.block_bytes}, as the existing whiteboard has it",
        )
    sector = existing.lockspace.device_sector
    if sector is not None and desired.block_bytes < sector:
        raise InputError("block_size", desired.block_bytes, f"{sector}, a sector of the device")


def _planned_number(plan: Plan, what: str, number: str, default: int) -> int:
    """Return a number of *plan* for one file."""
    state = plan.after[what]
    return int(state[number]) if isinstance(state, dict) else default
