# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the module ``balance`` does: read a cluster, plan, write the cluster as it will be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from ....errors import ClusterDataError
from ....placement.balance.description import describe_plan
from ....placement.balance.plan import make_plan
from ....placement.balance.search import LEAST_GAIN, PlanLimits, optimal_score, run_as_hbal
from ....placement.balance.setup import choose_group, choose_instances, settled
from ....placement.balance.state import MoveLimits
from ....placement.iallocator.text_format import write_text
from ....result import Result
from ....storage.whole_file import write_text as write_file
from .search_options import LONGEST
from .source import read_cluster, read_source


def plan_balance(options: Mapping[str, Any], check: bool) -> Result:
    """Plan to balance the cluster that *options* name; write ``dest`` unless this is *check*.

    The options are those of the module.  Raises `ClusterDataError` if the cluster cannot
    be read, or a group or instance is not there.
    """
    _check(options)
    source = options["src"]
    text = json.dumps(options["cluster"]) if source is None else read_source(source)
    cluster, warnings = read_cluster(text, options["static_node_memory"])
    group = choose_group(cluster, options["group"])
    scope = [node.index for node in cluster.nodes if node.group == group]
    limits = MoveLimits(options["evacuate"], options["disk_moves"], options["instance_moves"])
    only = choose_instances(cluster, options["select"], options["exclude"])
    aims = PlanLimits(
        options["most_moves"],
        options["most_copied"],
        gain_per_gib=options["gain_per_gib"],
        good_score=optimal_score(cluster, scope) + (LEAST_GAIN if options["like_hbal"] else 0),
        swaps=options["swaps"],
        keep_n1=options["keep_n1"],
    )
    balance = run_as_hbal if options["like_hbal"] else make_plan
    plan = balance(cluster, scope, limits, aims, only)
    if options["budget"]:
        # Imported here: without a search a task does not wait for its modules.
        from time import monotonic

        from ....placement.annealing import Budget
        from ....placement.balance.improve import improve

        budget = Budget(options["budget"], monotonic)
        question = (cluster, scope, limits, aims, only)
        plan = improve(*question, plan, options["seed"], budget, _never, _watch_nothing)
    values = describe_plan(cluster, scope, plan, limits, only)
    before, after = write_text(cluster), write_text(settled(plan.cluster))
    changed = _keep(options["dest"], after, check)
    return Result(changed, values, before, after if plan.steps else before, warnings)


def _never() -> bool:
    return False


def _watch_nothing(_used: float, _best: float) -> None:
    pass


def _check(options: Mapping[str, Any]) -> None:
    """Raise `ClusterDataError` for a limit that is none, or that hbal does not have."""
    if not isfinite(options["gain_per_gib"]) or options["gain_per_gib"] < 0:
        given = options["gain_per_gib"]
        raise ClusterDataError(f"gain_per_gib is {given:g}; it has to be 0 or more")
    if not 0 <= options["budget"] <= LONGEST:
        raise ClusterDataError(
            f"budget is {options['budget']:g}; it has to be 0 (no search) to {LONGEST:.0f} seconds"
        )
    for name in ("most_moves", "most_copied"):
        if options[name] < -1:
            raise ClusterDataError(
                f"{name} is {options[name]}; it has to be 0 or more, or -1 for no limit"
            )
    if not options["like_hbal"]:
        return
    for name, without in (
        ("swaps", False),
        ("most_copied", -1),
        ("gain_per_gib", 0.0),
        ("budget", 0.0),
        ("keep_n1", True),
    ):
        if options[name] != without:
            raise ClusterDataError(f"{name} cannot be combined with like_hbal: hbal has no such")


def _keep(dest: str | None, text: str, check: bool) -> bool:
    """Have *text* in the file *dest*, if there is to be one; return whether that changes it."""
    if dest is None:
        return False
    path = Path(dest)
    try:
        there = path.read_text(encoding="utf-8") if path.exists() else None
        if there == text:
            return False
        if not check:
            write_file(path, text)
    except OSError as error:
        raise ClusterDataError(f"{dest} cannot be written: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ClusterDataError(f"{dest} is not UTF-8 text: {error.reason}") from None
    return True
