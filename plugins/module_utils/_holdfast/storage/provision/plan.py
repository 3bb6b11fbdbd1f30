# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps that create, change and remove storage files, and whether they can be taken.

``look_...`` reads what there is, ``plan_...`` is a pure function from that and from the desired
state to steps, or to the reason why not, and ``apply_...`` takes the steps.  Check mode and the
diff come from the same plan.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import StorageError
from ..device import is_device, parts, read_device
from ..whole_file import ClusterPaths, cannot_create

if TYPE_CHECKING:
    from ..whiteboard.lint import Repair

OF_FOLDER = ("create", "replace", "remove", "grow", "lay-out-anew")
"""The actions that need a writable folder; the others write into a file that is there."""


@dataclass(frozen=True)
class Step:
    """One change: ``action`` is one of ``OF_FOLDER``, set-maintenance or repair (``repair``)."""

    action: str
    path: str
    repair: Repair | None = None


@dataclass(frozen=True)
class Plan:
    """The steps, and the state before and after them as plain data.

    ``warnings`` say what is desired but will not be done, and why.  ``sizes`` is the bytes of each
    file that is created or replaced, by path.
    """

    before: Mapping[str, object]
    after: Mapping[str, object]
    steps: tuple[Step, ...] = ()
    warnings: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def changed(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.steps)


def check_folder(plan: Plan, paths: ClusterPaths) -> None:
    """Raise the ``StorageError`` that *plan* would meet in its folder or on its device.

    Check mode calls it, too.
    """
    first = next((step for step in plan.steps if step.action in OF_FOLDER), None)
    if first is None:
        return
    if is_device(paths.folder):
        _check_room(plan, paths.folder)
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


def _check_room(plan: Plan, device: str) -> None:
    """Raise the ``StorageError`` that *plan* would meet on *device*: read-only, or too small."""
    header, facts = read_device(plan.steps[0].path)
    if facts.read_only:
        raise StorageError(f"{device} is read-only on this node; make it writable.")
    for step in plan.steps:
        kind = parts(step.path)[2]
        if step.action == "remove":
            header = header.without(kind)
        elif step.action in OF_FOLDER:
            header = header.placed(kind, plan.sizes[step.path], facts.size, device)


def make(path: str, problem: str, force: bool) -> Step:
    """Return the step that creates a file, or with *force* replaces one with a *problem*."""
    if not problem:
        return Step("create", path)
    if not force:
        raise StorageError(
            f"{problem.rstrip('.')}; it is left as it is. Move {path} away, or use force to"
            " overwrite it."
        )
    return Step("replace", path)
