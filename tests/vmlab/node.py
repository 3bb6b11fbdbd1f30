# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine of the lab: the testbed's node, with a kernel of its own, controlled over ssh."""

from __future__ import annotations

import shlex
import subprocess
import tarfile
import time
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

from testbed import power
from testbed.network import BOTH, CLUSTER
from testbed.node import CALL, Node
from vmlab import network
from vmlab.images import USER_MODE, Kind, image
from vmlab.machine import PANICKED, RESET

BOOT = 600.0
"""Seconds until a machine has to answer; on an idle host it takes 25 s."""

SHUTDOWN = 240.0
NO_ANSWER = 255
"""Exit status of ssh itself."""

SSH = (
    *("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"),
    *("-o", "LogLevel=ERROR", "-o", "ConnectTimeout=15", "-o", "BatchMode=yes"),
    *("-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"),
    *("-o", "ControlMaster=auto", "-o", "ControlPersist=yes"),
)


class Machine(Node):
    """Machine *number* of the lab in the folder *lab*; commands run on it over ssh."""

    kind: Kind = USER_MODE
    program = "vmlab.machine"
    """The Python module that runs while the machine has power."""

    fired = RESET
    """Text on the console when the watchdog resets the machine."""

    def __init__(self, lab: Path, number: int) -> None:
        super().__init__(lab, number)
        self._key = lab / "key"

    def install(self, files: Mapping[str, str]) -> None:
        """Install the machine, with *files* for it alone, by path."""
        for name in ("memory", "uml"):
            (self._here / name).mkdir(parents=True)
        (self._here / "image").symlink_to(image(self.kind))
        (self._here / "start").write_text(f"{self.program} {self.number}")
        (self._here / "boots").write_text("0")
        (self._here / "console").touch()
        self._write_seed(files)
        self.reinstall()

    def reinstall(self) -> None:
        """Give the machine, which is off, a blank disk on top of the image."""
        # The kernel creates the file.
        (self._here / "disk.cow").unlink(missing_ok=True)

    def add_disk(self, name: str, size: int) -> None:
        """Add a blank disk of *size* bytes, before the machine is switched on."""
        with (self._here / f"lun-{name}").open("wb") as file:
            file.truncate(size)

    def boot_id(self) -> int:
        """Return how often the kernel has been started, 0 while the machine is off."""
        return int((self._here / "boots").read_text()) if self.is_on else 0

    def wait_booted(self, timeout: float = BOOT) -> None:
        """Wait until the machine answers over ssh."""
        super().wait_booted(timeout)

    def shut_down(self) -> None:
        """Shut the machine down cleanly, and wait until it is off."""
        self.run("systemctl", "--no-block", "poweroff", check=False)
        until = time.monotonic() + SHUTDOWN
        while self.is_on:
            if time.monotonic() > until:
                raise TimeoutError(f"{self.name} did not shut down within {SHUTDOWN:.0f} s")
            time.sleep(0.1)

    def freeze(self) -> None:
        """Stop the processor: the kernel hangs, and with it the watchdog timer of the kernel."""
        power.pause(self.number)

    def thaw(self) -> None:
        """Let the processor continue."""
        power.pause(self.number, False)

    def panic(self) -> None:
        """Crash the kernel."""
        words = ("systemd-run", "--no-block", "sh", "-c", "echo c >/proc/sysrq-trigger")
        self.run(*words, check=False)

    def has_panicked(self) -> bool:
        """Return whether the machine has power and its kernel has panicked."""
        return self.is_on and self.console().rstrip().endswith(PANICKED)

    def cut_network(self, way: str = BOTH, which: int = CLUSTER) -> None:
        """Cut one of the machine's network cables, in one direction or both."""
        network.cut(self.number, which, way)

    def heal_network(self, which: int = CLUSTER) -> None:
        """Repair one of the machine's network cables."""
        network.heal(self.number, which)

    def cut_paths(self, count: int = len(network.PATHS)) -> None:
        """Cut the machine off from the storage, on *count* of the two storage networks."""
        for path in network.PATHS[:count]:
            network.cut(self.number, path)

    def heal_paths(self) -> None:
        """Repair both storage networks."""
        for path in network.PATHS:
            network.heal(self.number, path)

    def run(
        self, *words: str, check: bool = True, timeout: float = 2 * CALL, text: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on the machine as root, over ssh.

        Raises ``ProcessLookupError`` if the machine is off or does not answer.
        """
        boot = self.boot_id()
        if boot == 0:
            raise ProcessLookupError(f"{self.name} is off")
        # One control connection for each boot: an old one no longer works.
        control = f"ControlPath=/run/lock/{self.name}-{boot}"
        done = subprocess.run(
            [
                *("ssh", "-i", str(self._key), *SSH, "-o", control, f"root@{self.address}"),
                shlex.join(words),
            ],
            input=text or "",
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if done.returncode == NO_ANSWER:
            raise ProcessLookupError(f"{self.name} does not answer: {done.stderr.strip()}")
        if check and done.returncode != 0:
            raise subprocess.CalledProcessError(
                done.returncode, words, f"{done.stdout}{done.stderr}"
            )
        return done

    def watchdog_fired(self) -> int:
        """Return how often the watchdog has reset the machine."""
        return self.console().count(self.fired)

    def _write_seed(self, files: Mapping[str, str]) -> None:
        with tarfile.open(self._here / "seed.tar", "w") as archive:
            for name, text in files.items():
                content = text.encode()
                member = tarfile.TarInfo(name)
                member.size = len(content)
                member.mode = 0o755 if text.startswith("#!") else 0o644
                archive.addfile(member, BytesIO(content))
