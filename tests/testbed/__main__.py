# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command of the testbed: one testbed on this machine, up and down, and faults by hand."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from testbed import lab, network
from testbed.bases import LAYERS, SUITES, BaseError, base
from testbed.long import add_options as add_long_options
from testbed.long import run as run_long
from testbed.node import Node
from testbed.soak import add_options as add_soak_options
from testbed.soak import run as run_soak

RECORD = Path("/run/holdfast-testbed.json")
"""Which process keeps the lab that ``up`` started."""

RELEASE = "13"
"""Debian's release on the nodes, if none is asked for."""

MISSING = 69
"""Exit status where there can be no testbed (EX_UNAVAILABLE of sysexits.h)."""


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

    check = commands.add_parser("check", help="say what is missing here for a testbed")
    check.set_defaults(act=lambda options: 0)

    build = commands.add_parser("base", help="build what nodes boot from, if it is not there")
    build.add_argument("release", choices=sorted(SUITES), help="of Debian")
    build.add_argument("--layer", choices=sorted(LAYERS), default="", help="what they have besides")
    build.set_defaults(act=_base)

    run = commands.add_parser("run", help="run a command in a lab of its own, without nodes yet")
    run.add_argument("command", nargs=argparse.REMAINDER)
    run.set_defaults(act=lambda options: lab.run(_without_dashes(options.command)))

    test = commands.add_parser("test", help="run all tests of the testbed, about 30 minutes")
    test.add_argument("options", nargs=argparse.REMAINDER, help="-- and options of pytest")
    test.set_defaults(act=_test)

    soak = commands.add_parser("soak", help="random faults for long, judged from outside")
    add_soak_options(soak)
    soak.set_defaults(act=run_soak)

    long = commands.add_parser("long", help="all that takes too long for every run of the tests")
    add_long_options(long)
    long.set_defaults(act=run_long)

    up = commands.add_parser("up", help="switch a testbed on")
    up.add_argument("--nodes", type=int, default=3)
    up.add_argument("--release", choices=sorted(SUITES), default=RELEASE, help="of Debian")
    up.add_argument("--layer", choices=sorted(LAYERS), default="", help="what they have besides")
    up.set_defaults(act=_up)

    serve = commands.add_parser("serve")
    serve.add_argument("nodes", type=int)
    serve.add_argument("release")
    serve.add_argument("layer", nargs="?", default="")
    serve.set_defaults(act=_serve)

    commands.add_parser("down", help="take it away again").set_defaults(act=_down)

    enter = commands.add_parser("enter", help="run a command in the testbed's lab, or a shell")
    enter.add_argument("command", nargs=argparse.REMAINDER)
    enter.set_defaults(act=lambda options: _enter(_without_dashes(options.command) or ["bash"]))

    on_node = commands.add_parser("on", help="run a command on a node")
    on_node.add_argument("node")
    on_node.add_argument("command", nargs=argparse.REMAINDER)
    on_node.set_defaults(act=_in_lab(_run_on))

    fault = commands.add_parser("fault", help="do something to a node, or end it")
    fault.add_argument("node")
    fault.add_argument("what", choices=sorted(FAULTS), metavar="|".join(sorted(FAULTS)))
    fault.add_argument(
        "more", nargs="*", help="which way; how the storage is; how wrong; which unit"
    )
    fault.set_defaults(act=_in_lab(_fault))
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
    """Run what needs to be outside of a lab, then the rest in one."""
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
        # Services are the same on both; what differs are the nodes.
        return status
    base(RELEASE, "workloads")
    return lab.run([*pytest, workloads, *more]) or status


def _up(options: argparse.Namespace) -> int:
    if _record():
        sys.stderr.write("testbed: it is up already; take it down first\n")
        return 2
    base(options.release, options.layer)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        os.dup2(writer, 1)
        os._exit(_own_lab(options))
    os.close(writer)
    with os.fdopen(reader) as said:
        for line in said:
            sys.stdout.write(line)
            if line.startswith("ready"):
                return 0
    return 1


def _own_lab(options: argparse.Namespace) -> int:
    """Be the one who keeps the lab of ``up``, until ``down`` ends this process."""
    RECORD.write_text(json.dumps({"keeper": os.getpid()}))
    words = ["serve", str(options.nodes), options.release, options.layer]
    try:
        return lab.run([sys.executable, "-m", "testbed", *words])
    finally:
        RECORD.unlink(missing_ok=True)


def _serve(options: argparse.Namespace) -> int:
    from testbed.whole import Testbed

    with Testbed(options.nodes, options.release, options.layer) as testbed:
        for node in testbed.nodes.values():
            sys.stdout.write(f"{node.name} {node.address}\n")
        sys.stdout.write(f"ready; ssh needs the key {testbed.key}\n")
        sys.stdout.flush()
        signal.pause()
    return 0


def _down(_options: argparse.Namespace) -> int:
    found = _record()
    if found is None:
        sys.stderr.write("testbed: it is not up\n")
        return 0
    os.kill(found["keeper"], signal.SIGTERM)
    until = time.monotonic() + lab.CLEANING
    while RECORD.exists() and time.monotonic() < until:
        time.sleep(0.05)
    return 0


def _in_lab(act):
    """Return *act* for a process in the lab; one outside calls this program again in it."""
    return lambda options: act(options) if lab.folder() else _enter(_myself())


def _myself() -> list[str]:
    return [sys.executable, "-m", "testbed", *sys.argv[1:]]


def _enter(command: list[str]) -> int:
    found = _record()
    if found is None:
        sys.stderr.write("testbed: it is not up\n")
        return 2
    place, first = _lab_of(found["keeper"])
    namespaces = ("-m", "-n", "-p", "-C", "-i", "-u")
    words = ["nsenter", "-t", str(first), *namespaces, f"--wdns={Path.cwd()}", "--", *command]
    environment = {**os.environ, lab.FOLDER: str(place)}
    return subprocess.run(words, env=environment, check=False).returncode


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


def _record() -> dict[str, int] | None:
    """Return what ``up`` wrote, if its process still runs."""
    try:
        found = json.loads(RECORD.read_text())
        words = Path(f"/proc/{found['keeper']}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    return found if b"testbed" in words else None


def _lab_of(keeper: int) -> tuple[Path, int]:
    """Return folder and first process of the lab that the process *keeper* keeps."""
    (janitor,) = _children(keeper)
    (unshare,) = _children(janitor)
    (first,) = _children(unshare)
    words = Path(f"/proc/{first}/cmdline").read_bytes().split(b"\0")
    return Path(os.fsdecode(words[words.index(b"testbed.inside") + 1])), first


def _children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _without_dashes(words: list[str]) -> list[str]:
    return words[1:] if words[:1] == ["--"] else words


if __name__ == "__main__":
    raise SystemExit(main())
