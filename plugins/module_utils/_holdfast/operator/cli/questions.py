# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``holdfast status``, ``why``, ``probe`` and ``what-if``: show a cluster, and change nothing.

Exit status: 0 no problems, 1 problems, 2 the question could not be answered.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ...errors import HoldfastError
from ..streams import takes_colour
from .arguments import (
    WIDE,
    add_commands,
    add_config,
    add_flag,
    add_number,
    add_output,
    answer_text,
    load_config,
    write_answer,
    write_json,
    write_text,
)
from .look import add_watching, watch_status

WELL, NOT_AS_WANTED = 0, 1

UNWRAPPED = 10_000
"""The width of a terminal on which nothing is wrapped."""


def register(commands: Any) -> None:
    """Add the commands to the subparsers *commands*."""
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
    add_watching(status)
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


def _status(options: argparse.Namespace) -> int:
    if options.watch:
        return watch_status(options)
    from ..report.status import in_time, read_status
    from ..report.text import render_text

    configuration = load_config(options)
    colour, width = takes_colour(), UNWRAPPED if options.output == WIDE else _width()

    def answer(status: dict[str, Any]) -> tuple[str, bool]:
        text = answer_text(options, status, lambda: render_text(status, colour=colour, width=width))
        return text, bool(status["problems"])

    if options.html:
        from ..cluster_info import write_page_in_time

        text, problems = answer(write_page_in_time(Path(options.html), configuration))
    else:
        # Rendered where it is read: of many nodes, to hand it over takes longer.
        text, problems = in_time(configuration, lambda: answer(read_status(configuration)))
    write_text(text)
    return NOT_AS_WANTED if problems else WELL


def _why(options: argparse.Namespace) -> int:
    from ..report.status import in_time
    from ..report.why import read_why, render_why

    configuration = load_config(options)
    why = in_time(configuration, lambda: read_why(configuration, options.subject))
    write_answer(options, why, lambda: render_why(why, _width()))
    return WELL


def _width() -> int:
    import shutil

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
