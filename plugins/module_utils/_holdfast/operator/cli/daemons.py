# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``holdfast lrm``, ``crm``, ``machine``, ``leave`` and ``bytecode``: what units and roles run.

Exit status: 0 done, 2 not done.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .arguments import add_commands, add_config, load_config

if TYPE_CHECKING:
    from ...node.configuration import NodeConfiguration

DONE = 0

START_WAIT = 60.0
"""Seconds to wait for a machine of a cluster on one computer to come up."""

SHUTDOWN_WAIT = 600.0
"""Seconds to wait for a machine of a cluster on one computer to shut down."""

MACHINE_ACTIONS = ("run", "start", "restart", "shutdown", "reboot", "cut", "freeze", "thaw")

CONFIG_HELP = "the node's configuration file"


def register(commands: Any) -> None:
    """Add the commands to the subparsers *commands*."""
    machine, bytecode, leave, lrm, crm = add_commands(
        commands,
        (
            "machine",
            _machine,
            "of a cluster on one computer: start, restart (daemons), shut down, reboot, cut, freeze"
            " or thaw a machine",
        ),
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
    machine.add_argument("what", choices=MACHINE_ACTIONS)
    machine.add_argument("config", help=CONFIG_HELP)

    bytecode.add_argument("library", help="the installed library, such as /usr/lib/holdfast.pyz")

    add_config(leave)
    for daemon in (lrm, crm):
        daemon.add_argument("config", help=CONFIG_HELP)

    # program.py runs these two; here they are for the help and the completion.
    commands.add_parser(
        "iallocator", add_help=False, help="answer Ganeti as its allocator hail does"
    )
    commands.add_parser("balance", add_help=False, help="balance a cluster as hbal does, or better")


def _bytecode(options: argparse.Namespace) -> int:
    from .install import compile_library, compiled_path

    library = Path(options.library)
    made = compile_library(library)
    sys.stdout.write(f"{compiled_path(library)} {'written' if made else 'is as it should be'}\n")
    return DONE


def _leave(options: argparse.Namespace) -> int:
    from ...node.daemon.host_lease import leave_cluster

    configuration = load_config(options)
    leave_cluster(configuration)
    sys.stdout.write(f"{configuration.node} has left the cluster {configuration.cluster}\n")
    return DONE


def _machine(options: argparse.Namespace) -> int:
    from ...node.configuration_file import load
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
    return DONE


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
    return DONE


def _crm(options: argparse.Namespace) -> int:
    from ...node.daemon.crm import ClusterDaemon
    from ...node.machine.power import die_with_parent

    die_with_parent()
    ClusterDaemon(load_config(options)).run()
    return DONE
