# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The disk images and the kernels of the lab's machines, built once and kept in the tests' cache.

An image is the testbed's base with a layer, the modules of the kernel, and the units that give a
machine its name, its addresses and its files at boot.  Most machines have the kernel of Debian's
package user-mode-linux: an ordinary program, so the lab needs no KVM.  An emulated machine has
Debian's standard kernel, with a hardware watchdog and a crash kernel.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed import bases, lab
from testbed.bases import CACHE, BaseError, base

RELEASE = "13"
"""Debian's release on the machines."""

PACKAGE = "user-mode-linux"
SIZE = "3G"
"""Size of the disk; the file is sparse."""

DEADLINE = 600.0

SEED = """#!/bin/sh
# Unpack this machine's own files from its second disk, then set its name and addresses.
set -e
for disk in /dev/ubdb /dev/vdb; do
  [ ! -b "$disk" ] || tar -xf "$disk" -C / --no-same-owner
done
hostname -F /etc/hostname
ip link set lo up
while read -r place address; do
  [ ! -e "/sys/class/net/vec$place" ] || ip link set "vec$place" name "eth$place"
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
# The kernel ends in the same way for a power-off and a reboot; this tells the machine which it is.
echo "lab: $1" >/dev/console
"""

FILES = {
    "usr/local/sbin/lab-seed": SEED,
    "usr/lib/systemd/system-shutdown/lab": GOODBYE,
    "etc/systemd/system/lab-seed.service": SEED_UNIT,
    "etc/fstab": "",
    # The lab has no name server, and each query would take seconds.
    "etc/resolv.conf": "",
    "etc/ssh/sshd_config.d/lab.conf": "UsePAM no\nPrintMotd no\n",
    "etc/systemd/system.conf.d/lab.conf": "[Manager]\nDefaultTimeoutStopSec=30s\n",
}
"""Files of every image, besides those of its packages."""

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
"""Links of every image.  Units and generators that the lab does not need link to /dev/null: each
reload of systemd runs all generators, and processes are slow to start on a kernel in user mode."""


@dataclass(frozen=True)
class Kind:
    """A kind of machine: the name of its image, the layer on the testbed's base, its own files.

    *kernel* is the shell script that installs kernel and modules: ``$root`` is the root of the
    disk, and files in ``$image`` are kept beside the disk.
    """

    name: str
    layer: str
    files: Mapping[str, str]
    kernel: str


USER_MODE = Kind(
    "vmlab",
    "machine",
    {
        "etc/modules-load.d/lab.conf": "softdog\n",
        # This kernel's default is nowayout: a watchdog that was opened could never be released.
        "etc/modprobe.d/lab.conf": "options softdog nowayout=0\n",
    },
    f"""
mkdir "$place/package"
(cd "$place/package"; apt-get -q download {PACKAGE}; dpkg -x *.deb .)
cp "$place/package/usr/bin/linux.uml" "$image/linux"
mkdir -p "$root/usr/lib/modules"
cp -a "$place/package/usr/lib/uml/modules/." "$root/usr/lib/modules/"
for one in "$root"/usr/lib/modules/*; do chroot "$root" depmod "$(basename "$one")"; done
""",
)

EMULATED = Kind(
    "vmlab-emulated",
    "emulated",
    {
        "etc/modules-load.d/lab.conf": "i6300esb\n",
        # Each driver costs an emulated processor a second or more at boot.
        "etc/modprobe.d/lab.conf": "blacklist ata_piix\nblacklist floppy\nblacklist pcspkr\n",
        "etc/initramfs-tools/conf.d/lab": "MODULES=list\nRESUME=none\n",
        "etc/initramfs-tools/modules": "virtio_pci\nvirtio_blk\nvirtio_net\next4\n",
    },
    """
mount -t proc proc "$root/proc"
version=$(basename "$root"/usr/lib/modules/*)
chroot "$root" mkinitramfs -o /initrd "$version"
umount "$root/proc"
mv "$root/initrd" "$image/initrd"
cp "$root/boot/vmlinuz-$version" "$image/linux"
""",
)


def image(kind: Kind = USER_MODE) -> Path:
    """Return the folder in the cache with disk and kernel of all machines of a kind.

    It is built if it is missing, but not inside a lab, which cannot reach a mirror.  Raises
    ``BaseError`` with the last lines of output of the tools.
    """
    folder = CACHE / f"{kind.name}-{RELEASE}-{_recipe()}"
    if folder.exists():
        return folder
    if lab.folder() is not None:
        raise BaseError("There is no image of the lab yet; build it: tests/vmlab/vmlab image")
    layers = base(RELEASE, kind.layer)
    with (CACHE / f"lock-{kind.name}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            with tempfile.TemporaryDirectory(prefix="new-", dir=CACHE) as place:
                _build(kind, Path(place), layers)
                (Path(place) / "image").rename(folder)
            for old in set(CACHE.glob(f"{kind.name}-{RELEASE}-*")) - {folder}:
                shutil.rmtree(old)
    return folder


def _recipe() -> str:
    """Return a hash of everything that defines the images."""
    text = Path(__file__).read_bytes() + Path(bases.__file__).read_bytes()
    return hashlib.sha256(text).hexdigest()[:12]


def _build(kind: Kind, place: Path, layers: tuple[Path, ...]) -> None:
    """Build kernel and disk in *place*/image."""
    upper = place / "upper"
    for name in ("image", "upper", "work", "merged"):
        (place / name).mkdir()
    for name, text in {**FILES, **kind.files}.items():
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
        f"place={shlex.quote(str(place))} image=$place/image root=$place/merged",
        f"mount -t overlay machine $root"
        f" -o lowerdir={lower},upperdir=$place/upper,workdir=$place/work",
        kind.kernel,
        # The features are newer than the kernel in user mode (6.1).
        f"mke2fs -q -t ext4 -O ^metadata_csum_seed,^orphan_file -E root_owner=0:0"
        f" -d $root $image/disk.img {SIZE}",
    )
    _run(place, "\n".join(steps))


def _run(place: Path, script: str) -> None:
    """Run a script in namespaces of its own, so that no mount remains."""
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
