# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets from private files and from programs, in place of parameters of agents.

``password_file: PATH`` gives an agent the content of a private file as ``password``, and
``password_script: COMMAND`` what a program prints; likewise for every other secret.  A file that
other users can read or write is refused.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping

from .errors import AgentError, HoldfastError, InputError
from .private_file import read_private_file
from .process.run import Outcome
from .secrets import HIDDEN

MAX_SECRET = 64 * 1024

FILE = "_file"
SCRIPT = "_script"


def given_by(name: str, kind: str) -> str:
    """Return the parameter for which *name* is a source of *kind*, or ""."""
    return name[: -len(kind)] if name.endswith(kind) else ""


def secret_in_file(path: str, parameter: str, error: type[HoldfastError]) -> str:
    """Return the secret in the private file at *path*, without one line end at its end.

    Raises *error* for a file that cannot be read, that others can read, or that has no UTF-8.
    """
    data = read_private_file(path, f"The file of the parameter {parameter},", MAX_SECRET, error)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise error(f"The file {path} does not hold a text in UTF-8.") from None
    return text[:-1] if text.endswith("\n") else text


def command_words(command: object, option: str, expected: str) -> list[str]:
    """Return the words of a *command*, split as a shell does.

    Raises ``InputError``, with what is *expected*, if it has none.
    """
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        words = []
    if not words:
        raise InputError(option, HIDDEN, expected)
    return words


def printed_secret(
    words: list[str],
    name: str,
    run: Callable[..., Outcome],
    deadline: float,
    environment: Mapping[str, str],
) -> str:
    """Return what the program of the parameter *name* prints, without blanks at the end.

    It is run without a shell.  Raises AgentError, without the program's output, when it fails or
    does not end within *deadline* seconds.
    """
    outcome = run(words, deadline=deadline, environment=environment)
    if outcome.timed_out:
        raise AgentError(f"The program of {name} did not end within {deadline:g} seconds.")
    if outcome.exit_status != 0:
        raise AgentError(f"The program of {name} failed (exit status {outcome.exit_status}).")
    secret = outcome.stdout.rstrip()
    if not secret:
        raise AgentError(f"The program of {name} printed nothing.")
    return secret
