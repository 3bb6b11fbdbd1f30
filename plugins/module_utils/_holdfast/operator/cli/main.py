# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ``holdfast`` command: what an operator types on a node, with or without Ansible.

Exit status: 0 all is well, 1 something is not as wanted, 2 the question could
not be answered, 130 it was interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from ...errors import HoldfastError
from ...node.configuration import NodeConfiguration, load
from ...version import PACKAGE, VERSION
from ..streams import (
    CLOSED,
    Output,
    UnwrittenError,
    complain,
    leave_unwritten,
    nowhere,
    prepare_streams,
    takes_colour,
)
from . import act, board, completion, fence, look, membership
from .arguments import add_config, add_json, write_json
from .board import Commands

DAEMONS = ("lrm", "crm", "machine")
"""The commands that run and tell nothing, and so need no standard output."""

WELL, NOT_AS_WANTED, NO_ANSWER = 0, 1, 2
INTERRUPTED = 130
"""As shells tell it of whatever Ctrl-C ended."""

SHUTDOWN_WAIT = 600.0
"""Seconds to wait for a machine of a cluster on one computer that is to go down in order."""


def main(arguments: Sequence[str]) -> int:
    """Run the command with *arguments* and return its exit status."""
    if arguments[:1] == ["iallocator"]:
        # It reads its options itself: a question must not wait for a parser's start.
        from .htools.hail import main as answer

        return answer(arguments[1:])
    if arguments[:1] == ["balance"]:
        from .htools.hbal import main as balance

        return balance(arguments[1:])
    name = arguments[0] if arguments else ""
    no_answer = look.UNKNOWN if name == "check" else NO_ANSWER
    if not prepare_streams():
        if name not in DAEMONS:
            # Before anything is done: what becomes of it could not be told.
            complain(f"holdfast: {UnwrittenError(CLOSED)}\n")
            return no_answer
        sys.stdout = nowhere()
    stream = sys.stdout
    sys.stdout = Output(stream)
    try:
        return _act(arguments)
    except HoldfastError as error:
        from ...text import clean

        # It may hold what an agent printed.
        complain(f"holdfast: {clean(error)}\n")
        return no_answer
    except BrokenPipeError:
        return no_answer
    except KeyboardInterrupt:
        complain(
            "holdfast: interrupted; what the cluster was asked for already stands, see"
            " holdfast status\n"
        )
        return INTERRUPTED
    finally:
        sys.stdout = stream


def main_and_exit(arguments: Sequence[str]) -> NoReturn:
    """Be the command's whole process."""
    try:
        status = main(arguments)
    finally:
        leave_unwritten()
    raise SystemExit(status)


