# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node of the testbed as a test sees it: what can be asked of it and done to it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from testbed import network, power

NAMESPACES = ("-m", "-u", "-i", "-n", "-p", "-C", "-T", "-r", "-w")
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
}
DISK = "3G"
CALL = 60.0
"""Seconds for a command in a node, unless the test says otherwise."""

BOOT = 60.0

NO_UNLIMITED_MEMLOCK = "[Service]\nEnvironment=SANLOCK_PRIVILEGED=0\n"
"""A machine that may not raise its own limits cannot let sanlock do so (setrlimit(2))."""

DAEMONS = ("holdfast-lrm.service", "holdfast-crm.service")
CLOCKS = tuple(f"/run/systemd/system/{unit}.d" for unit in DAEMONS)
"""Where it stands that a node's daemons read a wrong clock, until its next start."""

DEVICES = (
    "c /dev/loop-control 0660 root disk - 10:237\n"
    "c /dev/kvm 0660 root root - 10:232\n"
    + "".join(f"b /dev/loop{number} 0660 root disk - 7:{number}\n" for number in range(64))
)
"""Devices of a node, as of any machine: file systems in files of the shared storage need loop
devices, and virtual machines KVM, which is there if it is on the machine of the testbed."""


class Node:
    """Node *number* of the lab whose folder is *lab*; ``name`` is n1, n2 and so on."""

    def __init__(self, lab: Path, number: int) -> None:
        self.number = number
        self.name = f"n{number}"
        self.address = network.address(network.CLUSTER, number)
        self._here = lab / self.name

    def create(
        self, base: Sequence[Path], names: Mapping[str, str], key: str, clock_start: float
    ) -> None:
        """Install the node: a fresh disk over *base*, and a clock that starts at a time."""
        for name in ("disk", "root", "storage", "tree/upper/etc", "tree/upper/root/.ssh"):
            (self._here / name).mkdir(parents=True)
        for name in ("tree/work", "tree/upper/etc/systemd/system/sanlock.service.d"):
            (self._here / name).mkdir(parents=True)
        (self._here / "watchdog").touch()
        for number, folder in enumerate(base):
            (self._here / f"base-{number}").symlink_to(folder)
        (self._here / "start").write_text(f"testbed.machine {self.number} {clock_start}")
        (self._here / "path").write_text("ok")
        etc = self._here / "tree/upper/etc"
        (etc / "hostname").write_text(f"{self.name}\n")
        (etc / "machine-id").write_text(f"{uuid.uuid4().hex}\n")
        hosts = [f"{address} {name}\n" for name, address in names.items()]
        (etc / "hosts").write_text("127.0.0.1 localhost\n" + "".join(hosts))
        (etc / "systemd/system/sanlock.service.d/testbed.conf").write_text(NO_UNLIMITED_MEMLOCK)
        (etc / "tmpfiles.d").mkdir()
        (etc / "tmpfiles.d/testbed.conf").write_text(DEVICES)
        ssh = self._here / "tree/upper/root/.ssh"
        ssh.chmod(0o700)
        ssh.parent.chmod(0o700)
        (ssh / "authorized_keys").write_text(key)
        self.reinstall()

    def reinstall(self) -> None:
        """Give the node, which is off, a fresh disk, as from the installer."""
        image = self._here / "disk.img"
        image.unlink(missing_ok=True)
        subprocess.run(
            [
                *("mkfs.ext4", "-q", "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard"),
                *("-m", "0", "-d", str(self._here / "tree"), str(image), DISK),
            ],
            check=True,
            capture_output=True,
            timeout=CALL,
        )

    def switch_on(self) -> None:
        """Give the node power; ``wait_booted`` waits for it."""
        power.switch_on(self.number)

    def cut_power(self) -> None:
        """Take the node's power away."""
        power.cut(self.number)

    def reset(self) -> None:
        """Press the node's reset button."""
        power.reset(self.number)

    def shut_down(self) -> None:
        """Shut the node down in an orderly way, and wait until it is off."""
        power.press_button(self.number)

    @property
    def is_on(self) -> bool:
        """Whether the node has power."""
        return power.is_on(self.number)

    def boot_id(self) -> int:
        """Return what is another number at each start of the node, 0 while it is off."""
        try:
            return power.first_process(self.number)
        except ProcessLookupError:
            return 0

    def wait_booted(self, timeout: float = BOOT) -> None:
        """Wait until the node answers over ssh."""
        until = time.monotonic() + timeout
        while not self.answers():
            if time.monotonic() > until:
                raise TimeoutError(f"{self.name} does not answer: {self.console()[-800:]}")
            time.sleep(0.05)

    def freeze(self) -> None:
        """Let the node's system hang."""
        power.freeze(self.number)

    def thaw(self) -> None:
        """Let a system that hangs go on."""
        power.freeze(self.number, False)

    def pause(self) -> None:
        """Let the whole machine stand still, its watchdog too."""
        power.pause(self.number)

    def resume(self) -> None:
        """Let a machine that was paused go on."""
        power.pause(self.number, False)

    def cut_network(self, way: str = network.BOTH, which: int = network.CLUSTER) -> None:
        """Cut the node's cable, in one direction or both."""
        network.cut(self.name, which, way)

    def lose_packets(self, percent: int) -> None:
        """Let that many of a hundred packets of the node's cable get lost, in each direction."""
        network.lose(self.name, percent)

    def heal_network(self, which: int = network.CLUSTER) -> None:
        """Repair the node's cable."""
        network.heal(self.name, which)

    def storage(self, word: str) -> None:
        """Set what becomes of this node's storage operations: ok, hang, fail or slow:SECONDS."""
        new = self._here / "path.new"
        new.write_text(word)
        new.rename(self._here / "path")

    def fill_disk(self) -> None:
        """Leave not one free block on the node's own disk."""
        # What it gives away unwritten, then the rest: to write all of it may take minutes.
        free = "$(df -B1 --output=avail /var/tmp | tail -n 1)"
        script = f"fallocate -l {free} /var/tmp/filler; cat /dev/zero >>/var/tmp/filler"
        self.run("sh", "-c", script, check=False, timeout=5 * CALL)

    def free_disk(self) -> None:
        """Undo ``fill_disk``."""
        self.run("rm", "-f", "/var/tmp/filler")

    def skew_clock(self, by: str) -> None:
        """Let the clock of the wall be wrong for the node's daemons, by as much as +1d or -2h.

        All nodes have the kernel's clock; what these daemons read of it is bent.
        """
        fake = self.run("sh", "-c", "echo /usr/lib/*/faketime/libfaketime.so.1").stdout.strip()
        wrong = f"LD_PRELOAD={fake} FAKETIME={by} FAKETIME_DONT_FAKE_MONOTONIC=1"
        for folder in CLOCKS:
            self.run("mkdir", "-p", folder)
            text = f"[Service]\nEnvironment={wrong}\n"
            self.run("sh", "-c", f"cat >{folder}/clock.conf", text=text)
        self._restart_daemons()

    def right_clock(self) -> None:
        """Undo ``skew_clock``."""
        self.run("rm", "-f", *(f"{folder}/clock.conf" for folder in CLOCKS))
        self._restart_daemons()

    def _restart_daemons(self) -> None:
        self.run("systemctl", "daemon-reload")
        for unit in DAEMONS:
            # One after the other, as one of them is to answer for the node.
            self.run("systemctl", "restart", unit)

    def kill(self, unit: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to the main process of a unit and to nothing else."""
        self.run("systemctl", "kill", "--kill-whom=main", f"--signal={number.name}", unit)

    def run(
        self, *words: str, check: bool = True, timeout: float = CALL, text: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the node, as its root; not over the network."""
        first = power.first_process(self.number)
        return subprocess.run(
            ["nsenter", "-t", str(first), *NAMESPACES, "--", *words],
            env=ENVIRONMENT,
            input=text,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=check,
        )

    def holdfast(self, *words: str) -> Any:
        """Return what a subcommand of ``holdfast`` answers as JSON."""
        return json.loads(self.run("holdfast", *words, check=False).stdout)

    def unit_state(self, unit: str) -> str:
        """Return a unit's state as systemd tells it: active, failed and so on."""
        return self.run("systemctl", "is-active", unit, check=False).stdout.strip()

    def main_process(self, unit: str) -> int:
        """Return the number that a unit's main process has in the node, 0 if it has none."""
        shown = self.run("systemctl", "show", "-P", "MainPID", unit)
        return int(shown.stdout.strip() or 0)

    def journal(self, *words: str) -> str:
        """Return the node's journal of this boot, as *words* of journalctl choose."""
        return self.run("journalctl", "-b", "--no-pager", "-o", "short-precise", *words).stdout

    def console(self) -> str:
        """Return what the node's machine said itself."""
        return (self._here / "console").read_text(errors="replace")

    def watchdog_fired(self) -> int:
        """Return how often the node's watchdog has reset it."""
        return (self._here / "watchdog.log").read_text().count("fired ")

    def command_lines(self) -> dict[int, list[str]]:
        """Return the command line of each of the node's processes, by the lab's numbers."""
        found = {}
        for pid in power.processes(self.number):
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
            except OSError:
                continue
            found[pid] = [os.fsdecode(word) for word in words]
        return found

    def answers(self) -> bool:
        """Return whether the node's system answers over the network, by its ssh."""
        try:
            with socket.create_connection((self.address, 22), timeout=1.0) as talk:
                return talk.recv(4) == b"SSH-"
        except OSError:
            return False


def wait_until(condition: Callable[[], Any], timeout: float, what: str) -> Any:
    """Wait until *condition* returns something true, and return that.

    One that takes long is asked less often, so that waiting takes no CPU time from the nodes.
    """
    until = time.monotonic() + timeout
    while True:
        begun = time.monotonic()
        found = condition()
        if found:
            return found
        if time.monotonic() > until:
            raise TimeoutError(f"not within {timeout:.0f} s: {what}")
        time.sleep(min(max(0.1, 3.0 * (time.monotonic() - begun)), 1.0))


def hold_still(seconds: float) -> None:
    """Let time pass in which something must not happen."""
    time.sleep(seconds)
