# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command of the lab of machines with kernels of their own: up, down, tests and faults."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
from pathlib import Path

from testbed import lab
from testbed.bases import BaseError
from testbed.persistent_lab import PersistentLab
from vmlab.images import EMULATED, image
from vmlab.node import Machine
from vmlab.soak import add_soak_options, run_soak
from vmlab.storage import BACKENDS, NUMBER

LAB = PersistentLab("vmlab")

MISSING = 69
"""Exit status if this machine cannot run a lab (EX_UNAVAILABLE of sysexits.h)."""

BACKEND = "HOLDFAST_VMLAB_BACKEND"
"""Environment variable that names the backend of the tests."""

IO_TIMEOUT = "HOLDFAST_VMLAB_IO_TIMEOUT"
"""Environment variable that sets the I/O timeout of the host leases in the tests, in seconds."""

EMULATOR = "qemu-system-x86_64"

HERE = Path(__file__).parent
CRASH = HERE / "test_crash.py"
"""The tests that need only the emulated machine."""

FAULTS = {
    "power-off": Machine.cut_power,
    "power-on": Machine.switch_on,
    "reset": Machine.reset,
    "shut-down": Machine.shut_down,
    "freeze": Machine.freeze,
    "thaw": Machine.thaw,
    "panic": Machine.panic,
    "network": Machine.cut_network,
    "network-ok": Machine.heal_network,
    "one-path": lambda machine: machine.cut_paths(1),
    "paths": Machine.cut_paths,
    "paths-ok": Machine.heal_paths,
}


def main() -> int:
    options = _parser().parse_args()
    why = missing()
    if why:
        sys.stderr.write(f"vmlab: {why}\n")
        return MISSING
    try:
        result: int = options.act(options)
    except BaseError as error:
        sys.stderr.write(f"vmlab: {error}\n")
        return 1
    return result


def missing() -> str:
    """Return why this machine cannot run a lab, "" if it can."""
    if shutil.which("apt-get") is None:
        return "the kernel of the machines is a package of Debian, and there is no apt-get here"
    if not Path("/dev/net/tun").exists():
        return "there is no /dev/net/tun here"
    return lab.missing()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="vmlab", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="SUBCOMMAND")

    commands.add_parser("check", help="show what this machine lacks for a lab").set_defaults(
        act=lambda options: 0
    )
    commands.add_parser("image", help="build kernel and disk, unless they are cached").set_defaults(
        act=lambda options: print(image()) or 0
    )

    test = commands.add_parser("test", help="run the tests, with a new lab for each backend")
    test.add_argument(
        "backends",
        nargs="*",
        metavar="BACKEND",
        help=f"one of {', '.join(BACKENDS)}; all by default",
    )
    test.add_argument(
        "--cuts", type=int, default=2, help="power cuts with a fence device (default: 2)"
    )
    test.add_argument("--lease-cuts", type=int, default=1, help="power cuts without (default: 1)")
    test.add_argument("--io-timeout", choices=("2", "10"), default="2", help="seconds (default: 2)")
    test.add_argument("-k", dest="choose", default="", help="run only these tests, as with pytest")
    test.set_defaults(act=_test)

    text = "crash a machine on emulated hardware: crash dump, hardware watchdog"
    commands.add_parser("crash", help=text).set_defaults(act=_crash)

    soak = commands.add_parser("soak", help="random faults for hours, judged from outside")
    add_soak_options(soak)
    soak.set_defaults(act=run_soak)

    up = commands.add_parser("up", help="start three nodes and the storage machine")
    up.add_argument("--nodes", type=int, default=3)
    up.add_argument("--backend", choices=sorted(BACKENDS), default="lun")
    up.set_defaults(act=_up)

    serve = commands.add_parser("serve")
    serve.add_argument("nodes", type=int)
    serve.add_argument("backend")
    serve.set_defaults(act=_serve)

    commands.add_parser("down", help="stop the lab").set_defaults(act=lambda options: LAB.down())

    enter = commands.add_parser("enter", help="run a command in the lab, or a shell")
    enter.add_argument("command", nargs=argparse.REMAINDER)
    enter.set_defaults(act=lambda options: LAB.enter(options.command or ["bash"]))

    on_machine = commands.add_parser("on", help="run a command on a machine: n1, storage")
    on_machine.add_argument("machine")
    on_machine.add_argument("command", nargs=argparse.REMAINDER)
    on_machine.set_defaults(act=LAB.in_lab(_run_on))

    fault = commands.add_parser("fault", help="inject a fault into a machine, or end it")
    fault.add_argument("machine")
    fault.add_argument("what", choices=sorted(FAULTS), metavar="|".join(sorted(FAULTS)))
    fault.set_defaults(act=LAB.in_lab(_fault))
    return parser


def _test(options: argparse.Namespace) -> int:
    """Run the tests on each backend in turn, each in a lab of its own."""
    unknown = set(options.backends) - set(BACKENDS)
    if unknown:
        sys.stderr.write(f"vmlab: no such backend: {', '.join(sorted(unknown))}\n")
        return 2
    image()
    words = [sys.executable, "-m", "pytest", "-rA", str(HERE), f"--ignore={CRASH}"]
    if options.choose:
        words += ["-k", options.choose]
    os.environ["HOLDFAST_VMLAB_CUTS"] = str(options.cuts)
    os.environ["HOLDFAST_VMLAB_LEASE_CUTS"] = str(options.lease_cuts)
    os.environ[IO_TIMEOUT] = options.io_timeout
    status = 0
    for backend in options.backends or BACKENDS:
        os.environ[BACKEND] = backend
        status = lab.run(words) or status
    return status


def _crash(_options: argparse.Namespace) -> int:
    """Run the crash tests, in a lab with one emulated machine."""
    if shutil.which(EMULATOR) is None:
        sys.stderr.write(f"vmlab: {EMULATOR} of the package qemu-system-x86 is not installed\n")
        return MISSING
    image(EMULATED)
    return lab.run([sys.executable, "-m", "pytest", "-rA", str(CRASH)])


def _up(options: argparse.Namespace) -> int:
    if LAB.found():
        sys.stderr.write("vmlab: the lab is up already; stop it with: vmlab down\n")
        return 2
    image()
    return LAB.up(["serve", str(options.nodes), options.backend])


def _serve(options: argparse.Namespace) -> int:
    from vmlab.whole import VmLab

    with VmLab(BACKENDS[options.backend], options.nodes) as machines:
        machines.backend.attach(list(machines.nodes.values()))
        for machine in machines.machines:
            sys.stdout.write(f"{machine.name} {machine.address}\n")
        sys.stdout.write(f"ready; ssh needs the key {machines.key}\n")
        sys.stdout.flush()
        signal.pause()
    return 0


def _run_on(options: argparse.Namespace) -> int:
    done = _machine(options.machine).run(*options.command, check=False)
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    return done.returncode


def _fault(options: argparse.Namespace) -> int:
    FAULTS[options.what](_machine(options.machine))
    return 0


def _machine(name: str) -> Machine:
    place = lab.folder()
    if place is None:
        raise SystemExit("vmlab: there is no lab here; start one with: vmlab up")
    return Machine(place, NUMBER if name == "storage" else int(name[1:]))


if __name__ == "__main__":
    raise SystemExit(main())
