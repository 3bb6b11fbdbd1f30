# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a deliberate mistake is made: a function is patched wherever it was imported."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm import (
    election,
    fencing,
    nodes,
    repair_plan,
    services,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm import (
    probing as looked_for,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm import (
    results as command_ends,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm import (
    started as running,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm import (
    step as cluster,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm import (
    stopped as inactive,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm import (
    commands as local_commands,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm import step as local
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator import (
    cluster_daemon,
    local_daemon,
    observer,
    random_scenario,
    record_look,
)

IMPORTERS = (
    cluster,
    command_ends,
    election,
    fencing,
    inactive,
    local,
    local_commands,
    looked_for,
    nodes,
    repair_plan,
    running,
    services,
    cluster_daemon,
    local_daemon,
    observer,
    record_look,
)
"""Files that import functions of others by their names."""

Patch = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Mutation:
    """One mistake: its name, how it is made, and how the runs are drawn that find it."""

    name: str
    made: Patch
    drawing: str = random_scenario.MIXED


def changed(home: Any, name: str, change: Callable[..., Any]) -> Patch:
    """Return a patch of the function *name* of *home*, wherever it was imported.

    *change* gets the function, then its arguments.
    """
    original = getattr(home, name)

    def mutant(*arguments: Any, **options: Any) -> Any:
        return change(original, *arguments, **options)

    def patches() -> ExitStack:
        stack = ExitStack()
        for where in (home, *IMPORTERS):
            if getattr(where, name, None) is original:
                stack.enter_context(patch.object(where, name, mutant))
        return stack

    return patches


def nothing(original: Any, *arguments: Any, **options: Any) -> None:
    return None


def returns(value: Any) -> Callable[..., Any]:
    return lambda original, *arguments, **options: value
