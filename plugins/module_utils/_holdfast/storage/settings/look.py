# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read from a node how it uses its storage, and check that the leases are safe with that."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ...errors import AgentError, StorageError
from ...process.run import run
from ..lockspace.host_timing import LeaseTiming
from .login import UNIT, check_login
from .mount import NFS, check_nfs, mount_of
from .paths import QUEUE, DevicePath, PathsOfDevice, check_paths
from .volumes import check_volumes, read_attribute, targets_in

ANSWER_SECONDS = 20.0
"""The time limit of a question to multipathd, systemd or the device mapper."""

_POLLING = re.compile(r"^\s*polling_interval\s+\"?(\d+)", re.MULTILINE)
_SESSION = re.compile(r"/(session\d+)/")
_REMOTE_PORT = re.compile(r"/(rport-[\d:-]+)/")
_DEFAULT_POLLING = 5


@dataclass(frozen=True)
class StorageSettings:
    """What kind of storage a path leads to, and what is wrong with its settings."""

    kind: str
    problems: list[str]


def look_settings(path: str, timing: LeaseTiming, *, probe: bool) -> StorageSettings:
    """Return what a node's settings of its storage are worth for leases with *timing*.

    To recognise an export that squashes root a file is made in the folder and removed again,
    if *probe* is set.
    """
    try:
        found = _nearest(path)
        mode = found.stat().st_mode
    except OSError as error:
        if error.errno == errno.ESTALE:
            raise StorageError(
                f"{path} has a stale file handle: the server exports another file system under this"
                " name than when it was mounted; unmount it (umount -l) and mount it again."
            ) from error
        raise
    if stat.S_ISBLK(mode):
        return _device(os.path.realpath(found), timing)
    mount = mount_of(str(found), Path("/proc/self/mountinfo").read_text(encoding="utf-8"))
    if mount.type not in NFS:
        return StorageSettings(mount.type, [])
    problems = check_nfs(mount)
    if not problems and is_root_squashed(found, probe=probe):
        problems = [
            f"The export {mount.source} on {mount.point} squashes root, as whom the daemons and the"
            " roles use it; export it with no_root_squash for the nodes."
        ]
    return StorageSettings("nfs", problems)


def _nearest(path: str) -> Path:
    """Return *path* without symbolic links, or the folder above it that exists."""
    found = Path(os.path.realpath(path))
    while not os.path.lexists(found) and found != found.parent:
        found = found.parent
    return found


def is_root_squashed(folder: Path, *, probe: bool) -> bool:
    """Return whether the server of *folder* takes this root for another user."""
    if os.geteuid() != 0:
        return False
    if not os.access(folder, os.W_OK):
        return True
    if not probe:
        return False
    try:
        descriptor, name = tempfile.mkstemp(prefix=".holdfast-probe-", dir=folder)
    except PermissionError:
        return True
    try:
        return os.fstat(descriptor).st_uid != 0
    finally:
        os.close(descriptor)
        with suppress(OSError):
            Path(name).unlink()


def _device(device: str, timing: LeaseTiming) -> StorageSettings:
    """Return what the paths below a block device are worth."""
    name, system = Path(device).name, Path("/sys")
    kind, problems = "device", check_volumes(name, system, targets_of)
    luns = list(luns_below(name, system))
    for found in luns:
        kind = "multipath" if found.multipath else kind
        problems += check_paths(found, timing)
    if any(path.transport == "iscsi" for found in luns for path in found.paths):
        problems += check_login(_login_unit())
    return StorageSettings(kind, problems)


