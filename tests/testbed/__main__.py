# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command of the testbed: up, down, tests and faults."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path

from testbed import lab, network
from testbed.bases import LAYERS, SUITES, BaseError, base
from testbed.long import add_options as add_long_options
from testbed.long import run as run_long
from testbed.node import Node
from testbed.persistent_lab import PersistentLab
from testbed.soak_faults import add_soak_options, run_soak

LAB = PersistentLab("testbed")

RELEASE = "13"
"""Debian's release on the nodes by default."""

MISSING = 69
"""Exit status if this machine cannot run a testbed (EX_UNAVAILABLE of sysexits.h)."""


def main() -> int:
    options = _parser().parse_args()
    why = lab.missing()
    if why:
        sys.stderr.write(f"testbed: {why}\n")
        return MISSING
    try:
        result: int = options.act(options)
    except BaseError as error:
        sys.stderr.write(f"testbed: {error}\n")
        return 1
    return result


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="testbed", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="SUBCOMMAND")

    check = commands.add_parser("check", help="show what this machine lacks for a testbed")
    check.set_defaults(act=lambda options: 0)

    build = commands.add_parser("base", help="build the base of the nodes, unless it is cached")
    build.add_argument("release", choices=sorted(SUITES), help="of Debian")
    build.add_argument("--layer", choices=sorted(LAYERS), default="", help="further packages")
    build.set_defaults(act=_base)

    run = commands.add_parser("run", help="run a command in a new lab, without nodes")
    run.add_argument("command", nargs=argparse.REMAINDER)
    run.set_defaults(act=lambda options: lab.run(_without_dashes(options.command)))

    test = commands.add_parser("test", help="run all tests of the testbed (30 minutes)")
    test.add_argument("options", nargs=argparse.REMAINDER, help="--, then options of pytest")
    test.set_defaults(act=_test)

    soak = commands.add_parser("soak", help="random faults for hours, judged from outside")
    add_soak_options(soak)
    soak.set_defaults(act=run_soak)

    long = commands.add_parser("long", help="tests and measurements that take hours")
    add_long_options(long)
    long.set_defaults(act=run_long)

    up = commands.add_parser("up", help="start a testbed")
    up.add_argument("--nodes", type=int, default=3)
    up.add_argument("--release", choices=sorted(SUITES), default=RELEASE, help="of Debian")
    up.add_argument("--layer", choices=sorted(LAYERS), default="", help="further packages")
    up.set_defaults(act=_up)

    serve = commands.add_parser("serve")
    serve.add_argument("nodes", type=int)
    serve.add_argument("release")
    serve.add_argument("layer", nargs="?", default="")
    serve.set_defaults(act=_serve)

    commands.add_parser("down", help="stop the testbed").set_defaults(
        act=lambda options: LAB.down()
    )

    enter = commands.add_parser("enter", help="run a command in the testbed's lab, or a shell")
    enter.add_argument("command", nargs=argparse.REMAINDER)
    enter.set_defaults(act=lambda options: LAB.enter(_without_dashes(options.command) or ["bash"]))

    on_node = commands.add_parser("on", help="run a command on a node")
    on_node.add_argument("node")
    on_node.add_argument("command", nargs=argparse.REMAINDER)
    on_node.set_defaults(act=LAB.in_lab(_run_on))

    fault = commands.add_parser("fault", help="inject a fault into a node, or end it")
    fault.add_argument("node")
    fault.add_argument("what", choices=sorted(FAULTS), metavar="|".join(sorted(FAULTS)))
    fault.add_argument(
        "more",
        nargs="*",
        help="direction (network), state (storage), offset (clock) or unit (kill)",
    )
    fault.set_defaults(act=LAB.in_lab(_fault))
    return parser


FAULTS = {
    "power-off": Node.cut_power,
    "power-on": Node.switch_on,
    "reset": Node.reset,
    "shut-down": Node.shut_down,
    "freeze": Node.freeze,
    "thaw": Node.thaw,
    "network": Node.cut_network,
    "network-ok": Node.heal_network,
    "storage": Node.storage,
    "fill-disk": Node.fill_disk,
    "free-disk": Node.free_disk,
    "clock": Node.skew_clock,
    "clock-ok": Node.right_clock,
    "kill": Node.kill,
    "board-off": lambda node: network.unplug_board(node.number),
    "board-on": lambda node: network.plug_board(node.number),
}


def _base(options: argparse.Namespace) -> int:
    for folder in base(options.release, options.layer):
        sys.stdout.write(f"{folder}\n")
    return 0


def _test(options: argparse.Namespace) -> int:
    """Run the tests of labs themselves outside of a lab, then the others in labs."""
    here = Path(__file__).resolve().parent
    pytest = [sys.executable, "-m", "pytest"]
    outside = str(here / "test_lab.py")
    status = subprocess.run([*pytest, outside], check=False).returncode
    release = os.environ.get("HOLDFAST_TESTBED_RELEASE", RELEASE)
    workloads, devices = str(here / "workloads"), str(here / "devices")
    more = _without_dashes(options.options)
    base(release)
    nodes = [*pytest, str(here), f"--ignore={outside}", f"--ignore={workloads}"]
    status = lab.run([*nodes, f"--ignore={devices}", *more]) or status
    status = lab.run([*pytest, devices, *more]) or status
    if release != RELEASE:
        # The services are the same on all releases.
        return status
    base(RELEASE, "workloads")
    return lab.run([*pytest, workloads, *more]) or status


def _up(options: argparse.Namespace) -> int:
    if LAB.found():
        sys.stderr.write("testbed: the lab is up already; stop it with: testbed down\n")
        return 2
    base(options.release, options.layer)
    return LAB.up(["serve", str(options.nodes), options.release, options.layer])


def _serve(options: argparse.Namespace) -> int:
    from testbed.whole import Testbed

    with Testbed(options.nodes, options.release, options.layer) as testbed:
        for node in testbed.nodes.values():
            sys.stdout.write(f"{node.name} {node.address}\n")
        sys.stdout.write(f"ready; ssh needs the key {testbed.key}\n")
        sys.stdout.flush()
        signal.pause()
    return 0


def _run_on(options: argparse.Namespace) -> int:
    from testbed.node import ENVIRONMENT, NAMESPACES
    from testbed.power import first_process

    first = first_process(int(options.node[1:]))
    words = _without_dashes(options.command) or ["bash"]
    command = ["nsenter", "-t", str(first), *NAMESPACES, "--", *words]
    return subprocess.run(command, env=ENVIRONMENT, check=False).returncode


def _fault(options: argparse.Namespace) -> int:
    place = lab.folder()
    if place is None:
        return 2
    FAULTS[options.what](Node(place, int(options.node[1:])), *options.more)
    return 0


def _without_dashes(words: list[str]) -> list[str]:
    return words[1:] if words[:1] == ["--"] else words


if __name__ == "__main__":
    raise SystemExit(main())
