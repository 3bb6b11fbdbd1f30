# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a node has to be rebooted for what was updated on it, for the module ``reboot_info``.

Each distribution has its own way to say so, and a plain installation often none of them.  So the
kernels are looked at as well: that needs nothing but files.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import AgentError
from ...process.run import run
from ...result import Result

MARK = Path("run/reboot-required")
"""Where packages of Debian say so, if what writes it is installed.  None says nothing at all."""

TOOLS = (("needs-restarting", "-r"), ("dnf", "needs-restarting", "-r"))
"""The command of yum-utils, and the plugin of dnf, which may be there without it."""

DEADLINE = 120.0
"""Seconds that a command gets: it may read the package lists anew."""

_IMAGES = ("boot/vmlinuz-{}", "boot/vmlinux-{}", "lib/modules/{}/vmlinuz")
_PART = re.compile(r"\d+|[A-Za-z]+")


@dataclass(frozen=True)
class Answer:
    """What one look says: whether a reboot is due, None if it cannot tell, and in words why."""

    due: bool | None
    why: str = ""


def reboot_info(options: Mapping[str, Any], check: bool) -> Result:
    """Return whether a reboot of this node is due, as the module was asked."""
    return reboot_due([marked(), asked(), by_kernel(os.uname().release, time_of_boot())])


def reboot_due(answers: list[Answer]) -> Result:
    """Return what *answers* say together: one that knows of a reason is enough."""
    told = [one for one in answers if one.due is not None]
    due = any(one.due for one in told)
    warnings = [one.why for one in answers if one.why and not one.due]
    if not told:
        warnings.append(
            "Whether a reboot is due is not known: there is no /run/reboot-required, neither"
            " needs-restarting nor dnf needs-restarting gave an answer, and the running kernel"
            " is none of those that are installed. It has to be found out by other means."
        )
    values = {"due": due, "known": bool(told), "reasons": [one.why for one in told if one.due]}
    return Result(values=values, warnings=warnings)


def marked(root: Path = Path("/")) -> Answer:
    """Return what the file says that packages of Debian leave; without it nothing is known."""
    if (root / MARK).exists():
        return Answer(True, f"/{MARK} is there")
    return Answer(None)


def asked() -> Answer:
    """Return what the commands of dnf say; a command that is not there says nothing.

    Status 1 is also that of dnf without the plugin and of a command that failed, so that it
    counts only with the sentence.
    """
    for argv in TOOLS:
        if shutil.which(argv[0]) is None:
            continue
        try:
            done = run(argv, deadline=DEADLINE, environment={**os.environ, "LC_ALL": "C"})
        except AgentError:
            continue
        if done.exit_status == 0:
            return Answer(False)
        if done.exit_status == 1 and "reboot" in done.stdout.lower():
            return Answer(True, f"{' '.join(argv)} says so")
    return Answer(None)


def by_kernel(running: str, booted: float, root: Path = Path("/")) -> Answer:
    """Return what the kernels say: whether one came since the node *booted* (seconds, wall clock).

    One that was there already when the node booted is not what its boot loader starts: another
    reboot would change nothing, and with each run of a playbook there would be one more.
    """
    written = kernels(root)
    if not written:
        return Answer(None)
    newest = max(written, key=_by_version)
    newer = [one for one in written if _by_version(one) > _by_version(running)]
    came = [one for one in (newer if running in written else written) if written[one] > booted]
    if came:
        # One that was there before is what the boot loader passed over.
        best = max(came, key=_by_version)
        return Answer(True, f"the kernel {best} was installed, and {running} runs")
    if running not in written:
        return Answer(None)
    if written[running] > booted:
        return Answer(True, f"the kernel {running} was written anew since the node booted")
    if newest != running:
        return Answer(
            False,
            f"The kernel {newest} is installed, and {running} was booted all the same: a reboot is"
            " not taken for due, as it would change nothing. Look at what the boot loader starts.",
        )
    return Answer(False)


def kernels(root: Path = Path("/")) -> dict[str, float]:
    """Return when each kernel that has modules was written (seconds, wall clock), by version.

    That is the time of the inode: packages bring a file's own time with them.  Without modules
    are rescue images and what removed packages left in /boot.
    """
    found = {}
    for folder in (root / "lib/modules").glob("*"):
        times = [_written(root / image.format(folder.name)) for image in _IMAGES]
        if any(times):
            found[folder.name] = max(times)
    return found


def time_of_boot() -> float:
    """Return when this node booted, in seconds by its wall clock as it goes now."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def _written(image: Path) -> float:
    """Return when a file was written, 0 for one that is not there or not to be seen."""
    try:
        return image.stat().st_ctime
    except OSError:
        return 0.0


def _by_version(version: str) -> list[tuple[int, int, str]]:
    """Return what sorts kernels by their version; a number is newer than a word, as in rpm."""
    return [
        (1, int(part), "") if part.isdigit() else (0, 0, part) for part in _PART.findall(version)
    ]
