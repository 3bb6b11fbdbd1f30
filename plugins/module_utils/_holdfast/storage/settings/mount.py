# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which file system a folder is on, and whether an NFS mount of it is safe for leases and records.

sanlock and the records use direct I/O, which goes to the server each time.  So attributes that the
client caches do no harm, and are not judged here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

NFS = ("nfs", "nfs4")

_ESCAPE = re.compile(r"\\([0-7]{3})")
"""How a blank and the like are written in mountinfo (proc_pid_mountinfo(5))."""

_SOFT = ("soft", "softerr")


@dataclass(frozen=True)
class Mount:
    """A mounted file system: where, what, of which type, and its options."""

    point: str
    source: str
    type: str
    options: Mapping[str, str]


def mount_of(path: str, mountinfo: str) -> Mount:
    """Return the mount that *path* is in; *mountinfo* is the text of /proc/self/mountinfo.

    *path* has no symbolic links.  Of two mounts in one place the later one counts.
    """
    found = Mount("/", "", "", {})
    for line in mountinfo.splitlines():
        mount = _mount(line)
        inside = path == mount.point or path.startswith(mount.point.rstrip("/") + "/")
        if inside and len(mount.point) >= len(found.point):
            found = mount
    return found


def _mount(line: str) -> Mount:
    """Return the mount of a line; options of the mount and of the file system count alike."""
    own, _separator, system = line.partition(" - ")
    fields, (kind, source, more) = own.split(), system.split(" ", 2)
    options = dict(_option(word) for word in f"{fields[5]},{more}".split(","))
    return Mount(_unescaped(fields[4]), _unescaped(source), kind, options)


def _option(word: str) -> tuple[str, str]:
    name, _equals, value = word.partition("=")
    return name, value


def _unescaped(word: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 8)), word)


def check_nfs(mount: Mount) -> list[str]:
    """Return what is wrong with the options of an NFS mount, each as a sentence."""
    options, here = mount.options, f"{mount.point} ({mount.source})"
    problems = []
    if any(word in options for word in _SOFT):
        problems.append(
            f"{here} is mounted soft: a write that was reported as failed may still reach the"
            " server later; mount it with hard."
        )
    if "ro" in options:
        problems.append(f"{here} is mounted read-only; mount it with rw.")
    if options.get("sec", "sys") != "sys":
        problems.append(
            f"{here} is mounted with sec={options['sec']}: sanlock has no ticket that is renewed,"
            " and loses the host lease when one expires; export and mount it with sec=sys."
        )
    if options.get("proto", "tcp") in ("udp", "udp6"):
        problems.append(
            f"{here} is mounted with proto={options['proto']}: fragments of two writes can be mixed"
            " up; mount it with proto=tcp."
        )
    if options.get("vers") == "2":
        problems.append(f"{here} is mounted with vers=2; mount it with vers=4.2, or vers=3.")
    return problems
