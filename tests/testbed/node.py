# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node of the testbed: its power, its faults, and commands on it."""

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
"""Seconds for a command on a node by default."""

BOOT = 60.0

NO_UNLIMITED_MEMLOCK = "[Service]\nEnvironment=SANLOCK_PRIVILEGED=0\n"
"""A machine that may not raise its own limits cannot let sanlock do so (setrlimit(2))."""

DAEMONS = ("holdfast-lrm.service", "holdfast-crm.service")
CLOCKS = tuple(f"/run/systemd/system/{unit}.d" for unit in DAEMONS)
"""Folders of the drop-ins that give a node's daemons a wrong clock until the next boot."""

DEVICES = (
    "c /dev/loop-control 0660 root disk - 10:237\n"
    "c /dev/kvm 0660 root root - 10:232\n"
    + "".join(f"b /dev/loop{number} 0660 root disk - 7:{number}\n" for number in range(64))
)
"""Devices of a node: loop devices for file systems in files on the shared storage, and KVM for
virtual machines, if the machine of the testbed has it."""


class Node:
    """Node *number* of the lab in the folder *lab*; its ``name`` is n1, n2 and so on."""

    def __init__(self, lab: Path, number: int) -> None:
        self.number = number
        self.name = f"n{number}"
        self.address = network.address(network.CLUSTER, number)
        self._here = lab / self.name

    def create(
        self, base: Sequence[Path], names: Mapping[str, str], key: str, clock_start: float
    ) -> None:
        """Install the node: a blank disk on *base*, and a monotonic clock that starts at a time."""
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
        """Give the node, which is off, a blank disk, as an installer does."""
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
        """Switch the node on; ``wait_booted`` waits for it."""
        power.switch_on(self.number)

    def cut_power(self) -> None:
        """Cut the node's power."""
        power.cut(self.number)

    def reset(self) -> None:
        """Press the node's reset button."""
        power.reset(self.number)

    def shut_down(self) -> None:
        """Shut the node down cleanly, and wait until it is off."""
        power.press_button(self.number)

    @property
    def is_on(self) -> bool:
        """Whether the node has power."""
        return power.is_on(self.number)

    def boot_id(self) -> int:
        """Return a number that is different after each start of the node, 0 while it is off."""
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
        """Let a frozen system continue."""
        power.freeze(self.number, False)

    def pause(self) -> None:
        """Pause the whole machine, with its watchdog."""
        power.pause(self.number)

    def resume(self) -> None:
        """Resume a paused machine."""
        power.pause(self.number, False)

    def cut_network(self, way: str = network.BOTH, which: int = network.CLUSTER) -> None:
        """Cut the node's network cable, in one direction or both."""
        network.cut(self.name, which, way)

    def lose_packets(self, percent: int) -> None:
        """Lose *percent* of the packets on the node's network cable, in each direction."""
        network.lose(self.name, percent)

    def heal_network(self, which: int = network.CLUSTER) -> None:
        """Repair the node's network cable."""
        network.heal(self.name, which)

    def storage(self, word: str) -> None:
        """Set how this node's storage behaves: ok, hang, fail or slow:SECONDS."""
        new = self._here / "path.new"
        new.write_text(word)
        new.rename(self._here / "path")

    def fill_disk(self) -> None:
        """Fill the node's own disk to the last block."""
        # Allocate most of it unwritten, as writing all of it may take minutes.
        free = "$(df -B1 --output=avail /var/tmp | tail -n 1)"
        script = f"fallocate -l {free} /var/tmp/filler; cat /dev/zero >>/var/tmp/filler"
        self.run("sh", "-c", script, check=False, timeout=5 * CALL)

    def free_disk(self) -> None:
        """Undo ``fill_disk``."""
        self.run("rm", "-f", "/var/tmp/filler")

    def skew_clock(self, by: str) -> None:
        """Make the wall clock wrong for the node's daemons, for example by +1d or -2h.

        All nodes share the kernel's clock, so only what the daemons read is changed.
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
            # One after the other, as one of them has to answer for the node.
            self.run("systemctl", "restart", unit)

    def kill(self, unit: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to the main process of a unit only."""
        self.run("systemctl", "kill", "--kill-whom=main", f"--signal={number.name}", unit)

    def run(
        self, *words: str, check: bool = True, timeout: float = CALL, text: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on the node as root, without the network."""
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
        """Return the JSON output of a subcommand of ``holdfast``."""
        return json.loads(self.run("holdfast", *words, check=False).stdout)

    def unit_state(self, unit: str) -> str:
        """Return the state of a systemd unit: active, failed and so on."""
        return self.run("systemctl", "is-active", unit, check=False).stdout.strip()

    def main_process(self, unit: str) -> int:
        """Return the process id of a unit's main process on the node, 0 if it has none."""
        shown = self.run("systemctl", "show", "-P", "MainPID", unit)
        return int(shown.stdout.strip() or 0)

    def journal(self, *words: str) -> str:
        """Return the node's journal of this boot; *words* are options of journalctl."""
        return self.run("journalctl", "-b", "--no-pager", "-o", "short-precise", *words).stdout

    def console(self) -> str:
        """Return the console output of the node's machine."""
        return (self._here / "console").read_text(errors="replace")

    def watchdog_fired(self) -> int:
        """Return how often the node's watchdog has reset it."""
        return (self._here / "watchdog.log").read_text().count("fired ")

    def command_lines(self) -> dict[int, list[str]]:
        """Return the command lines of the node's processes by process id in the lab."""
        found = {}
        for pid in power.processes(self.number):
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
            except OSError:
                continue
            found[pid] = [os.fsdecode(word) for word in words]
        return found

    def answers(self) -> bool:
        """Return whether the node's sshd answers over the network."""
        try:
            with socket.create_connection((self.address, 22), timeout=1.0) as talk:
                return talk.recv(4) == b"SSH-"
        except OSError:
            return False


def wait_until(condition: Callable[[], Any], timeout: float, what: str) -> Any:
    """Wait until *condition* returns something true, and return that.

    The longer a call takes, the longer the pause after it, so that the nodes keep the processors.
    Raises ``TimeoutError`` with *what* after *timeout* seconds.
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
    """Let time pass in which something must not happen, or a fault lasts."""
    time.sleep(seconds)
