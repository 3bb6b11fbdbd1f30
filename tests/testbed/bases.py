# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the nodes of the testbed boot from: a Debian that is built once and then only read.

A base is made of Debian's packages by debootstrap and kept in the cache of the tests
under a hash of this very file, so that a change of what it is made of makes another.
Nodes have no network to the outside: all that a role may want to install is in it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from debian_mirror import mirror
from testbed import lab

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "tests" / "testbed"

SUITES = {"13": "trixie", "12": "bookworm"}
"""Debian's releases: with sanlock 3.9 (any watchdog timeout), and with 3.8 (always 60 s)."""

SYSTEM = (
    *("systemd", "systemd-sysv", "dbus", "openssh-server", "iproute2", "iputils-ping"),
    *("procps", "psmisc", "kmod", "sudo", "python3", "python3-apt", "tzdata"),
    "libfaketime",
)
CLUSTER = ("sanlock", "python3-sanlock", "resource-agents", "ipmitool")
"""What the roles install; on a node of the testbed they find it installed."""

FENCE_AGENTS = {"13": "fence-agents-ipmilan", "12": "fence-agents"}
"""Debian 13 has a package for each agent; all of them would be 2 GB."""

LAYERS = {
    "workloads": (
        *("postgresql", "libvirt-daemon-system", "libvirt-daemon-driver-qemu", "libvirt-clients"),
        "qemu-system-x86",
    ),
    "machine": (
        *("udev", "e2fsprogs", "nfs-common", "nfs-kernel-server", "rpcbind", "open-iscsi"),
        *("multipath-tools", "lvm2", "sg3-utils"),
    ),
    "emulated": ("udev", "linux-image-amd64", "kdump-tools", "makedumpfile", "fence-agents-kdump"),
}
"""What some nodes have besides, by name, all stopped: of what an operator makes services; what a
machine with a kernel of its own needs for storage over the network; what one on emulated hardware
needs to start, and to write a dump after a crash."""

MASKED = (
    *("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer"),
    *("fstrim.timer", "console-getty.service", "getty.target", "systemd-networkd.service"),
    *("e2scrub_reap.service", "systemd-timesyncd.service"),
)
"""Units that a test node has no use for, or that would disturb a measurement."""

NEEDLESS = ("var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc", "usr/share/man")

APT = ("-o", "Acquire::Retries=3", "-o", "APT::Sandbox::User=root")

BUILD_DEADLINE = 1200.0


class BaseError(Exception):
    """A base could not be built; the text says why."""


def base(release: str, layer: str = "") -> tuple[Path, ...]:
    """Return what a node of Debian *release*, such as "13", boots from: folders, the top first.

    With *layer* that one of ``LAYERS`` lies upon the base.  What is not there is built, but
    outside of a lab, which has no way to a mirror.  Raises ``BaseError`` with the last lines
    of what the tools said, and in a lab if something is missing.
    """
    root = CACHE / f"debian-{release}-{_recipe()}"
    upon = CACHE / f"{layer}-{release}-{_recipe()}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"lock-{release}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _provide(root, lambda new, log: _build(release, new, log))
        if layer:
            _provide(upon, lambda new, log: _build_layer(layer, root, new, log))
    return (upon, root) if layer else (root,)


def _provide(folder: Path, build: Callable[[Path, Path], None]) -> None:
    """Have *folder* built beside its place, which it takes when it is complete."""
    if folder.exists():
        return
    kind = folder.name.rpartition("-")[0]
    if lab.folder() is not None:
        raise BaseError(
            f"There is no {kind} for the testbed yet, and a lab has no network to build it"
            f" with; build it first: tests/testbed/testbed base --help"
        )
    with tempfile.TemporaryDirectory(prefix="new-", dir=CACHE) as place:
        new = Path(place) / "root"
        build(new, Path(place) / "log")
        new.rename(folder)
    for old in set(CACHE.glob(f"{kind}-*")) - {folder}:
        shutil.rmtree(old)


def _recipe() -> str:
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]


def _build(release: str, new: Path, log: Path) -> None:
    _run(log, "debootstrap", "--variant=minbase", SUITES[release], new, mirror())
    with _no_daemon_starts(new):
        _run(log, *_apt(new), *SYSTEM, *CLUSTER, FENCE_AGENTS[release])
    _make_small(new)
    _make_quiet(new)


def _build_layer(layer: str, root: Path, new: Path, log: Path) -> None:
    """Install the packages of a layer over the base and keep what that changed."""
    work, merged = new.with_name("work"), new.with_name("merged")
    for folder in (new, work, merged):
        folder.mkdir()
    parts = f"lowerdir={root},upperdir={new},workdir={work}"
    steps = (
        ("mount", "-t", "overlay", "-o", parts, "layer", str(merged)),
        # The packages of a kernel do not install without it.
        ("mount", "-t", "proc", "proc", str(merged / "proc")),
        ("chroot", str(merged), "apt-get", "-q", *APT, "update"),
        tuple(str(word) for word in (*_apt(merged), *LAYERS[layer])),
    )
    with _no_daemon_starts(new):
        # In one process, with whose namespace the mount ends.
        _run(log, "sh", "-ec", "\n".join(shlex.join(step) for step in steps))
    _make_small(new)
    desired = new / "etc/systemd/system"
    for link in [*desired.glob("*.wants/*"), *desired.glob("*.service"), *desired.glob("*.socket")]:
        link.unlink()


def _apt(root: Path) -> tuple[object, ...]:
    return ("chroot", root, "apt-get", "-q", "-y", *APT, "install", "--no-install-recommends")


@contextmanager
def _no_daemon_starts(root: Path) -> Iterator[None]:
    """Let no package start a daemon: the machine that builds is not the node."""
    policy = root / "usr/sbin/policy-rc.d"
    policy.parent.mkdir(parents=True, exist_ok=True)
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    yield
    policy.unlink()


def _make_small(root: Path) -> None:
    for place in NEEDLESS:
        for path in (root / place).glob("*"):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _make_quiet(root: Path) -> None:
    units = root / "etc/systemd/system"
    for unit in MASKED:
        (units / unit).unlink(missing_ok=True)
        (units / unit).symlink_to("/dev/null")
    # Installing enabled them; on a node it is the roles that do.
    for unit in ("sanlock.service", "wdmd.service"):
        for link in units.glob(f"*.wants/{unit}"):
            link.unlink()
    (root / "etc/machine-id").write_text("")
    journal = root / "etc/systemd/journald.conf.d"
    journal.mkdir(parents=True)
    (journal / "testbed.conf").write_text(
        "[Journal]\nStorage=persistent\nRateLimitIntervalSec=0\nSystemMaxUse=64M\n"
    )
    (root / "var/log/journal").mkdir(exist_ok=True)
    (root / "etc/ssh/sshd_config.d/testbed.conf").write_text(
        "UseDNS no\nPermitRootLogin prohibit-password\nMaxStartups 100\n"
    )


def _run(log: Path, *words: object) -> None:
    """Run one step in namespaces of its own: whatever becomes of it, no mount is left."""
    alone = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
    try:
        with log.open("ab") as said:
            status = subprocess.run(
                [*alone, *(str(word) for word in words)],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                timeout=BUILD_DEADLINE,
                check=False,
            ).returncode
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BaseError(f"{words[0]} for a base of the testbed: {error}") from error
    if status != 0:
        tail = " / ".join(log.read_text(errors="replace").strip().splitlines()[-4:])
        raise BaseError(f"{words[0]} for a base of the testbed ended with {status}: {tail}")
