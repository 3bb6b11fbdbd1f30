# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parameters checked against an agent's metadata before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..errors import InputError
from ..names import did_you_mean
from ..secrets import shown
from .environment import expectation, written
from .metadata import AgentMetadata, Parameter


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
