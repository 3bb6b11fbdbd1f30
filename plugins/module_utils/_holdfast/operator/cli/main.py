# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ``holdfast`` command, for operators on a node, with or without Ansible.

Exit status: 0 no problems, 1 problems, 2 the question could not be answered, 130 interrupted.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from ...errors import HoldfastError, of_system
from ...text import clean
from ..streams import (
    CLOSED,
    Output,
    UnwrittenError,
    complain,
    leave_unwritten,
    nowhere,
    prepare_streams,
)
from .arguments import complete_reason
from .commands import make_parser
from .parser import CommandLineError, parse

DAEMONS = ("lrm", "crm", "machine")
"""The commands that need no standard output."""

NO_ANSWER = 2
INTERRUPTED = 130
"""As in shells for a process that SIGINT ended."""


def main(arguments: Sequence[str]) -> int:
    """Run the command with *arguments* and return its exit status."""
    name = arguments[0] if arguments else ""
    no_answer = _no_answer(name)
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
        # The text may contain output of an agent.
        complain(f"holdfast: {clean(error)}\n")
        return no_answer
    except BrokenPipeError:
        return no_answer
    except OSError as error:
        # Such as a path that is too long for the system.
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


def _no_answer(subcommand: str) -> int:
    """Return the exit status of a subcommand whose question could not be answered."""
    if subcommand == "check":
        from .look import UNKNOWN

        return UNKNOWN
    return NO_ANSWER


def main_and_exit(arguments: Sequence[str]) -> NoReturn:
    """Run the command and end the process.

    What a short command read is not freed: for the status of many nodes that takes a tenth of its
    time.
    """
    short = not any(name in DAEMONS for name in arguments[:1])
    if short:
        gc.set_threshold(100_000)
    try:
        status = main(arguments)
    finally:
        leave_unwritten()
    if short:
        os._exit(status)
    raise SystemExit(status)


def _act(arguments: Sequence[str]) -> int:
    """Run the command, and flush its output; return the exit status."""
    try:
        options = parse(make_parser(*arguments[:1]), arguments)
    except CommandLineError as error:
        if arguments[:1] == ["check"]:
            from .look import refuse_check

            return refuse_check(str(error))
        raise
    except SystemExit:
        # After a help that was printed.
        sys.stdout.flush()
        raise
    complete_reason(options)
    result: int = options.act(options)
    sys.stdout.flush()
    return result
