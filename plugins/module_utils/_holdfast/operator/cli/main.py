# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ``holdfast`` command, for operators on a node, with or without Ansible.

Exit status: 0 no problems, 1 problems, 2 the question could not be answered, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ...errors import HoldfastError, of_system
from ...version import VERSION
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
from . import act, board, completion, fence, key, look, membership
from .arguments import (
    WIDE,
    add_commands,
    add_config,
    add_flag,
    add_number,
    add_output,
    complete_reason,
    load_config,
    write_answer,
    write_json,
)
from .examples import finish
from .parser import CommandLineError, CommandParser, parse

if TYPE_CHECKING:
    from ...node.configuration import NodeConfiguration


DAEMONS = ("lrm", "crm", "machine")
"""The commands that need no standard output."""

WELL, NOT_AS_WANTED, NO_ANSWER = 0, 1, 2
INTERRUPTED = 130
"""As in shells for a process that SIGINT ended."""

START_WAIT = 60.0
"""Seconds to wait for a machine of a cluster on one computer to come up."""

SHUTDOWN_WAIT = 600.0
"""Seconds to wait for a machine of a cluster on one computer to shut down."""

MACHINE_ACTIONS = ("run", "start", "restart", "shutdown", "reboot", "cut", "freeze", "thaw")
UNWRAPPED = 10_000
"""The width of a terminal on which nothing is wrapped."""

CONFIG_HELP = "the node's configuration file"


def main(arguments: Sequence[str]) -> int:
    """Run the command with *arguments* and return its exit status."""
    name = arguments[0] if arguments else ""
    no_answer = look.UNKNOWN if name == "check" else NO_ANSWER
    if not prepare_streams():
        if name not in DAEMONS:
            # Before anything is done: its outcome could not be printed.
            complain(f"holdfast: {UnwrittenError(CLOSED)}\n")
            return no_answer
        sys.stdout = nowhere()
    stream = sys.stdout
    sys.stdout = Output(stream)
    try:
        return _act(arguments)
    except HoldfastError as error:
        from ...text import clean

        # The text may contain output of an agent.
        complain(f"holdfast: {clean(error)}\n")
        return no_answer
    except BrokenPipeError:
        return no_answer
    except OSError as error:
        # Such as a path that is too long for the system.
        from ...text import clean

        complain(f"holdfast: {clean(of_system(error))}\n")
        return no_answer
    except KeyboardInterrupt:
        complain(
            "holdfast: interrupted; what was already requested stays requested, see"
            " holdfast status\n"
        )
        return INTERRUPTED
    finally:
        sys.stdout = stream


def main_and_exit(arguments: Sequence[str]) -> NoReturn:
    """Run the command and end the process."""
    try:
        status = main(arguments)
    finally:
        leave_unwritten()
    raise SystemExit(status)


