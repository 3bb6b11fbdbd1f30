# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Putting a node or the whole cluster into maintenance and out of it, for the modules.

Each operation takes the options of its module and whether it is check mode, and returns what
changed.  An option that is not given leaves an existing maintenance as it is.  A manual fence
leaves its node off and empty until ``unfence``: a person may be working on the machine.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ... import names
from ...cluster.model.desired import DesiredState
from ...cluster.model.desired_codec import desired_from_document
from ...cluster.model.maintenance import (
    FENCE_REASON,
    Maintenance,
    fenced_by_hand,
    maintenance_document,
    maintenance_text,
    time_from_text,
    with_times_told,
)
from ...cluster.model.report import Mode
from ...cluster.model.state import ClusterState, NodeState
from ...cluster.model.state_codec import state_from_document
from ...cluster.model.states import ServiceState
from ...documents import read_document
from ...errors import FormatError, HoldfastError, InputError
from ...node.cluster_storage import ClusterStorage
from ...node.configuration import NodeConfiguration
from ...node.configuration_file import load
from ...result import Result
from ...storage.record_format import Kind, Record
from ...storage.records import RecordFile
from ...storage.whiteboard.block import GlobalBlock
from ...storage.whiteboard.board import Board
from ...storage.whole_file import ClusterPaths, exists
from ..report.status import global_maintenance
from .author import user_name
from .change import await_manager, change_and_wait, change_desired, read_cluster

ON_THE_WHITEBOARD = Maintenance("set on the whiteboard")
"""A global maintenance that is only in block 0."""


def declare_maintenance(options: Mapping[str, Any], check: bool) -> Result:
    """Drain a node, or use it again; the operation of the module ``node_maintenance``."""
    configuration = load(Path(options["config"]))
    # An empty name is a variable that is not set: it must not drain the node of the task.
    node = configuration.node if options["node"] is None else names.node_name(options["node"])
    configuration.require_member(node)
    drain = options["state"] == "drained"
    services = read_cluster(configuration)[1].services_on(node)

    def plan(desired: DesiredState) -> DesiredState:
        if not drain:
            return desired.without_maintenance(node)
        before = desired.maintenance.get(node)
        if before is not None and _is_kept_by_fence(options, before):
            return desired
        return desired.with_maintenance(node, asked_maintenance(options, before))

    missing = partial(_not_drained, node, services) if drain else partial(_not_in_use, node)
    change, state = change_and_wait(configuration, options, plan, check, missing)
    before = _document(change.before.maintenance.get(node))
    after = _document(change.after.maintenance.get(node))
    values: dict[str, Any] = {
        "node": node,
        "maintenance": after,
        "version": change.after.version,
    }
    if drain and state is not None:
        moved = {one: state.services[one].node for one in services if one in state.services}
        values["moved"] = moved
    kept = change.before.maintenance.get(node)
    warnings: tuple[str, ...] = ()
    if drain and kept is not None and _is_kept_by_fence(options, kept):
        warnings = (
            f"Node {node} was fenced by hand ({kept.reason}) and stays empty for that reason and"
            " without an end; unfence ends it.",
        )
    told_before, told_after = with_times_told(before), with_times_told(after)
    return Result(change.changed, values, {node: told_before}, {node: told_after}, warnings)


def _is_kept_by_fence(options: Mapping[str, Any], before: Maintenance) -> bool:
    """Return whether a drain would replace the maintenance of a manual fence.

    The end of that drain would power the node on while a person works on it.
    """
    reason = options["reason"] if options["reason"] is not None else before.reason
    other = not reason.startswith(FENCE_REASON) or options.get("until") or options.get("duration")
    return fenced_by_hand(before) and bool(other)