def luns_below(name: str, system: Path) -> Iterator[PathsOfDevice]:
    """Give the LUNs that a block device consists of; *system* is where sysfs is."""
    place = system / "class/block" / name
    if (place / "partition").exists():
        yield from luns_below(place.resolve().parent.name, system)
        return
    parts = sorted(part.name for part in (place / "slaves").glob("*"))
    if read_attribute(place / "dm/uuid").startswith("mpath-"):
        paths = [path for part in parts if (path := path_of(part, system)) is not None]
        shown = read_attribute(place / "dm/name") or name
        yield PathsOfDevice(shown, paths, True, retries_of(shown), polling_interval())
    elif parts:
        for part in parts:
            yield from luns_below(part, system)
    else:
        path = path_of(name, system)
        if path is not None:
            yield PathsOfDevice(name, [path], False)


def path_of(name: str, system: Path) -> DevicePath | None:
    """Return a SCSI device as a path, None if it is reached neither over iSCSI nor over FC."""
    place = f"{(system / 'class/block' / name / 'device').resolve()}/"
    session = _SESSION.search(place)
    if session:
        number = session[1].removeprefix("session")
        connection = system / f"class/iscsi_connection/connection{number}:0"
        return DevicePath(
            name,
            "iscsi",
            _seconds(connection / "recv_tmo", 0),
            _seconds(connection / "ping_tmo", 0),
            _seconds(system / "class/iscsi_session" / session[1] / "recovery_tmo", QUEUE),
        )
    port = _REMOTE_PORT.search(place)
    if port:
        wait = _seconds(system / "class/fc_remote_ports" / port[1] / "fast_io_fail_tmo", QUEUE)
        return DevicePath(name, "fc", 0, 0, wait)
    return None


def _seconds(path: Path, otherwise: int) -> int:
    """Return the number in a file of sysfs, *otherwise* for "off" and the like."""
    text = read_attribute(path)
    return int(text) if text.isdigit() else otherwise


def retries_of(name: str) -> int:
    """Return for how many looks I/O waits when a multipath device has no path."""
    for line in _multipathd("show", "maps", "raw", "format", "%n|%Q").splitlines():
        shown, _bar, queueing = line.partition("|")
        if shown.strip() == name:
            return retries_in(queueing)
    raise StorageError(
        f"multipathd does not know {name}, so nothing fails its I/O when all paths are lost; see"
        " multipathd show maps."
    )


def retries_in(queueing: str) -> int:
    """Return the number of looks in multipathd's word for it: "on", "off", "-", "4 chk"."""
    number = queueing.strip().partition(" ")[0]
    if number.isdigit():
        return int(number)
    return QUEUE if number == "on" else 0


def polling_interval() -> int:
    """Return how many seconds are between two looks of multipathd."""
    found = _POLLING.search(_multipathd("show", "config", "local"))
    return int(found[1]) if found else _DEFAULT_POLLING


def _login_unit() -> str:
    """Return what systemd says of the unit that logs in to iSCSI targets at boot."""
    words = ("show", "--property=LoadState,Restart", UNIT)
    return _answer("systemctl", *words, found="path over iSCSI", remedy="see systemctl status")


def targets_of(volume: str) -> list[str]:
    """Return the kinds of the device mapper's targets of which a logical volume consists."""
    table = _answer("dmsetup", "table", volume, found="logical volume", remedy="see dmsetup info")
    return targets_in(table)


def _multipathd(*words: str) -> str:
    """Return what multipathd answers."""
    remedy = "start it: systemctl start multipathd"
    return _answer("multipathd", *words, found="multipath device", remedy=remedy)


def _answer(program: str, *words: str, found: str, remedy: str) -> str:
    """Return what a program of the system answers about what was *found* on the node."""
    path = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if path is None:
        raise StorageError(f"There is a {found}, and no {program} on this node.")
    try:
        outcome = run([path, *words], deadline=ANSWER_SECONDS)
    except AgentError as error:
        raise StorageError(f"{program} cannot be asked: {error}") from error
    if outcome.exit_status != 0:
        said = outcome.stderr.strip() or outcome.stdout.strip()
        raise StorageError(f"{program} does not answer ({said}); {remedy}.")
    return outcome.stdout
