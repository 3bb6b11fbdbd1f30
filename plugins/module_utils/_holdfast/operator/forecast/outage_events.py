# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Saying which nodes can be out of service together, for the module ``outage_info``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...node.configuration import load
from ...result import Result
from .moves import checked_nodes, look, short_of_room
from .outages import Outages, plan_outages


def outage_info(options: Mapping[str, Any], check: bool) -> Result:
    """Return groups of nodes that can be out together, as the module was asked.

    Raises ``InputError`` for a node that is none, or for groups of no node.
    """
    configuration = load(Path(options["config"]))
    nodes = checked_nodes(options["nodes"] or sorted(configuration.members), configuration)
    if options["at_once"] < 1:
        raise InputError("at_once", options["at_once"], "a number of nodes from 1 on")
    state, seen = look(configuration)
    plan = plan_outages(
        state,
        seen,
        nodes,
        at_once=options["at_once"],
        redundant=options["redundant"],
        owner=options["owner"] or "",
    )
    warnings = [
        f"While {', '.join(group.nodes)} cannot be used, {sentence}"
        for group in plan.groups
        for sentence in short_of_room(
            group.then, [move.target for move in group.moves], seen.wanted.policy
        )
    ]
    return Result(values=_document(plan), warnings=warnings)


def _document(plan: Outages) -> dict[str, Any]:
    return {
        "groups": [
            {"nodes": list(group.nodes), "moves": [asdict(move) for move in group.moves]}
            for group in plan.groups
        ],
        "nodes": [node for group in plan.groups for node in group.nodes],
        "sizes": [len(group.nodes) for group in plan.groups],
        "blocked": dict(plan.blocked),
    }
