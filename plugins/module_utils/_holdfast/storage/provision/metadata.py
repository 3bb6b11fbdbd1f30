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
from .lockspace import LockspaceFound, look_lockspace, refuse_use, refuse_users
from .plan import Plan, Step, check_folder, make
from .records import (
    RecordsFound,
    check_layout,
    lay_out_anew,
    look_records,
    nobody_joins,
    other_owner,
    records_document,
    refuse_conversion,
    wanted_layout,
)

DEFAULT_MAX_HOSTS = 64


@dataclass(frozen=True)
class MetadataWanted:
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
class MetadataFound:
    """What there is; ``maintenance`` is None when the global block is damaged.

    ``board_owner`` says that the whiteboard is another user's, if it is to be converted.

    ``seen`` is two looks at the nodes, if they had to be watched.  ``direct`` is False where the
    file system refuses direct I/O.  ``records`` is about a file whose records are to get another
    layout.
    """

    board_hosts: int | None = None
    board_problem: str = ""
    board_owner: str = ""
    maintenance: bool | None = False
    geometry: Geometry | None = None
    state_problem: str = ""
    lockspace: LockspaceFound = field(default_factory=LockspaceFound)
    block_bytes: int | None = None
    global_bytes: bytes = b""
    seen: Sighting | None = None
    direct: bool = True
    records: RecordsFound = field(default_factory=RecordsFound)


