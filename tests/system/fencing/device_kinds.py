# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One simulated device of each kind that runs on a single machine, all made alike.

Each is made by a context manager that takes an empty folder and gives a ``Device``.  What a
kind needs is in ``missing``, by the name of the Debian package.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.holdfast.ha.tests.system.fencing import (
    ipmi_boards,
    redfish_board,
    snmp_outlets,
)

DEADLINE = 20.0
MODULES = Path("/usr/lib/x86_64-linux-gnu/fence-virt")
WATCHDOG_WAIT = 2


@dataclass(frozen=True)
class Device:
    """A device with one machine, which is on.

    ``is_on`` looks at the machine past the agent; None where there is nothing to look at.
    ``wrong_plug`` is a plug that it does not have, ``wrong_secret`` parameters with which it
    refuses us, where that exists.  ``hang`` lets it take what it is sent and not answer, or
    ends that; ``be_deaf`` lets it say that it switches and not do it.
    """

    agent: str
    parameters: Mapping[str, object]
    evidence: str
    plug: str | None = None
    is_on: Callable[[], bool] | None = None
    wrong_plug: Mapping[str, object] | None = None
    wrong_secret: Mapping[str, object] = field(default_factory=dict)
    hang: Callable[[bool], None] | None = None
    be_deaf: Callable[[bool], None] | None = None


@dataclass(frozen=True)
class Kind:
    """How a kind of device is made here, and which programs of which packages that takes.

    ``faults`` are those of a ``Device`` that this kind can have, by the names there.
    """

    make: Callable[[Path], AbstractContextManager[Device]]
    programs: Mapping[str, str]
    faults: frozenset[str] = frozenset()
    needs_root: bool = False

    def missing(self) -> str:
        """Return why it cannot be made here, "" when it can."""
        path = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
        for program, package in self.programs.items():
            if shutil.which(program, path=path) is None:
                return f"{program} of the package {package} is not installed"
        if self.needs_root and os.geteuid() != 0:
            return "a loop device needs root"
        return ""


@contextmanager
def _ipmi(_folder: Path) -> Iterator[Device]:
    with ipmi_boards.boards(1) as (board,):

        def hang(desired: bool) -> None:
            (board.be_stuck if desired else board.go_on)()

        yield Device(
            agent="fence_ipmilan",
            parameters=board.parameters,
            evidence="device-verified",
            is_on=lambda: board.machine_runs,
            wrong_secret={"username": "nobody"},
            hang=hang,
            be_deaf=board.be_deaf,
        )
        board.go_on()


@contextmanager
def _snmp(_folder: Path, version: str) -> Iterator[Device]:
    with snmp_outlets.outlets(["other", "node"]) as made:

        def hang(desired: bool) -> None:
            made.silent = desired

        def be_deaf(desired: bool) -> None:
            made.deaf = desired

        yield Device(
            agent="fence_apc_snmp",
            parameters={**made.parameters, "snmp_version": version},
            evidence="device-verified",
            plug="2",
            is_on=lambda: made.states[2] == snmp_outlets.ON,
            wrong_plug={"plug": "7"},
            wrong_secret={"community": "not-the-one"},
            hang=hang,
            be_deaf=be_deaf,
        )
        if made.states[1] != snmp_outlets.ON:
            raise RuntimeError("the outlet of another machine was switched")


def _snmp_1(folder: Path) -> AbstractContextManager[Device]:
    return _snmp(folder, "1")


def _snmp_2c(folder: Path) -> AbstractContextManager[Device]:
    return _snmp(folder, "2c")


@contextmanager
def _redfish(folder: Path) -> Iterator[Device]:
    with redfish_board.redfish_board(folder) as board:

        def hang(desired: bool) -> None:
            board.silent = desired

        def be_deaf(desired: bool) -> None:
            board.deaf = desired

        yield Device(
            agent="fence_redfish",
            parameters=board.parameters,
            evidence="device-verified",
            is_on=lambda: board.power == "On",
            wrong_plug={"systems_uri": "/redfish/v1/Systems/7"},
            wrong_secret={"password": "not-the-one"},
            hang=hang,
            be_deaf=be_deaf,
        )