def declare_global_maintenance(options: Mapping[str, Any], check: bool) -> Result:
    """Begin or end global maintenance; an operation of the module ``cluster_maintenance``.

    To end one that was set on the whiteboard alone, its global block is written.
    """
    configuration = load(Path(options["config"]))
    begin = options["state"] == "present"

    def plan(desired: DesiredState) -> DesiredState:
        if not begin:
            return desired.without_global_maintenance()
        return desired.with_global_maintenance(
            asked_maintenance(options, desired.global_maintenance)
        )

    on_board = _on_the_board(configuration)
    change = change_desired(configuration, plan, check=check)
    by_hand = on_board if change.before.global_maintenance is None else None
    if by_hand is not None and not begin and not check:
        with closing(ClusterStorage(configuration)) as storage:
            storage.board.write_global(GlobalBlock(False))
    before = _document(change.before.global_maintenance or by_hand)
    after = _document(change.after.global_maintenance)
    version = change.after.version
    values: dict[str, Any] = {"maintenance": after, "version": version}
    if options["wait"] and not check:
        missing = partial(_not_agreed, change.after.global_maintenance)
        await_manager(configuration, version, options["timeout"], missing)
    changed = change.changed or (by_hand is not None and not begin)
    told_before, told_after = with_times_told(before), with_times_told(after)
    return Result(changed, values, {"maintenance": told_before}, {"maintenance": told_after})


def asked_maintenance(options: Mapping[str, Any], before: Maintenance | None) -> Maintenance:
    """Return the maintenance of *options* where *before* is in force.

    Raises ``InputError`` for an end that is no time, or is over.
    """
    now = time.time()
    known = before or Maintenance(since=now)
    reason = options["reason"] if options["reason"] is not None else known.reason
    # A manual fence takes over the maintenance of a node that another owner drained.
    fenced_now = (reason or "").startswith(FENCE_REASON) and not fenced_by_hand(known)
    owner = options["owner"] or ("" if fenced_now else known.owner) or user_name()
    until = _until(options, known)
    if until and until <= now and until != known.until:
        option = "until" if options.get("until") is not None else "duration"
        raise InputError(option, options[option], "an end that is yet to come")
    return Maintenance(reason, owner, known.since, until)


def _until(options: Mapping[str, Any], known: Maintenance) -> float:
    """Return when the maintenance ends; 0 for no expiry."""
    if options.get("until") is not None:
        try:
            return time_from_text(options["until"])
        except ValueError:
            zoned = "a time with its zone such as 2026-11-21T18:00:00+01:00"
            expected = f"seconds since 1970, or {zoned}"
            raise InputError("until", options["until"], expected) from None
    duration = options.get("duration")
    if duration is None:
        return known.until
    return known.since + duration if duration else 0.0


def _on_the_board(configuration: NodeConfiguration) -> Maintenance | None:
    """Return the global maintenance that a person set on the whiteboard, or None.

    Not one that the manager wrote there and is about to take back.
    """
    with closing(ClusterStorage(configuration)) as storage:
        state = storage.read_manager() or ClusterState()
        try:
            says = storage.board.read_global().maintenance
        except FormatError:
            return Maintenance("the whiteboard's global block is damaged")
    if not says:
        return None
    if state.hold is not None:
        return state.hold if state.hold_from_board else None
    return None if state.board or state.board_pending else ON_THE_WHITEBOARD


def _document(maintenance: Maintenance | None) -> dict[str, Any] | None:
    return maintenance_document(maintenance) if maintenance is not None else None


def _not_drained(node: str, services: Sequence[str], state: ClusterState) -> str:
    """Return why *node* is not empty, or which of *services*, once on it, are not started yet."""
    left = [f"{one} ({state.services[one].why})" for one in state.services_on(node)]
    if left:
        return f"Node {node!r} is not drained, these are still on it: {', '.join(left)}"
    known = [(one, state.services[one]) for one in services if one in state.services]
    starting = [
        f"{one} on {status.node} ({status.why})"
        for one, status in known
        if status.state is ServiceState.REQUEST_START
    ]
    if starting:
        return f"Node {node!r} is empty, but these are not started yet: {', '.join(starting)}"
    return ""


