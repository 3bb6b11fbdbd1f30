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
import shutil
import subprocess
import tempfile
from pathlib import Path

from debian_mirror import mirror
from testbed import lab

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "tests" / "testbed"

SUITES = {"13": "trixie", "12": "bookworm"}
"""Debian's releases: with sanlock 3.9 (any watchdog timeout), and with 3.8 (always 60 s)."""

SYSTEM = (
    *("systemd", "systemd-sysv", "dbus", "openssh-server", "iproute2", "iputils-ping"),
    *("procps", "psmisc", "kmod", "sudo", "python3", "python3-apt", "tzdata"),
)
CLUSTER = ("sanlock", "python3-sanlock", "resource-agents", "ipmitool")
"""What the roles install; on a node of the testbed they find it installed."""

FENCE_AGENTS = {"13": "fence-agents-ipmilan", "12": "fence-agents"}
"""Debian 13 has a package for each agent; all of them would be 2 GB."""

MASKED = (
    *("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer"),
    *("fstrim.timer", "console-getty.service", "getty.target", "systemd-networkd.service"),
    *("e2scrub_reap.service", "systemd-timesyncd.service"),
)
"""Units that a test node has no use for, or that would disturb a measurement."""

NEEDLESS = ("var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc", "usr/share/man")

BUILD_DEADLINE = 1200.0


class BaseError(Exception):
    """A base could not be built; the text says why."""


def base(release: str) -> Path:
    """Return the root folder of Debian *release*, such as "13"; build it if it is not there.

    It is built outside of a lab, which has no way to a mirror.  Raises ``BaseError`` with the
    last lines of what the tools said, and in a lab if there is none.
    """
    root = CACHE / f"debian-{release}-{_recipe()}"
    if lab.folder() is not None:
        if root.exists():
            return root
        raise BaseError(
            f"There is no base of Debian {release} yet, and a lab has no network to build one"
            f" with; build it first: tests/testbed/testbed base {release}"
        )
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"lock-{release}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not root.exists():
            _build(release, root)
            for old in set(CACHE.glob(f"debian-{release}-*")) - {root}:
                shutil.rmtree(old)
    return root


def _recipe() -> str:
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]


def _build(release: str, root: Path) -> None:
    """Build in a folder beside *root* that becomes it when it is complete."""
    with tempfile.TemporaryDirectory(prefix="new-", dir=CACHE) as folder:
        new = Path(folder) / "root"
        log = Path(folder) / "log"
        _run(log, "debootstrap", "--variant=minbase", SUITES[release], new, mirror())
        _install(log, new, FENCE_AGENTS[release])
        _make_quiet(new)
        new.rename(root)


def _install(log: Path, root: Path, fence_agents: str) -> None:
    """Install the packages without starting a daemon: the machine that builds is not the node."""
    policy = root / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    chosen = ("-o", "Acquire::Retries=3", "-o", "APT::Sandbox::User=root")
    apt = ("chroot", root, "apt-get", "-q", "-y", *chosen)
    _run(log, *apt, "install", "--no-install-recommends", *SYSTEM, *CLUSTER, fence_agents)
    policy.unlink()


def _make_quiet(root: Path) -> None:
    for place in NEEDLESS:
        for path in (root / place).glob("*"):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
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
