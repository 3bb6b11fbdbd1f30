# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets of fence agents from private files and from scripts (``secret_sources.py``).

Agents would run the script through a shell and may repeat its secret in their output, where only
a known secret can be hidden; so the script is run here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..errors import FenceError, InputError
from ..process.run import Outcome
from ..secret_sources import FILE, SCRIPT, command_words, given_by, printed_secret, secret_in_file
from ..secrets import HIDDEN
from .known_agents import fence_environment
from .metadata import FenceMetadata

EXPECTED = "the absolute path of a program, and its arguments"

PLACEHOLDER = "secret"
"""Stands for the output of a script where a request is only checked."""


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
        secret = given_by(name, FILE)
        if metadata.parameter(name) is not None or not _is_secret(metadata, secret):
            continue
        if not isinstance(path, str) or not path.startswith("/"):
            # It may be the secret itself, in the wrong place.
            raise InputError(f"{option}.{name}", HIDDEN, "the absolute path of a file")
        del found[name]
        text = secret_in_file(path, secret, FenceError)
        _add(metadata, found, secret, text, f"{option}.{name}")
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
        secret = given_by(name, SCRIPT)
        if command is None or not _is_secret(metadata, secret):
            continue
        words = command_words(command, f"{option}.{name}", EXPECTED)
        if not words[0].startswith("/"):
            raise InputError(f"{option}.{name}", HIDDEN, EXPECTED)
        del found[name]
        text = PLACEHOLDER
        if run is not None:
            text = printed_secret(words, name, run, deadline, fence_environment())
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
