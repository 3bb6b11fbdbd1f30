# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The disk image and the kernel of the lab's machines, built once and kept in the tests' cache.

The image is the testbed's base with its layer ``machine``, the modules of the kernel, and the
units with which a machine gets its name, its addresses and its files at boot.  The kernel is that
of Debian's package user-mode-linux: an ordinary program, so the lab needs no KVM.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from testbed import bases, lab
from testbed.bases import CACHE, BaseError, base

RELEASE = "13"
"""Debian's release on the machines."""

PACKAGE = "user-mode-linux"
SIZE = "3G"
"""Size of the disk; the file takes only as much as is written."""

DEADLINE = 600.0

SEED = """#!/bin/sh
# Files of this machine alone, from its second disk; then its name and its addresses.
set -e
tar -xf /dev/ubdb -C / --no-same-owner
hostname -F /etc/hostname
ip link set lo up
while read -r place address; do
  ip link set "vec$place" name "eth$place"
  ip address add "$address" dev "eth$place"
  ip link set "eth$place" up
done </etc/lab-addresses
"""

SEED_UNIT = """[Unit]
DefaultDependencies=no
After=systemd-remount-fs.service systemd-udevd.service systemd-tmpfiles-setup-dev.service
Before=sysinit.target network-pre.target
Wants=network-pre.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/lab-seed
"""

GOODBYE = """#!/bin/sh
# The kernel ends in the same way for both; the machine has to know whether it starts again.
echo "lab: $1" >/dev/console
"""

FILES = {
    "usr/local/sbin/lab-seed": SEED,
    "usr/lib/systemd/system-shutdown/lab": GOODBYE,
    "etc/systemd/system/lab-seed.service": SEED_UNIT,
    "etc/fstab": "",
    # The lab has no name server, and to ask for one takes seconds each time.
    "etc/resolv.conf": "",
    "etc/modules-load.d/lab.conf": "softdog\n",
    # As this kernel has it, a watchdog that was opened once could not be released any more.
    "etc/modprobe.d/lab.conf": "options softdog nowayout=0\n",
    "etc/ssh/sshd_config.d/lab.conf": "UsePAM no\nPrintMotd no\n",
    "etc/systemd/system.conf.d/lab.conf": "[Manager]\nDefaultTimeoutStopSec=30s\n",
}
"""What the image has besides its packages."""

LINKS = {
    "etc/systemd/system/sysinit.target.wants/lab-seed.service": "../lab-seed.service",
    **{
        f"etc/systemd/system/{unit}": "/dev/null"
        for unit in (
            *("getty@tty1.service", "systemd-pstore.service", "systemd-hwdb-update.service"),
            *("modprobe@drm.service", "modprobe@efi_pstore.service", "nfs-blkmap.service"),
            *("rpc-statd-notify.service", "lvm2-monitor.service"),
            *("serial-getty@.service", "systemd-udev-settle.service"),
        )
    },
    **{
        f"etc/systemd/system-generators/{name}": "/dev/null"
        for name in (
            *("systemd-debug-generator", "systemd-getty-generator", "systemd-gpt-auto-generator"),
            *("systemd-hibernate-resume-generator", "systemd-rc-local-generator"),
            *("systemd-run-generator", "systemd-ssh-generator", "systemd-system-update-generator"),
            *("systemd-sysv-generator", "systemd-tpm2-generator"),
        )
    },
}
"""Links in the image; what links to /dev/null has no use in the lab.  Each reload of systemd runs
all generators, and processes are slow to start on a kernel in user mode."""


@dataclass(frozen=True)
class Image:
    """A folder in the cache with the disk of all machines, which is only read, and the kernel."""

    folder: Path

    @property
    def disk(self) -> Path:
        return self.folder / "disk.img"

    @property
    def kernel(self) -> Path:
        return self.folder / "linux"


def image() -> Image:
    """Return the image; outside of a lab, which has no way to a mirror, it is built if missing.

    Raises ``BaseError`` with the last lines of what the tools printed.
    """
    folder = CACHE / f"vmlab-{RELEASE}-{_recipe()}"
    if folder.exists():
        return Image(folder)
    if lab.folder() is not None:
        raise BaseError("There is no image of the lab yet; build it: tests/vmlab/vmlab image")
    upon, root = base(RELEASE, "machine")
    with (CACHE / "lock-vmlab").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            with tempfile.TemporaryDirectory(prefix="new-", dir=CACHE) as place:
                _build(Path(place), (upon, root))
                (Path(place) / "image").rename(folder)
            for old in set(CACHE.glob(f"vmlab-{RELEASE}-*")) - {folder}:
                shutil.rmtree(old)
    return Image(folder)


def _recipe() -> str:
    """Return a hash of all that the image is made of."""
    text = Path(__file__).read_bytes() + Path(bases.__file__).read_bytes()
    return hashlib.sha256(text).hexdigest()[:12]


def _build(place: Path, layers: tuple[Path, ...]) -> None:
    """Build kernel and disk in *place*/image."""
    done, upper = place / "image", place / "upper"
    for folder in (done, upper, place / "work", place / "merged", place / "package"):
        folder.mkdir()
    _run(place, f"cd {place}/package; apt-get -q download {PACKAGE}; dpkg -x *.deb .")
    uml = place / "package/usr"
    shutil.copy(uml / "bin/linux.uml", done / "linux")
    for name, text in FILES.items():
        path = upper / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if text.startswith("#!") else 0o644)
    for name, target in LINKS.items():
        path = upper / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)
    lower = ":".join(str(layer) for layer in layers)
    steps = (
        f"mount -t overlay -o lowerdir={lower},upperdir={upper},workdir={place}/work"
        f" machine {place}/merged",
        f"mkdir -p {place}/merged/usr/lib/modules",
        f"cp -a {uml}/lib/uml/modules/. {place}/merged/usr/lib/modules/",
        f"for one in {place}/merged/usr/lib/modules/*;"
        f' do chroot {place}/merged depmod "$(basename "$one")"; done',
        # No journal of the image's own has to be replayed, and no checksums: the kernel is older.
        f"mke2fs -q -t ext4 -O ^metadata_csum_seed,^orphan_file -E root_owner=0:0"
        f" -d {place}/merged {done}/disk.img {SIZE}",
    )
    _run(place, "\n".join(steps))


def _run(place: Path, script: str) -> None:
    """Run a script in namespaces of its own, so that no mount is left."""
    alone = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
    done = subprocess.run(
        [*alone, "sh", "-ec", script],
        env={**os.environ, "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    if done.returncode != 0:
        tail = " / ".join(done.stdout.strip().splitlines()[-4:])
        raise BaseError(f"{shlex.quote(script[:60])} in {place}: {tail}")