def _act(arguments: Sequence[str]) -> int:
    """Do what *arguments* say, and write out all that is told; return the exit status."""
    try:
        options = _parser().parse_args(list(arguments))
    except SystemExit as ended:
        if ended.code != WELL and arguments[:1] == ["check"]:
            return look.refuse_check(arguments)
        # After a help that was printed.
        sys.stdout.flush()
        raise
    result: int = options.act(options)
    sys.stdout.flush()
    return result


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="holdfast", description="High availability on shared storage, from any node."
    )
    parser.add_argument("--version", action="version", version=f"holdfast {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="SUBCOMMAND")
    _add_questions(commands)
    _add_machine(commands)
    board.register(commands)
    look.register(commands)
    act.register(commands)
    fence.register(commands)
    membership.register(commands)
    membership.register_records(commands)
    completion.register(commands, _parser)
    commands.add_parser(
        "iallocator", add_help=False, help="answer Ganeti as its allocator hail does"
    )
    commands.add_parser("balance", add_help=False, help="balance a cluster as hbal does, or better")
    _add_parts_of_a_node(commands)
    return parser


def _add_questions(commands: Commands) -> None:
    """Add what an operator asks of a cluster."""
    status = commands.add_parser("status", help="show the cluster: nodes, services, failovers")
    add_config(status)
    add_json(status)
    status.add_argument("--html", metavar="FILE", help="also write a status page into FILE")
    status.set_defaults(act=_status)

    why = commands.add_parser(
        "why", help="say why a service or a node is as it is: what was chosen, and what rejected"
    )
    add_config(why)
    why.add_argument("subject", metavar="SERVICE|NODE", help="a service's id or a node's name")
    add_json(why)
    why.set_defaults(act=_why)

    probe = commands.add_parser(
        "probe", help="ask the agents which of the declared services run on this node now"
    )
    add_config(probe)
    probe.set_defaults(act=_probe)

    what_if = commands.add_parser(
        "what-if", help="show what would happen if nodes died, were cut off or drained; no change"
    )
    add_config(what_if)
    for option, says in (
        ("dies", "loses its power"),
        ("loses-storage", "loses its way to the storage"),
        ("loses-network", "loses its network"),
        ("drained", "is put into maintenance"),
    ):
        what_if.add_argument(
            f"--{option}", action="append", metavar="NODE", help=f"this node {says}"
        )
    what_if.add_argument("--within", type=float, default=600.0, help="seconds to look ahead")
    add_json(what_if)
    what_if.set_defaults(act=_what_if)


def _add_machine(commands: Commands) -> None:
    """Add the switch of a machine of a cluster on one computer."""
    machine = commands.add_parser(
        "machine",
        help="of a cluster on one computer: run, restart (daemons), shut down, reboot, cut, freeze"
        " or thaw a machine",
    )
    choices = ("run", "restart", "shutdown", "reboot", "cut", "freeze", "thaw")
    machine.add_argument("what", choices=choices)
    machine.add_argument("config", help="the node's configuration file")
    machine.set_defaults(act=_machine)


def _add_parts_of_a_node(commands: Commands) -> None:
    """Add what a role or a unit runs on a node, and not an operator."""
    bytecode = commands.add_parser(
        "bytecode",
        help="compile the installed library for this node's Python, so that it starts soon",
    )
    bytecode.add_argument("library", help="the installed library, such as /usr/lib/holdfast.pyz")
    bytecode.set_defaults(act=_bytecode)

    leave = commands.add_parser(
        "leave",
        help="give this node's host lease back; for its shutdown, after its daemons have ended",
    )
    add_config(leave)
    leave.set_defaults(act=_leave)

    for name, run in (("lrm", _lrm), ("crm", _crm)):
        daemon = commands.add_parser(name, help=f"run the {name.upper()} daemon in the foreground")
        daemon.add_argument("config", help="the node's configuration file")
        daemon.set_defaults(act=run)


def _status(options: argparse.Namespace) -> int:
    configuration = load(Path(options.config))
    if options.html:
        from ..cluster_info import write_page_in_time

        status = write_page_in_time(Path(options.html), configuration)
    else:
        from ..report.status import read_status_in_time

        status = read_status_in_time(configuration)
    if options.json:
        write_json(status)
    else:
        from ..report.text import render_text

        width = shutil.get_terminal_size((100, 24)).columns
        sys.stdout.write(render_text(status, colour=takes_colour(), width=width))
    sys.stdout.flush()
    return NOT_AS_WANTED if status["problems"] else WELL


def _why(options: argparse.Namespace) -> int:
    from ..report.status import in_time
    from ..report.why import read_why, render_why

    configuration = load(Path(options.config))
    why = in_time(configuration, lambda: read_why(configuration, options.subject))
    width = shutil.get_terminal_size((100, 24)).columns
    text = json.dumps(why, indent=2) + "\n" if options.json else render_why(why, width)
    sys.stdout.write(text)
    return WELL


def _probe(options: argparse.Namespace) -> int:
    from ...node.daemon.agent_work import probe_services

    write_json(probe_services(load(Path(options.config))))
    return WELL


def _what_if(options: argparse.Namespace) -> int:
    from ..forecast.what_if import QUESTIONS, answer_document, ask, read_now, render_answer
    from ..report.status import in_time

    if not any(getattr(options, one) for one in QUESTIONS):
        asked = ", ".join(f"--{one.replace('_', '-')}" for one in QUESTIONS)
        raise HoldfastError(f"Nothing is asked: name a node with one of {asked}.")
    configuration = load(Path(options.config))
    # It is no plain data: so it is read here, too, once that is seen to take no time.
    in_time(configuration, lambda: bool(read_now(configuration)))
    answer = ask(configuration, read_now(configuration), vars(options))
    document = answer_document(answer)
    if options.json:
        write_json(document)
    else:
        sys.stdout.write("\n".join(render_answer(answer, options.drained or ())) + "\n")
    return NOT_AS_WANTED if document["not_running"] else WELL


def _bytecode(options: argparse.Namespace) -> int:
    from .install import compile_library, compiled_path

    library = Path(options.library)
    made = compile_library(library)
    sys.stdout.write(f"{compiled_path(library)} {'written' if made else 'is as it should be'}\n")
    return WELL


def _leave(options: argparse.Namespace) -> int:
    from ...node.daemon.host_lease import leave_cluster

    configuration = load(Path(options.config))
    leave_cluster(configuration)
    sys.stdout.write(f"{configuration.node} has left the cluster {configuration.cluster}\n")
    return WELL


def _machine(options: argparse.Namespace) -> int:
    from ...node.machine import power

    path = Path(options.config).resolve()
    configuration = load(path)
    base, name = configuration.folder.parent, configuration.folder.name
    if options.what == "cut":
        power.power_off(base, name, 10.0)
    elif options.what in ("shutdown", "reboot"):
        power.shut_down(base, name, SHUTDOWN_WAIT, reboot=options.what == "reboot")
    elif options.what == "restart":
        power.restart_daemons(base, name)
    elif options.what == "freeze":
        power.freeze(base, name)
    elif options.what == "thaw":
        power.thaw(base, name)
    else:
        return _run_machine(configuration)
    return WELL


def _run_machine(configuration: NodeConfiguration) -> int:
    """Run the machine in this process, marked as such so that its power switch finds it."""
    from ...node.configuration import MARK
    from ...node.machine.machine import Machine

    mark = str(configuration.folder.resolve())
    if os.environ.get(MARK) != mark:
        environment = {**os.environ, MARK: mark}
        environment["PYTHONPATH"] = str(PACKAGE.parent)
        os.execve(sys.executable, _machine_command(configuration), environment)
    if Machine(configuration).run():
        os.execve(sys.executable, _machine_command(configuration), os.environ)
    return WELL


def _machine_command(configuration: NodeConfiguration) -> list[str]:
    config = str(configuration.folder / "node.json")
    return [sys.executable, "-m", f"{PACKAGE.name}.program", "machine", "run", config]


def _lrm(options: argparse.Namespace) -> int:
    from ...node.daemon.lrm import LocalDaemon
    from ...node.machine.power import die_with_parent

    die_with_parent()
    LocalDaemon(load(Path(options.config))).run()
    return WELL


def _crm(options: argparse.Namespace) -> int:
    from ...node.daemon.crm import ClusterDaemon
    from ...node.machine.power import die_with_parent

    die_with_parent()
    ClusterDaemon(load(Path(options.config))).run()
    return WELL