@contextmanager
def _sbd(folder: Path) -> Iterator[Device]:
    """A disk with slots; nobody reads them, which is why its word is only assumed."""
    image = folder / "disk"
    with image.open("wb") as file:
        file.truncate(10 << 20)
    disk = _run("losetup", "--find", "--show", str(image)).strip()
    try:
        times = ("-1", str(WATCHDOG_WAIT), "-4", str(2 * WATCHDOG_WAIT))
        _run("sbd", "-d", disk, *times, "create")
        _run("sbd", "-d", disk, "allocate", "node")
        yield Device(
            agent="fence_sbd",
            parameters={"devices": disk},
            evidence="assumed",
            plug="node",
            wrong_plug={"plug": "nobody"},
        )
    finally:
        _run("losetup", "--detach", disk)


@contextmanager
def _virt(folder: Path) -> Iterator[Device]:
    """fence_virtd with the test driver of libvirt, which has one machine in its memory."""
    key = folder / "key"
    key.write_bytes(os.urandom(512))
    (folder / "wrong-key").write_bytes(os.urandom(512))
    port = _free_port()
    configuration = folder / "fence_virt.conf"
    configuration.write_text(
        f'fence_virtd {{ listener = "tcp"; backend = "libvirt"; module_path = "{MODULES}"; }}\n'
        f'listeners {{ tcp {{ key_file = "{key}"; address = "127.0.0.1"; port = "{port}";'
        ' family = "ipv4"; } }\n'
        'backends { libvirt { uri = "test:///default"; } }\n'
    )
    command = ["fence_virtd", "-F", "-f", str(configuration), "-p", str(folder / "pid")]
    with _daemon(command, folder / "log") as daemon:
        _wait_for_port(port, daemon)

        def hang(desired: bool) -> None:
            daemon.send_signal(signal.SIGSTOP if desired else signal.SIGCONT)

        yield Device(
            agent=shutil.which("fence_virt") or "fence_virt",
            parameters={"ipaddr": "127.0.0.1", "ipport": port, "key_file": str(key)},
            evidence="device-verified",
            plug="test",
            wrong_plug={"plug": "nobody"},
            wrong_secret={"key_file": str(folder / "wrong-key")},
            hang=hang,
        )
        hang(False)


_ALL = frozenset({"hang", "be_deaf", "wrong_secret", "wrong_plug"})
_SNMP = {"snmpget": "snmp", "fence_apc_snmp": "fence-agents"}

KINDS = {
    "ipmi": Kind(
        _ipmi,
        {"ipmi_sim": "openipmi", "ipmitool": "ipmitool", "fence_ipmilan": "fence-agents"},
        _ALL - {"wrong_plug"},
    ),
    "snmp 1": Kind(_snmp_1, _SNMP, _ALL),
    "snmp 2c": Kind(_snmp_2c, _SNMP, _ALL),
    "redfish": Kind(_redfish, {"openssl": "openssl", "fence_redfish": "fence-agents"}, _ALL),
    "sbd": Kind(
        _sbd,
        {"sbd": "sbd", "fence_sbd": "fence-agents", "losetup": "mount"},
        frozenset({"wrong_plug"}),
        needs_root=True,
    ),
    "virt": Kind(
        _virt,
        {"fence_virtd": "fence-virtd", "fence_virt": "fence-virt"},
        _ALL - {"be_deaf"},
    ),
}


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


@contextmanager
def _daemon(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        daemon = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield daemon
    finally:
        daemon.kill()
        daemon.wait(timeout=60)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _wait_for_port(port: int, daemon: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + DEADLINE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if daemon.poll() is not None or time.monotonic() > until:
                raise RuntimeError("fence_virtd does not listen") from None
            time.sleep(0.05)
