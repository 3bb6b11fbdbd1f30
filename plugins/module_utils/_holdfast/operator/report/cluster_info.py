# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answering for the module ``cluster_info``: the status, waited for, probed, and as a page."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...cluster.model.state import NodeState
from ...errors import HoldfastError, InputError, StorageError
from ...names import absolute_path
from ...node.configuration import NodeConfiguration, load
from ...node.daemon.probe import probe_services
from ...result import Result
from ...storage.whole_file import write_text
from .status import problems, read_status, under_way
from .text import render_failover, render_text

POLL = 0.25

IN_DOUBT = frozenset({NodeState.ONLINE.value, NodeState.SUSPECT.value, NodeState.FENCE.value})
"""States in which the manager still holds that a node may run its services."""


def inform(options: Mapping[str, Any], check: bool) -> Result:
    """Return the cluster's state; raises ``HoldfastError`` when a wait ends without it."""
    configuration = load(Path(options["config"]))
    _check(options, configuration)
    status = _wait(configuration, options)
    values = dict(status)
    values["text"] = render_text(status, colour=False).splitlines()
    values["failover_text"] = {one["node"]: render_failover(one) for one in status["failovers"]}
    if options["probe"]:
        values["running_here"] = probe_services(configuration)
    if options["page"] and not check:
        _write_page(Path(options["page"]), configuration, status)
    return Result(values=values)


def _write_page(path: Path, configuration: NodeConfiguration, status: dict[str, Any]) -> None:
    from ..forecast.foreseen_rebalance import foresee
    from .page.page import render_page

    write_text(path, render_page(status, plan=foresee(configuration)))


def _check(options: Mapping[str, Any], configuration: NodeConfiguration) -> None:
    """Refuse, before any wait, what could not be answered after it."""
    for option in ("failover_of", "recovered_from"):
        node = options[option]
        if node and node not in configuration.members:
            known = ", ".join(sorted(configuration.members))
            raise InputError(option, node, f"one of the cluster's nodes ({known})")
    if options["recovered_from"] and options["until"] != "recovered":
        raise InputError("until", options["until"], "recovered, as recovered_from is given")
    if options["page"]:
        absolute_path(options["page"], "page")


def _wait(configuration: NodeConfiguration, options: Mapping[str, Any]) -> dict[str, Any]:
    until = time.monotonic() + options["timeout"]
    while True:
        try:
            status = read_status(configuration)
            missing = _missing(status, options)
        except StorageError as error:
            # A read may fail while a path fails over; who waits for something waits for that.
            if options["until"] == "now":
                raise
            missing = [str(error)]
        if not missing:
            return status
        if time.monotonic() > until:
            text = " ".join(missing)
            raise HoldfastError(
                f"The cluster is not as asked after {options['timeout']:g} s: {text}"
            )
        time.sleep(POLL)


def _missing(status: dict[str, Any], options: Mapping[str, Any]) -> list[str]:
    """Return what is missing to what was asked for, one sentence each."""
    if options["until"] == "now":
        return []
    if options["recovered_from"]:
        return _missing_without(status, options["recovered_from"])
    missing = [
        one
        for one in (*status["problems"], *status["under_way"])
        if options["until"] == "settled" or not one.startswith("Node ")
    ]
    node = options["failover_of"]
    if node and not _finished_failover(status, node, options["since"]):
        missing.append(f"There was no failover of node {node} yet.")
    return missing


def _missing_without(status: dict[str, Any], node: str) -> list[str]:
    """Return what is missing until the services of *node*, which was cut off, run elsewhere.

    Before the manager knows of it they still count as started there.  What it loses with the
    node stands in the failover; what is wrong with any other service is no matter of it.
    """
    known = status["nodes"][node]
    if known["state"] in IN_DOUBT:
        why = known["reason"] or "no reason known"
        return [f"Node {node} is not known to be off yet; it is {known['state']}: {why}."]
    failovers = [one for one in status["failovers"] if one["node"] == node]
    lost = set(known["services"])
    if failovers and known["state"] == NodeState.OFF.value:
        lost.update(failovers[-1]["services"])
    services = {name: one for name, one in status["services"].items() if name in lost}
    part = {**status, "nodes": {}, "services": services, "failovers": failovers, "disarm": None}
    return [*problems(part), *under_way(part)]


def _finished_failover(status: dict[str, Any], node: str, since: float) -> bool:
    return any(
        one["node"] == node and one["finished"] and one["recorded"] >= since
        for one in status["failovers"]
    )
