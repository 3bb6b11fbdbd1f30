# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changing how a cluster behaves as a whole, for the module ``cluster_policy``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from ...cluster.model.desired import Wanted
from ...cluster.model.policy import Policy, policy_document, policy_from_document
from ...node.configuration import load
from ...result import Result
from .change import await_manager, change_wanted


def declare_policy(options: Mapping[str, Any], check: bool) -> Result:
    """Change what *options* say of the cluster's policy; what they leave out stays as it is.

    With ``wait`` it is in force at the end: each LRM reads what the manager has taken up.
    """
    configuration = load(Path(options["config"]))

    def plan(wanted: Wanted) -> Wanted:
        return wanted.with_policy(merged_policy(wanted, options))

    change = change_wanted(configuration, plan, check=check)
    if options["wait"] and not check:
        await_manager(
            configuration,
            change.after.version,
            options["timeout"],
            done=lambda _state: True,
            why=lambda _state: "",
        )
    before, after = policy_document(change.before.policy), policy_document(change.after.policy)
    return Result(change.changed, {"policy": after, "version": change.after.version}, before, after)


def merged_policy(wanted: Wanted, options: Mapping[str, Any]) -> Policy:
    """Return the policy as *options* say, and as it is wanted where they say nothing.

    Raises ``InputError`` naming the option that is not acceptable.
    """
    return policy_from_document({**policy_document(wanted.policy), **given_options(options)})


def given_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what *options* say of a policy."""
    return {
        item.name: options[item.name]
        for item in fields(Policy)
        if options.get(item.name) is not None
    }
