# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What creating and removing a cluster's files has in common: plan first, then apply.

``look_...`` (in the modules beside this one) reads what there is, ``plan_...`` is a
pure function from what is and what is wanted to steps, or to the reason why not,
and ``apply_...`` takes the steps.  Check mode and the diff come from the same plan.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import LeaseError, StorageError
from ..whole_file import ClusterPaths, cannot_create

if TYPE_CHECKING:
    from ..whiteboard.lint import Repair

OF_FOLDER = ("create", "replace", "remove", "lay-out-anew")
"""The actions that need a writable folder; the others write into a file that is there."""


@dataclass(frozen=True)
class Step:
    """One change: ``action`` is one of ``OF_FOLDER``, set-maintenance or repair.

    ``repair`` is the change of a block of the whiteboard, for that action only.
    """

    action: str
    path: str
    repair: Repair | None = None


@dataclass(frozen=True)
class Plan:
    """What will be done, and the state before and after it as plain data.

    ``warnings`` say what is wanted but will not be done, and why.
    """

    before: Mapping[str, object]
    after: Mapping[str, object]
    steps: tuple[Step, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.steps)


def check_folder(plan: Plan, paths: ClusterPaths) -> None:
    """Raise the ``StorageError`` that applying *plan* would meet in the folder itself.

    Called in check mode too, which would otherwise promise what cannot be done.
    """
    first = next((step for step in plan.steps if step.action in OF_FOLDER), None)
    if first is None:
        return
    folder = Path(paths.folder)
    number = 0
    if not folder.exists():
        number = errno.ENOENT
    elif not folder.is_dir():
        number = errno.ENOTDIR
    elif not os.access(folder, os.W_OK | os.X_OK):
        number = errno.EACCES
    if number:
        raise cannot_create(first.path, OSError(number, os.strerror(number)))


def make(path: str, problem: str, force: bool) -> Step:
    """Return the step that makes a file; over one with a *problem* only by force."""
    if not problem:
        return Step("create", path)
    if not force:
        raise StorageError(
            f"{problem.rstrip('.')}; it is left as it is. Move {path} away, or use force to"
            " overwrite it."
        )
    return Step("replace", path)


def refuse_users(force: bool, users: Sequence[str], what: str, paths: ClusterPaths) -> None:
    """Raise ``LeaseError`` naming the *users* of the lockspace if there are any, unless forced."""
    if users and not force:
        raise LeaseError(
            f"{paths.lockspace} is in use and nothing is {what}: {', '.join(users)}. Stop"
            " holdfast there; use force only for nodes that are certainly off."
        )