def look_metadata(
    paths: ClusterPaths,
    wanted: MetadataWanted | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> MetadataFound:
    """Return what there is of whiteboard, records and the lockspace beside them.

    Where a block is to be cleared or repaired, the nodes are watched for as long as *wanted*
    says.
    """
    board = _look_whiteboard(paths, wanted, sleep)
    geometry = None
    state_problem = ""
    records = RecordsFound()
    if exists(paths.state):
        with RecordFile(paths.state) as file:
            try:
                geometry = file.geometry()
            except FormatError as error:
                state_problem = str(error)
        if geometry is not None and wanted is not None and wanted.present:
            layout = wanted_layout(geometry, wanted.record_sizes, wanted.max_hosts)
            records = look_records(paths.state, geometry, layout)
    return replace(
        board,
        geometry=geometry,
        state_problem=state_problem,
        lockspace=look_lockspace(paths),
        records=records,
    )


def plan_metadata(wanted: MetadataWanted, found: MetadataFound, paths: ClusterPaths) -> Plan:
    """Return the steps to the wanted whiteboard and records.

    Raises ``StorageError`` for a file of another format or cluster in the way, and
    ``LeaseError`` when files in use would be replaced, unless forced, or laid out again;
    ``InputError`` for a number of hosts out of range or smaller than that of existing files.
    """
    before = _state(found, paths)
    if not wanted.present:
        return _removal(wanted, found, paths)
    max_hosts = _max_hosts(wanted, found)
    _check_block_bytes(wanted, found)
    block_bytes = found.block_bytes or wanted.block_bytes or BLOCK_BYTES
    repairs = _repairs(wanted, found)
    steps = _file_steps(wanted, found, paths)
    records = _geometry(wanted, found, max_hosts, steps, paths)
    if records != found.geometry and not any(step.path == paths.state for step in steps):
        steps.append(Step("lay-out-anew", paths.state))
    present = found.maintenance if found.board_hosts is not None else False
    maintenance = present if wanted.maintenance is None else wanted.maintenance
    changes: dict[int, tuple[bytes, bytes]] = {}
    if maintenance != present:
        # For the global block the operator's value counts, not that of a repair.
        repairs = [repair for repair in repairs if repair.host_id]
        steps.append(Step("set-maintenance", paths.metadata))
        block = GlobalBlock(bool(maintenance))
        changes[0] = (found.global_bytes, encode_global(block, block_bytes))
    for repair in repairs:
        if repair.action != LEAVE:
            steps.append(Step("repair", paths.metadata, repair))
            changes[repair.host_id] = (repair.before, repair.after)
    if 0 in changes:
        maintenance = decode_global(changes[0][1]).maintenance
    after: dict[str, object] = {
        "metadata": {
            "path": paths.metadata,
            "max_hosts": max(found.board_hosts or 0, max_hosts),
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


def apply_metadata(plan: Plan, wanted: MetadataWanted, paths: ClusterPaths) -> bool:
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
                whiteboard.write_global(GlobalBlock(bool(wanted.maintenance)))
            changed = True
        elif step.repair is not None:
            guard = None
            if not wanted.force and exists(paths.lockspace):
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
            changed |= _apply_records(step, plan, wanted, paths)
    return changed


def _apply_records(step: Step, plan: Plan, wanted: MetadataWanted, paths: ClusterPaths) -> bool:
    """Create the file of records, or change its sizes."""
    if step.action == "lay-out-anew":
        with RecordFile(paths.state) as file:
            present = file.geometry()
        return lay_out_anew(paths, wanted_layout(present, wanted.record_sizes, wanted.max_hosts))
    number = _planned_number(plan, "state", "max_hosts", DEFAULT_MAX_HOSTS)
    records = RecordFile(step.path)
    replaced = step.action == "replace"
    return records.create(wanted.name, number, wanted.record_sizes, replace=replaced)


def _geometry(
    wanted: MetadataWanted,
    found: MetadataFound,
    max_hosts: int,
    steps: list[Step],
    paths: ClusterPaths,
) -> Geometry:
    """Return the geometry that the file of records will have."""
    if found.geometry is None or any(step.path == paths.state for step in steps):
        sizes = {**DEFAULT_COPY_BYTES, **wanted.record_sizes}
        return Geometry(wanted.name, max_hosts, sizes)
    layout = wanted_layout(found.geometry, wanted.record_sizes, max_hosts)
    check_layout(found.geometry, layout, found.records, _users(found))
    return layout


def _users(found: MetadataFound) -> tuple[str, ...]:
    """Return who may be using the files, and why nobody knows if that is so."""
    problem = found.lockspace.hosts_problem.rstrip(".")
    return (*found.lockspace.users, problem) if problem else tuple(found.lockspace.users)


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
    paths: ClusterPaths, wanted: MetadataWanted | None, sleep: Callable[[float], None]
) -> MetadataFound:
    """Return what there is of the whiteboard."""
    if not exists(paths.metadata):
        return MetadataFound()
    with Whiteboard(paths.metadata) as whiteboard:
        try:
            number = whiteboard.max_hosts()
        except FormatError as error:
            return MetadataFound(board_problem=str(error))
        found = MetadataFound(
            board_hosts=number,
            block_bytes=whiteboard.block_bytes(),
            global_bytes=whiteboard.read_block(0),
            direct=whiteboard.direct,
        )
        if wanted is not None and number < (wanted.max_hosts or 0):
            found = replace(found, board_owner=other_owner(paths.metadata))
        try:
            found = replace(found, maintenance=whiteboard.read_global().maintenance)
        except FormatError:
            found = replace(found, maintenance=None)
        if wanted is not None and (wanted.repair or wanted.clear_host is not None):
            found = replace(found, seen=_look_at_nodes(whiteboard, paths, wanted, sleep))
    return found


def _look_at_nodes(
    whiteboard: Whiteboard,
    paths: ClusterPaths,
    wanted: MetadataWanted,
    sleep: Callable[[float], None],
) -> Sighting:
    """Return one look at the nodes, or two if there is anything to clear or repair."""
    first = look(whiteboard, paths.lockspace)
    seen = Sighting(first, first)
    if not _changes(wanted, seen):
        return seen
    return look_twice(whiteboard, paths.lockspace, wanted.watch, sleep)


def _file_steps(wanted: MetadataWanted, found: MetadataFound, paths: ClusterPaths) -> list[Step]:
    """Return the steps that create or replace the two files."""
    steps: list[Step] = []
    if found.board_hosts is None:
        steps.append(make(paths.metadata, found.board_problem, wanted.force))
    elif found.board_hosts < (wanted.max_hosts or 0):
        has = f"max_hosts={found.board_hosts}"
        refuse_conversion("The whiteboard", has, _users(found), found.board_owner)
        steps.append(Step("grow", paths.metadata))
    state_problem = found.state_problem
    if found.geometry is not None and found.geometry.cluster != wanted.name:
        state_problem = f"{paths.state} belongs to cluster {found.geometry.cluster}"
    if found.geometry is None or state_problem:
        steps.append(make(paths.state, state_problem, wanted.force))
    if any(step.action == "replace" for step in steps):
        refuse_users(wanted.force, found.lockspace.users, "recreated", paths)
    return steps


def _changes(wanted: MetadataWanted, seen: Sighting) -> list[Repair]:
    """Return the changes of blocks that are to be cleared or repaired."""
    last = seen.second
    repairs = []
    if wanted.repair:
        repairs = plan_repair(lint(last.board, last.block_bytes), seen, force=wanted.force)
    number = wanted.clear_host
    if number is not None and any(last.block(number)):
        repairs = [repair for repair in repairs if repair.host_id != number]
        blank = bytes(last.block_bytes)
        repairs.append(plan_block(number, "it shall be blank", blank, seen, force=wanted.force))
    return repairs


def _repairs(wanted: MetadataWanted, found: MetadataFound) -> list[Repair]:
    """Return the changes of blocks; ``LeaseError`` when the block to clear is a live node's."""
    if wanted.clear_host is not None:
        limit = found.board_hosts if found.board_hosts is not None else _max_hosts(wanted, found)
        if host_id(wanted.clear_host, "clear_host") > limit:
            raise InputError(
                "clear_host", wanted.clear_host, f"a host id of the board, 1 to {limit}"
            )
    if found.seen is None:
        return []
    repairs = _changes(wanted, found.seen)
    for repair in repairs:
        if repair.host_id == wanted.clear_host and repair.action == LEAVE:
            raise LeaseError(
                f"The block of host id {repair.host_id} is not cleared: {repair.reason}. Stop"
                " holdfast there, or use force if that node is certainly off."
            )
    return repairs


def _shown(block: bytes) -> str:
    """Return a block without its padding as text for a diff."""
    return without_padding(block).decode("ascii", "backslashreplace")


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
        state["metadata"] = {
            "path": paths.metadata,
            "max_hosts": found.board_hosts,
            "block_size": found.block_bytes,
        }
        state["maintenance"] = found.maintenance
    elif found.board_problem:
        state["metadata"] = {"path": paths.metadata, "problem": found.board_problem}
    if found.geometry is not None:
        state["state"] = records_document(found.geometry, paths)
    elif found.state_problem:
        state["state"] = {"path": paths.state, "problem": found.state_problem}
    return state


def _max_hosts(wanted: MetadataWanted, found: MetadataFound) -> int:
    """Return for how many hosts the records are or will be.

    Existing files become larger, not smaller.  A whiteboard without records, as hosted engine
    leaves it, may have blocks for more hosts than the records.
    """
    recorded = found.geometry.max_hosts if found.geometry is not None else None
    number = wanted.max_hosts
    if number is None:
        return recorded or found.board_hosts or DEFAULT_MAX_HOSTS
    whole_number(number, "max_hosts", 1, MAX_HOST_ID, "a number")
    if recorded is not None and number < recorded:
        raise InputError("max_hosts", number, f"at least {recorded}, as the existing files have it")
    return number


def _check_block_bytes(wanted: MetadataWanted, found: MetadataFound) -> None:
    """Raise ``InputError`` for an impossible size of blocks, or one other than the board's."""
    if wanted.block_bytes is None:
        return
    check_block_bytes(wanted.block_bytes)
    if found.block_bytes not in (None, wanted.block_bytes):
        raise InputError(
            "block_size",
            wanted.block_bytes,
            f"{found.block_bytes}, as the existing whiteboard has it",
        )
    sector = found.lockspace.device_sector
    if sector is not None and wanted.block_bytes < sector:
        raise InputError("block_size", wanted.block_bytes, f"{sector}, a sector of the device")


def _planned_number(plan: Plan, what: str, number: str, default: int) -> int:
    """Return a number of *plan* for one file."""
    state = plan.after[what]
    return int(state[number]) if isinstance(state, dict) else default
