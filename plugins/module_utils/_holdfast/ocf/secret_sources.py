# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets of resource agents from files and programs of the node (``secret_sources.py``).

A service's definition is on shared storage.  So only the name of a source is in it, and each node
looks that up in its own folder of secrets: a definition makes a node neither read any other file
nor run any other program.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath

from ..errors import AgentError, HoldfastError, InputError
from ..process.run import Outcome
from ..process.run import run as run_process
from ..secret_sources import FILE, SCRIPT, command_words, given_by, printed_secret, secret_in_file
from ..secrets import HIDDEN
from .agent import SEARCH_PATH
from .metadata import AgentMetadata

SCRIPT_DEADLINE = 20.0
"""Seconds that a program may take at most to print a secret."""


def parameter_of(source: str) -> str:
    """Return the parameter that the *source*, such as ``password_file``, is for."""
    return given_by(source, FILE) or given_by(source, SCRIPT)


def sources_in(
    metadata: AgentMetadata, parameters: Mapping[str, str], folder: Path, option: str
) -> tuple[str, ...]:
    """Return which *parameters* are no parameters of the agent, but sources of one.

    Raises ``InputError`` for a parameter given twice, and for a place outside of the *folder*.
    """
    sources: list[str] = []
    for name, value in parameters.items():
        parameter = parameter_of(name)
        if metadata.parameter(name) is not None or metadata.parameter(parameter) is None:
            continue
        both = [one for one in (parameter, *sources) if parameter in (one, parameter_of(one))]
        if parameter in parameters or len(both) > 1:
            raise InputError(f"{option}.{name}", HIDDEN, f"only one source of {parameter}")
        _place(name, value, folder, f"{option}.{name}")
        sources.append(name)
    return tuple(sources)


class SecretReader:
    """Reads the secrets of services in the *folder* of this node; for several threads."""

    def __init__(self, folder: Path, run: Callable[..., Outcome] = run_process) -> None:
        """Remember where secrets are; nothing is read yet."""
        self._folder = folder
        self._run = run
        self._last: dict[tuple[str, str], str] = {}

    def read(self, source: str, value: str, deadline: float = SCRIPT_DEADLINE) -> str:
        """Return the secret of a *source*, such as ``password_file``, with its *value*.

        Raises ``InputError`` or ``AgentError`` without any part of it when it cannot be read, and
        when an agent's environment cannot have it.
        """
        words = _place(source, value, self._folder, source)
        if given_by(source, FILE):
            secret = secret_in_file(words[0], parameter_of(source), AgentError)
        else:
            _require_ours(words[0])
            environment = {"PATH": SEARCH_PATH, "LC_ALL": "C"}
            within = min(deadline, SCRIPT_DEADLINE)
            secret = printed_secret(words, source, self._run, within, environment)
        if "\0" in secret:
            raise AgentError(f"The secret of {source} has a NUL character.")
        self._last[source, value] = secret
        return secret

    def fill(
        self,
        parameters: Mapping[str, str],
        sources: Iterable[str],
        deadline: float,
        *,
        fresh: bool,
    ) -> tuple[dict[str, str], str]:
        """Return *parameters* with secrets in place of their *sources*, and why one is missing.

        Unless they have to be *fresh*, a secret that cannot be read now is the one read last.
        """
        filled, missing = dict(parameters), list[str]()
        for source in sources:
            value = filled.pop(source, "")
            try:
                secret = self.read(source, value, deadline)
            except HoldfastError as error:
                last = self._last.get((source, value))
                if fresh or last is None:
                    missing.append(str(error))
                    continue
                secret = last
            filled[parameter_of(source)] = secret
        return filled, " ".join(missing)


def _place(source: str, value: str, folder: Path, option: str) -> list[str]:
    """Return the path in the *folder* that *value* names, and the arguments of a program."""
    expected = f"the name of a file in {folder}"
    words = [value] if given_by(source, FILE) else command_words(value, option, expected)
    given = PurePosixPath(words[0])
    path = folder / given
    if ".." in given.parts or folder not in path.parents:
        # It may be the secret itself, in the wrong place.
        raise InputError(option, HIDDEN, expected)
    return [str(path), *words[1:]]


def _require_ours(path: str) -> None:
    """Raise ``AgentError`` for a program that others than root and this user could have written."""
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError as error:
        raise AgentError(f"The program {path} cannot be run: {error.strerror}.") from None
    if found.st_uid not in (0, os.geteuid()) or stat.S_IMODE(found.st_mode) & 0o022:
        raise AgentError(f"The program {path} may be written by others; make it root's, mode 0700.")
