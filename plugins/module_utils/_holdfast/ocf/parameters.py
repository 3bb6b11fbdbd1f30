# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parameters checked against an agent's metadata before anything runs.

Values of agent parameters: is a value of its type, and how is it written.

The type in an agent's metadata is advice.  Some agents give a parameter a type
that its own default does not have; for such a parameter nothing is checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from ..errors import InputError
from ..names import did_you_mean
from ..secrets import shown
from .metadata import AgentMetadata, Parameter

TRUE_WORDS = ("yes", "true", "1", "YES", "TRUE", "True", "on", "ON")
"""What the function ocf_is_true of resource-agents takes for true (its "ja" left out)."""

FALSE_WORDS = ("no", "false", "0", "NO", "FALSE", "False", "off", "OFF")

_INTEGER = re.compile(r"[+-]?[0-9]+\Z")
_DURATION = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]*)")
_UNITS = {
    "ms": 0.001,
    "msec": 0.001,
    "us": 0.000001,
    "usec": 0.000001,
    "": 1.0,
    "s": 1.0,
    "sec": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "hr": 3600.0,
    "d": 86400.0,
}


def seconds(text: str | None) -> float | None:
    """Return a duration such as ``20``, ``20s``, ``2m30s`` or ``1d`` in seconds, else None."""
    if text is None or not text.strip():
        return None
    total, position = 0.0, 0
    text = text.strip()
    while position < len(text):
        part = _DURATION.match(text, position)
        if part is None or part.group(2).lower() not in _UNITS:
            return None
        total += float(part.group(1)) * _UNITS[part.group(2).lower()]
        position = part.end()
    return total


def written(value: object) -> str | None:
    """Return *value* as an agent gets it, or None for what cannot be a parameter's value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    return None


def expectation(kind: str, options: Sequence[str], value: str) -> str | None:
    """Return what was expected when *value* is not of the type *kind*, else None."""
    if kind == "boolean":
        if value in TRUE_WORDS or value in FALSE_WORDS:
            return None
        # The agents' shell function knows only some spellings: "Yes" would mean false.
        return "true or false"
    if kind == "integer":
        return None if _INTEGER.match(value) else "a whole number"
    if kind in ("second", "time"):
        return None if seconds(value) is not None else "a duration such as 30 or 2m30s"
    if kind == "select" and options:
        return None if value in options else "one of " + ", ".join(options)
    return None


def check_parameters(
    metadata: AgentMetadata, parameters: Mapping[str, object], option: str = "parameters"
) -> dict[str, str]:
    """Return *parameters* as the texts that the agent gets; one that is None is left out.

    A parameter and what replaced it stand for each other where one is required.  Raises
    InputError for a name that the agent does not have, a value that is not of the
    parameter's type, and a required parameter that is missing and has no default.
    """
    texts: dict[str, str] = {}
    for name, value in parameters.items():
        parameter = metadata.parameter(name)
        if parameter is None:
            raise InputError(option, name, _known_names(metadata, name))
        if value is not None:
            texts[name] = _checked(parameter, value, option)
    for parameter in metadata.parameters:
        if parameter.required and not parameter.default:
            _require(metadata, parameter, texts, option)
    return texts


def deprecation_warnings(metadata: AgentMetadata, names: Iterable[str]) -> tuple[str, ...]:
    """Return a sentence for each of the parameters *names* that the agent gives up."""
    warnings = []
    for name in names:
        parameter = metadata.parameter(name)
        if parameter is not None and parameter.deprecated:
            instead = " and ".join(parameter.replaced_with)
            hint = f"; use {instead} in its place" if instead else ""
            warnings.append(f"The parameter {name} of {metadata.name} is deprecated{hint}.")
    return tuple(warnings)


def _checked(parameter: Parameter, value: object, option: str) -> str:
    text = written(value)
    where = f"{option}.{parameter.name}"
    if text is None:
        raise InputError(where, shown(parameter.name, value), "a text, a number or a boolean")
    if "\0" in text:
        raise InputError(where, shown(parameter.name, text), "a text without NUL characters")
    if parameter.default and expectation(parameter.type, parameter.options, parameter.default):
        return text
    if text == parameter.default:
        return text
    expected = expectation(parameter.type, parameter.options, text)
    if expected is not None:
        raise InputError(where, shown(parameter.name, value), expected)
    return text


def _require(
    metadata: AgentMetadata, parameter: Parameter, texts: Mapping[str, str], option: str
) -> None:
    names = [parameter.name, *parameter.replaced_with]
    names += [one.name for one in metadata.parameters if parameter.name in one.replaced_with]
    if any(texts.get(name) for name in names):
        return
    told = f" ({parameter.shortdesc})" if parameter.shortdesc else ""
    expected = f"also {' or '.join(names)}, which {metadata.name} requires{told}"
    raise InputError(option, sorted(texts), expected)


def _known_names(metadata: AgentMetadata, name: str) -> str:
    names = sorted(one.name for one in metadata.parameters)
    known = ", ".join(names) or "none"
    return f"a parameter of {metadata.name} (it has: {known}){did_you_mean(name, names)}"
