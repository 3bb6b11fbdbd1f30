# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a resource agent says of itself: its parameters, and its actions with their advice.

Reading is tolerant, because agents are written by many hands: log lines before the
XML, odd defaults, missing types and unknown versions do no harm.  Something that is
not metadata is an error though, whatever exit status came with it.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as xml
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import AgentError
from ..process.run import Outcome
from ..process.run import run as run_process
from .environment import agent_environment, seconds
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
