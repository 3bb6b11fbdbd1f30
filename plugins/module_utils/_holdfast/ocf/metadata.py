# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a resource agent says of itself: its parameters, and its actions with their advice.

Reading is tolerant, because agents are written by many hands: log lines before the
XML, odd defaults, missing types and unknown versions do no harm.  Something that is
not metadata is an error though, whatever exit status came with it.  Parameters are
checked against it before anything runs.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as xml
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ..errors import AgentError, InputError
from ..names import did_you_mean
from ..process.run import Outcome
from ..process.run import run as run_process
from ..secrets import shown
from .environment import agent_environment, expectation, seconds, written
from .locate import OCF_ROOT, AgentName

METADATA_DEADLINE = 20.0
"""Seconds for the meta-data action: agents that source many files took up to 2 s."""

_START = re.compile(r"<\?xml|<!DOCTYPE|<resource-agent")
_END = "</resource-agent>"


@dataclass(frozen=True)
class Parameter:
    """A parameter: ``type`` is string, boolean, integer, second or select (with ``options``).

    The values of all parameters of one ``unique_group`` together must differ between the
    resources of an agent; a parameter that is just unique is a group of its own.  One that
    is ``reloadable`` can be changed by the action reload-agent.  ``replaced_with`` names
    what to use in place of one that is ``deprecated``.
    """

    name: str
    type: str = "string"
    required: bool = False
    default: str | None = None
    unique_group: str = ""
    reloadable: bool = False
    deprecated: bool = False
    replaced_with: tuple[str, ...] = ()
    shortdesc: str = ""
    longdesc: str = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Action:
    """An action with the agent's advice: ``timeout``, ``interval``, ``start_delay`` in seconds.

    ``depth`` is the check level, ``role`` the role in which it is for a monitor, as written.
    """

    name: str
    timeout: float | None = None
    interval: float | None = None
    start_delay: float | None = None
    depth: int = 0
    role: str = ""


@dataclass(frozen=True)
class AgentMetadata:
    """A resource agent's metadata.  Actions may repeat: a monitor for each depth or role."""

    name: str
    version: str
    shortdesc: str
    longdesc: str
    parameters: tuple[Parameter, ...]
    actions: tuple[Action, ...]

    def parameter(self, name: str) -> Parameter | None:
        """Return the parameter *name*, or None."""
        return next((one for one in self.parameters if one.name == name), None)

    def supports(self, action: str) -> bool:
        """Say whether the agent advertises *action*.

        An exit status of 3 does not tell: half of the agents answer something else to
        an action that they do not have.
        """
        return action == "meta-data" or any(one.name == action for one in self.actions)

    def unique_groups(self) -> dict[str, list[str]]:
        """Return the names of the parameters in each group that must be unique."""
        groups: dict[str, list[str]] = {}
        for one in self.parameters:
            if one.unique_group:
                groups.setdefault(one.unique_group, []).append(one.name)
        return groups

    def advised_timeout(self, action: str, fallback: float = 20.0) -> float:
        """Return the longest advised timeout of *action* in seconds, else *fallback*."""
        advice = [one.timeout for one in self.actions if one.name == action and one.timeout]
        return max(advice) if advice else fallback


def parse_metadata(text: str, agent: str = "the agent") -> AgentMetadata:
    """Return the metadata that *text* holds, with whatever stands around it ignored.

    Raises AgentError naming *agent* when there is none or when it is not well-formed.
    """
    root = metadata_root(text, agent)
    return AgentMetadata(
        name=root.get("name", ""),
        version=(root.findtext("version") or root.get("version") or "").strip(),
        shortdesc=" ".join(_text(root, "shortdesc").split()),
        longdesc=_text(root, "longdesc"),
        parameters=tuple(_parameter(one) for one in root.iterfind("parameters/parameter")),
        actions=tuple(_action(one) for one in root.iterfind("actions/action")),
    )


def metadata_root(text: str, agent: str) -> xml.Element:
    """Return the element ``resource-agent`` of *text*; no file or network is ever read for it."""
    start = _START.search(text)
    end = text.rfind(_END)
    if start is None or end < start.start():
        raise AgentError(f"{agent} printed no metadata.")
    try:
        root = xml.fromstring(text[start.start() : end + len(_END)])
    except (xml.ParseError, ValueError) as error:
        raise AgentError(f"The metadata of {agent} is not well-formed XML: {error}.") from None
    if root.tag != "resource-agent":
        raise AgentError(f"The metadata of {agent} describes a {root.tag}, not a resource-agent.")
    return root


def load_metadata(
    path: str,
    *,
    agent: AgentName,
    ocf_root: str = OCF_ROOT,
    deadline: float = METADATA_DEADLINE,
    run: Callable[..., Outcome] = run_process,
) -> AgentMetadata:
    """Ask the agent at *path* for its metadata.

    Raises AgentError when it gives none within *deadline* seconds.
    """
    outcome = run(
        [path, "meta-data"],
        deadline=deadline,
        environment=agent_environment(
            agent, instance=agent.type, action="meta-data", timeout=deadline, ocf_root=ocf_root
        ),
    )
    if outcome.timed_out:
        raise AgentError(f"{agent} did not print its metadata within {deadline:g} seconds.")
    if outcome.exit_status != 0:
        raise AgentError(
            f"{agent} failed to print its metadata (exit status {outcome.exit_status}):"
            f" {outcome.stderr.strip()[-300:] or 'it said nothing'}."
        )
    return parse_metadata(outcome.stdout, str(agent))


def _parameter(element: xml.Element) -> Parameter:
    content = element.find("content")
    if content is None:
        content = xml.Element("content")
    name = element.get("name", "")
    replacements = element.iterfind("deprecated/replaced-with")
    return Parameter(
        name=name,
        type=content.get("type") or "string",
        required=_flag(element.get("required")),
        default=content.get("default"),
        unique_group=element.get("unique-group") or (name if _flag(element.get("unique")) else ""),
        reloadable=_flag(element.get("reloadable")),
        deprecated=element.find("deprecated") is not None or _flag(element.get("deprecated")),
        replaced_with=tuple(one.get("name", "") for one in replacements),
        shortdesc=" ".join(_text(element, "shortdesc").split()),
        longdesc=_text(element, "longdesc"),
        options=tuple(one.get("value", "") for one in content.iterfind("option")),
    )


def _action(element: xml.Element) -> Action:
    depth = element.get("depth", "0").strip()
    return Action(
        name=element.get("name", ""),
        timeout=seconds(element.get("timeout")),
        interval=seconds(element.get("interval")),
        start_delay=seconds(element.get("start-delay")),
        depth=int(depth) if depth.isascii() and depth.isdigit() else 0,
        role=element.get("role", ""),
    )


def _flag(value: str | None) -> bool:
    return (value or "").lower() in ("1", "true", "yes")


def _text(element: xml.Element, tag: str) -> str:
    """Return the text of *tag*, in English if it is there in several languages."""
    found = element.findall(tag)
    english = [one for one in found if one.get("lang", "en").startswith("en")]
    return "".join((english or found)[0].itertext()).strip() if found else ""


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
