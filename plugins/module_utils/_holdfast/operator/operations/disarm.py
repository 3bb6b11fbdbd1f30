# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pausing and disarming the cluster, and ending both, for ``cluster_maintenance``.

In both the manager does nothing.  In global maintenance a node that loses its storage is still
reset by its watchdog.  A disarmed cluster has released the watchdogs too, in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ...cluster.crm.pausing import DISARMED
from ...cluster.model.desired import DesiredState
from ...cluster.model.maintenance import maintenance_document, with_times_told
from ...cluster.model.state import ClusterState
from ...errors import InputError
from ...node.configuration_file import load
from ...result import Result
from .change import change_and_wait
from .maintenance import asked_maintenance, declare_global_maintenance

HOLD = "hold"


def declare_cluster_maintenance(options: Mapping[str, Any], check: bool) -> Result:
    """Begin the maintenance that ``mode`` names, or end both kinds.

    Raises ``InputError`` when one is to begin while the other is in force.
    """
    if options["state"] == "absent":
        ended = declare_global_maintenance(options, check)
        return _joined(ended, _declare_disarm(options, "", check))
    if options["mode"] == HOLD:
        return declare_global_maintenance(options, check)
    for option in ("until", "duration"):
        if options[option] is not None:
            raise InputError(
                option,
                options[option],
                "it only with mode=hold: a disarmed cluster has to be armed explicitly",
            )
    return _declare_disarm(options, options["mode"], check)


def _declare_disarm(options: Mapping[str, Any], mode: str, check: bool) -> Result:
    configuration = load(Path(options["config"]))

    def plan(desired: DesiredState) -> DesiredState:
        if not mode:
            return desired.with_disarm("")
        if desired.global_maintenance is not None:
            raise InputError(
                "mode", mode, "'hold', as global maintenance is in force: end that first"
            )
        return desired.with_disarm(mode, asked_maintenance(options, desired.disarmed_by))

    change, _state = change_and_wait(configuration, options, plan, check, partial(_missing, mode))
    disarm = _document(change.after)
    values = {"maintenance": None, "disarm": disarm, "version": change.after.version}
    before, after = with_times_told(_document(change.before)), with_times_told(disarm)
    return Result(change.changed, values, {"disarm": before}, {"disarm": after})


def _joined(one: Result, other: Result) -> Result:
    """Return the result of two changes in a row; *other* is in the diff only if it changed."""
    if not other.changed:
        return replace(one, values={**one.values, "disarm": other.values["disarm"]})
    both = {**dict(one.values), **dict(other.values), "maintenance": one.values["maintenance"]}
    return replace(
        one,
        changed=True,
        values=both,
        before={"maintenance": one.before, "disarm": other.before},
        after={"maintenance": one.after, "disarm": other.after},
    )


def _document(desired: DesiredState) -> dict[str, Any] | None:
    """Return how the cluster is disarmed, and by which owner; None while it is armed."""
    if not desired.disarm:
        return None
    by = maintenance_document(desired.disarmed_by) if desired.disarmed_by is not None else {}
    return {"mode": desired.disarm, **{key: by.get(key) for key in ("reason", "owner", "since")}}


def _missing(mode: str, state: ClusterState) -> str:
    """Return why the cluster is not disarmed as *mode* says, or not armed if that is empty."""
    disarmed = state.disarm == DISARMED and state.disarm_mode == mode
    if disarmed if mode else not state.disarm:
        return ""
    if not mode:
        return "The cluster is not armed"
    moving = [
        f"{key} ({one.state.value})"
        for key, one in sorted(state.services.items())
        if one.state.value not in ("freeze", "error", "stopped")
    ]
    under_way = f"; under way: {', '.join(moving)}" if moving else ""
    if state.disarm_waits:
        under_way += f"; it waits for {state.disarm_waits}"
    return f"The cluster is {state.disarm or 'armed'}{under_way}"