def _act(arguments: Sequence[str]) -> int:
    """Run the command, and flush its output; return the exit status."""
    try:
        options = parse(_parser(), arguments)
    except CommandLineError as error:
        if arguments[:1] == ["check"]:
            return look.refuse_check(str(error))
        raise
    except SystemExit:
        # After a help that was printed.
        sys.stdout.flush()
        raise
    complete_reason(options)
    result: int = options.act(options)
    sys.stdout.flush()
    return result


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        prog="holdfast", description="High availability on shared storage, from any node."
    )
    parser.add_argument("--version", action="version", version=f"holdfast {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="SUBCOMMAND")
    _add_questions(commands)
    (machine,) = add_commands(
        commands,
        (
            "machine",
            _machine,
            "of a cluster on one computer: start, restart (daemons), shut down, reboot, cut, freeze"
            " or thaw a machine",
        ),
    )
    machine.add_argument("what", choices=MACHINE_ACTIONS)
    machine.add_argument("config", help=CONFIG_HELP)
    board.register(commands)
    look.register(commands)
    act.register(commands)
    fence.register(commands)
    membership.register(commands)
    key.register(commands)
    completion.register(commands, _parser)
    # program.py runs these two; here they are for the help and the completion.
    commands.add_parser(
        "iallocator", add_help=False, help="answer Ganeti as its allocator hail does"
    )
    commands.add_parser("balance", add_help=False, help="balance a cluster as hbal does, or better")
    _add_parts_of_a_node(commands)
    finish(parser)
    return parser


def _add_questions(commands: Any) -> None:
    """Add the commands that show a cluster and change nothing."""
    parsers = add_commands(
        commands,
        ("status", _status, "show the cluster: nodes, services, failovers"),
        (
            "why",
            _why,
            "explain the state of a service or a node: what was chosen, and what rejected",
        ),
        ("probe", _probe, "ask the agents which of the declared services run on this node now"),
        (
            "what-if",
            _what_if,
            "show what would happen if nodes died, were cut off or drained; no change",
        ),
    )
    add_config(*parsers)
    status, why, _probe_parser, what_if = parsers
    add_output(status, WIDE)
    add_flag(status, "--watch", "show it again and again, until Ctrl-C")
    look.add_watching(status)
    status.add_argument("--html", metavar="FILE", help="also write a status page into FILE")

    why.add_argument("subject", metavar="SERVICE|NODE", help="a service's id or a node's name")
    add_output(why)

    for option, says in (
        ("dies", "loses its power"),
        ("loses-storage", "loses its way to the storage"),
        ("loses-network", "loses its network"),
        ("drained", "is put into maintenance"),
    ):
        what_if.add_argument(
            f"--{option}", action="append", metavar="NODE", help=f"this node {says}"
        )
    what_if.add_argument(
        "--moves",
        action="append",
        nargs=2,
        metavar=("SERVICE", "NODE"),
        help="this service is moved to this node; refused as the move would be",
    )
    text = "seconds to look ahead (default 600)"
    add_number(what_if, "--within", text, default=600.0, metavar="SECONDS")
    add_output(what_if)


def _add_parts_of_a_node(commands: Any) -> None:
    """Add the commands that a role or a unit runs on a node."""
    bytecode, leave, lrm, crm = add_commands(
        commands,
        (
            "bytecode",
            _bytecode,
            "compile the installed library for this node's Python, so that it starts soon",
        ),
        (
            "leave",
            _leave,
            "give this node's host lease back; for its shutdown, after its daemons have ended",
        ),
        ("lrm", _lrm, "run the LRM daemon in the foreground"),
        ("crm", _crm, "run the CRM daemon in the foreground"),
    )
    bytecode.add_argument("library", help="the installed library, such as /usr/lib/holdfast.pyz")

    add_config(leave)
    for daemon in (lrm, crm):
        daemon.add_argument("config", help=CONFIG_HELP)


def _status(options: argparse.Namespace) -> int:
    if options.watch:
        return look.watch_status(options)
    configuration = load_config(options)
    if options.html:
        from ..cluster_info import write_page_in_time

        status = write_page_in_time(Path(options.html), configuration)
    else:
        from ..report.status import read_status_in_time

        status = read_status_in_time(configuration)

    def text() -> str:
        from ..report.text import render_text

        width = UNWRAPPED if options.output == WIDE else _width()
        return render_text(status, colour=takes_colour(), width=width)

    write_answer(options, status, text)
    return NOT_AS_WANTED if status["problems"] else WELL


def _why(options: argparse.Namespace) -> int:
    from ..report.status import in_time
    from ..report.why import read_why, render_why

    configuration = load_config(options)
    why = in_time(configuration, lambda: read_why(configuration, options.subject))
    write_answer(options, why, lambda: render_why(why, _width()))
    return WELL


def _width() -> int:
    return shutil.get_terminal_size((100, 24)).columns


def _probe(options: argparse.Namespace) -> int:
    from ...node.daemon.agent_work import probe_services

    write_json(probe_services(load_config(options)))
    return WELL


def _what_if(options: argparse.Namespace) -> int:
    from ...simulator.what_if import QUESTIONS
    from ..forecast.what_if import (
        answer_document,
        ask,
        read_now,
        refuse_unknown_nodes,
        render_answer,
    )
    from ..report.status import in_time

    if not options.moves and not any(getattr(options, one) for one in QUESTIONS):
        asked = ", ".join(f"--{one.replace('_', '-')}" for one in QUESTIONS)
        raise HoldfastError(f"Nothing is asked: name a node with one of {asked}, --moves.")
    configuration = load_config(options)
    asked_for = {**vars(options), "moves": dict(options.moves or ())}
    refuse_unknown_nodes(configuration, asked_for)
    # The answer is no plain data: it is read again here, once a read has proved to be quick.
    in_time(configuration, lambda: bool(read_now(configuration)))
    answer = ask(configuration, read_now(configuration), asked_for)
    document = answer_document(answer)
    write_answer(options, document, lambda: "\n".join(render_answer(answer, options.drained or ())))
    return NOT_AS_WANTED if document["not_running"] else WELL


def _bytecode(options: argparse.Namespace) -> int:
    from .install import compile_library, compiled_path

    library = Path(options.library)
    made = compile_library(library)
    sys.stdout.write(f"{compiled_path(library)} {'written' if made else 'is as it should be'}\n")
    return WELL


def _leave(options: argparse.Namespace) -> int:
    from ...node.daemon.host_lease import leave_cluster

    configuration = load_config(options)
    leave_cluster(configuration)
    sys.stdout.write(f"{configuration.node} has left the cluster {configuration.cluster}\n")
    return WELL


def _machine(options: argparse.Namespace) -> int:
    from ...node.configuration import load
    from ...node.machine import power

    configuration = load(Path(options.config).resolve())
    base, name = configuration.folder.parent, configuration.folder.name
    if options.what == "run":
        _run_machine(configuration)
    elif options.what == "start":
        power.power_on(base, name, START_WAIT)
    elif options.what == "cut":
        power.power_off(base, name, 10.0)
    elif options.what in ("shutdown", "reboot"):
        power.shut_down(base, name, SHUTDOWN_WAIT, reboot=options.what == "reboot")
    else:
        acts = {"restart": power.restart_daemons, "freeze": power.freeze, "thaw": power.thaw}
        acts[options.what](base, name)
    return WELL


def _run_machine(configuration: NodeConfiguration) -> None:
    """Run the machine in this process; the mark lets its power switch find the process."""
    from ...node.configuration import MARK
    from ...node.machine.machine import Machine
    from ...process.own_program import own_program

    config = str(configuration.folder / "node.json")
    command = own_program("machine", "run", config)
    mark = str(configuration.folder.resolve())
    if os.environ.get(MARK) != mark:
        os.execve(sys.executable, command, {**os.environ, MARK: mark})
    if Machine(configuration).run():
        os.execve(sys.executable, command, os.environ)


def _lrm(options: argparse.Namespace) -> int:
    from ...node.daemon.lrm import LocalDaemon
    from ...node.machine.power import die_with_parent

    die_with_parent()
    LocalDaemon(load_config(options)).run()
    return WELL


def _crm(options: argparse.Namespace) -> int:
    from ...node.daemon.crm import ClusterDaemon
    from ...node.machine.power import die_with_parent

    die_with_parent()
    ClusterDaemon(load_config(options)).run()
    return WELL
