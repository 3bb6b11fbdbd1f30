# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets from private files and from scripts, in place of parameters.

``password_file: PATH`` gives the agent the content of a private file as ``password``, and
``password_script: COMMAND`` what a program prints; likewise for every other secret of an agent.
Agents would run the script through a shell and may repeat its secret in their output, where only
a known secret can be hidden; so the script is run here.  A file that other users can read or
write is refused.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping

from ..errors import AgentError, FenceError, InputError
from ..private_file import read_private_file
from ..process.run import Outcome
from ..secrets import HIDDEN
from .known_agents import fence_environment
from .metadata import FenceMetadata

MAX_SECRET = 64 * 1024

PLACEHOLDER = "secret"
"""Stands for the output of a script where a request is only checked."""

_FILE = "_file"
_SCRIPT = "_script"


def secrets_from_files(
    metadata: FenceMetadata, parameters: Mapping[str, object], option: str = "parameters"
) -> dict[str, object]:
    """Return *parameters* with each ``SECRET_file`` replaced by the secret in that file.

    One line end at the end of the file is not part of the secret.  A parameter of the agent's
    own with such a name (``identity_file``) stays.  Raises FenceError for a file that cannot
    be read or that others can read, InputError for two sources of one secret.
    """
    found = dict(parameters)
    for name, path in parameters.items():
        secret = name[: -len(_FILE)] if name.endswith(_FILE) else ""
        if metadata.parameter(name) is not None or not _is_secret(metadata, secret):
            continue
        if not isinstance(path, str) or not path.startswith("/"):
            # It may be the secret itself, in the wrong place.
            raise InputError(f"{option}.{name}", HIDDEN, "the absolute path of a file")
        del found[name]
        data = read_private_file(
            path, f"The file of the parameter {secret},", MAX_SECRET, FenceError
        )
        _add(metadata, found, secret, _text(data, path), f"{option}.{name}")
    return found


def secrets_from_scripts(
    metadata: FenceMetadata,
    parameters: Mapping[str, object],
    run: Callable[..., Outcome] | None,
    deadline: float,
    option: str = "parameters",
) -> dict[str, object]:
    """Return *parameters* with each ``SECRET_script`` replaced by what that script prints.

    The command is split as a shell splits words, and run without a shell.  Blanks and line
    ends at the end of its output are not part of the secret (fencing.py does the same).
    With *run* None no script is run and the secret is a placeholder.  Raises AgentError,
    without the script's output, when it fails within *deadline* seconds or does not end.
    """
    found = dict(parameters)
    for name, command in parameters.items():
        secret = name[: -len(_SCRIPT)] if name.endswith(_SCRIPT) else ""
        if command is None or not _is_secret(metadata, secret):
            continue
        words = _words(command, f"{option}.{name}")
        del found[name]
        text = PLACEHOLDER if run is None else _printed(words, name, run, deadline)
        _add(metadata, found, secret, text, f"{option}.{name}")
    return found


def _is_secret(metadata: FenceMetadata, name: str) -> bool:
    parameter = metadata.parameter(name)
    return parameter is not None and parameter.secret


def _add(
    metadata: FenceMetadata, found: dict[str, object], secret: str, text: str, option: str
) -> None:
    """Add the *secret* to *found*; InputError if it is given in another way too."""
    for spelling in sorted(metadata.spellings(secret)):
        if found.get(spelling) is not None:
            raise InputError(option, None, f"only one of it and {spelling}")
    found[secret] = text


def _text(data: bytes, path: str) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise FenceError(f"The file {path} does not hold a text in UTF-8.") from None
    return text[:-1] if text.endswith("\n") else text


def _words(command: object, option: str) -> list[str]:
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        words = []
    if not words or not words[0].startswith("/"):
        raise InputError(option, HIDDEN, "the absolute path of a program, and its arguments")
    return words


def _printed(words: list[str], name: str, run: Callable[..., Outcome], deadline: float) -> str:
    outcome = run(words, deadline=deadline, environment=fence_environment())
    if outcome.timed_out:
        raise AgentError(f"The program of {name} did not end within {deadline:g} seconds.")
    if outcome.exit_status != 0:
        raise AgentError(f"The program of {name} failed (exit status {outcome.exit_status}).")
    secret = outcome.stdout.rstrip()
    if not secret:
        raise AgentError(f"The program of {name} printed nothing.")
    return secret