def _not_in_use(node: str, state: ClusterState) -> str:
    """Return why *node* is not online, or that its LRM still lets no service come to it."""
    status = state.nodes.get(node)
    known, empty = "unknown", ""
    if status is not None:
        known = f"{status.state.value}: {status.reason}"
        if status.mode == Mode.MAINTENANCE.value:
            empty = "; its LRM still keeps it empty"
        elif status.state is NodeState.ONLINE:
            return ""
    return f"Node {node!r} is {known}{empty}"


def _not_agreed(desired: Maintenance | None, state: ClusterState) -> str:
    """Return why the manager does not keep to *desired* yet, or the whiteboard says otherwise."""
    agreed = state.board is (desired is not None) and not state.board_pending
    if state.hold == desired and agreed:
        return ""
    if state.hold is None:
        return "The cluster is not in maintenance"
    return f"The cluster is in maintenance ({maintenance_text(state.hold)})"


def kept_empty(configuration: NodeConfiguration, node: str) -> Maintenance | None:
    """Return the maintenance of *node* that is in force, or None."""
    desired, state = read_cluster(configuration)
    return desired.in_force(state.ended).maintenance.get(node)


NEEDS_CONFIG = ("node", "reason", "owner", "until", "duration")
"""The options that the whiteboard has no place for."""


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse options that would have no effect, and the configuration of another cluster."""
    declares = options["config"] is not None and options["maintenance"] is not None
    for option in NEEDS_CONFIG:
        if options[option] is not None and not declares:
            raise InputError(option, options[option], "it only beside config and maintenance")
    if not declares:
        return
    if options["state"] != "present":
        raise InputError("maintenance", options["maintenance"], "it only with state=present")
    configuration = load(Path(options["config"]))
    if (configuration.cluster, configuration.storage) != (options["name"], Path(options["path"])):
        raise InputError(
            "config",
            options["config"],
            f"the configuration of a node of cluster {options['name']} in {options['path']}; it is"
            f" of {configuration.cluster} in {configuration.storage}",
        )


def with_maintenance(files: Result, options: Mapping[str, Any], check: bool) -> Result:
    """Declare the maintenance of *options*, and return its result together with *files*."""
    begin = options["maintenance"]
    more: dict[str, Any] = {"wait": False, "timeout": 0.0}
    if options["node"] is not None:
        more["state"] = "drained" if begin else "active"
        declared = declare_maintenance({**options, **more}, check)
    else:
        more["state"] = "present" if begin else "absent"
        declared = declare_global_maintenance({**options, **more}, check)
    before, after = files.before, files.after
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        before = {**before, "declared": declared.before}
        after = {**after, "declared": declared.after}
    return replace(
        files,
        changed=files.changed or declared.changed,
        values={**files.values, "declared": declared.values["maintenance"]},
        before=before,
        after=after,
    )


def read_hold(paths: ClusterPaths, board: Board) -> dict[str, Any] | None:
    """Return the global maintenance as plain data, None if there is none.

    Without readable records it is that of *board*.
    """
    state, desired = ClusterState(), DesiredState()
    if exists(paths.state):
        try:
            with RecordFile(paths.state) as file:
                manager = _newest(file, Kind.CRM)
                configuration = _newest(file, Kind.CONFIGURATION)
            if manager is not None:
                state = state_from_document(read_document(manager.payload, "The record"))
            if configuration is not None:
                desired = desired_from_document(
                    read_document(configuration.payload, "The configuration")
                )
        except HoldfastError:
            pass
    hold = global_maintenance(board, state, desired.in_force(state.ended))
    return maintenance_document(hold) if hold is not None else None


def _newest(file: RecordFile, kind: Kind) -> Record | None:
    """Return the record of the highest epoch; a configuration's is its version."""
    found: list[Record] = []
    for host_id in range(1, file.geometry().max_hosts + 1):
        try:
            record = file.read(kind, host_id)
        except FormatError:
            continue
        if record is not None:
            found.append(record)
    return max(found, key=lambda record: record.epoch, default=None)
