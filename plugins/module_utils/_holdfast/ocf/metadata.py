# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metadata of a resource agent, and the check of parameters and meta attributes.

Reading is tolerant: log lines before the XML, odd defaults, missing types and unknown versions
do no harm.  Output that is not metadata is an error, whatever the exit status.  Before an agent is
used, ``require_api`` refuses one of another major version of the OCF API.

The type of a parameter in the metadata is advice.  Where a parameter's own default is not of
its type, its value is not checked.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as xml
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..errors import AgentError, InputError
from ..names import did_you_mean
from ..process.run import Outcome
from ..process.run import run as run_process
from ..secrets import HIDDEN, shown
from .agent import OCF_ROOT, AgentCall, AgentName

METADATA_DEADLINE = 20.0
"""Seconds for the meta-data action: agents that source many files took up to 2 s."""

_ROLES = (
    *("start", "stop", "promote", "demote", "active", "inactive", "available"),
    *("master", "slave", "promoted", "unpromoted", "all"),
)

META_NAMES = frozenset(
    {
        *("clone", "clone_max", "clone_node_max", "globally_unique", "interleave", "ordered"),
        *("promotable", "promoted_max", "promoted_node_max", "master_max", "master_node_max"),
        *("notify", "notify_type", "notify_operation", "notify_all_hosts"),
        *(f"notify_{role}_{what}" for role in _ROLES for what in ("resource", "uname")),
        *("migrate_source", "migrate_target"),
        *("role", "physical_host", "container_attribute_target"),
    }
)
"""The meta attributes that an agent may get (pacemaker's executor sets them as
OCF_RESKEY_CRM_meta_NAME), without those of a single call."""

_NEEDED = {
    "notify": ("notify_type", "notify_operation"),
    "migrate_to": ("migrate_target",),
    "migrate_from": ("migrate_source",),
}

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

API_MAJOR = 1
"""The major version of the OCF resource agent API that calls follow (``agent.AgentCall``)."""

_API_VERSION = re.compile(r"([0-9]+)(?:\.[0-9]+)?\Z", re.ASCII)

_START = re.compile(r"<\?xml|<!DOCTYPE|<resource-agent")
_END = "</resource-agent>"


@dataclass(frozen=True)
class Parameter:
    """A parameter: ``type`` is string, boolean, integer, second or select (with ``options``).

    The values of all parameters of one ``unique_group`` together must differ between the
    resources of an agent; a parameter that is just unique is a group of its own.  The action
    reload-agent applies a ``reloadable`` one.
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

    ``depth`` is the check level, ``role`` the role of a monitor, as written.
    """

    name: str
    timeout: float | None = None
    interval: float | None = None
    start_delay: float | None = None
    depth: int = 0
    role: str = ""


@dataclass(frozen=True)
class AgentMetadata:
    """A resource agent's metadata.  Actions may repeat: a monitor for each depth or role.

    ``api_version`` is the text of the element ``version``, which OCF has for the version of its
    API; empty without one.  ``version`` is the agent's own where that is missing.
    """

    name: str
    version: str
    shortdesc: str
    longdesc: str
    parameters: tuple[Parameter, ...]
    actions: tuple[Action, ...]
    api_version: str = ""

    def parameter(self, name: str) -> Parameter | None:
        """Return the parameter *name*, or None."""
        return next((one for one in self.parameters if one.name == name), None)

    def supports(self, action: str) -> bool:
        """Return whether the agent advertises *action*.

        Its exit status does not show that: half of the agents do not answer an unknown action
        with 3.
        """
        return action == "meta-data" or any(one.name == action for one in self.actions)

    def unique_groups(self) -> dict[str, list[str]]:
        """Return the names of the parameters in each group that must be unique."""
        groups: dict[str, list[str]] = {}
        for one in self.parameters:
            if one.unique_group:
                groups.setdefault(one.unique_group, []).append(one.name)
        return groups

    def advised_timeout(self, action: str, default: float = 20.0) -> float:
        """Return the longest advised timeout of *action* in seconds, *default* without advice."""
        advice = [one.timeout for one in self.actions if one.name == action and one.timeout]
        return max(advice, default=default)


def parse_metadata(text: str, agent: str = "the agent") -> AgentMetadata:
    """Return the metadata in *text*; other text around it is ignored.

    Raises AgentError naming *agent* when there is none or when it is not well-formed.
    """
    root = metadata_root(text, agent)
    api_version = (root.findtext("version") or "").strip()
    return AgentMetadata(
        name=root.get("name", ""),
        version=api_version or root.get("version", "").strip(),
        shortdesc=" ".join(_text(root, "shortdesc").split()),
        longdesc=_text(root, "longdesc"),
        parameters=tuple(parse_parameter(one) for one in root.iterfind("parameters/parameter")),
        actions=tuple(_action(one) for one in root.iterfind("actions/action")),
        api_version=api_version,
    )


def why_not_supported(metadata: AgentMetadata, agent: str) -> str:
    """Return why *agent* cannot be used: its OCF API has another major version than 1; or "".

    A minor version adds to the API and changes nothing of it (OCF 1.1, API version).  A version
    that is not of the form 1.1 is not one of the API: some agents have their own there, such as
    SAPHana with 0.154.0.
    """
    version = _API_VERSION.match(metadata.api_version)
    if version is None or int(version.group(1)) == API_MAJOR:
        return ""
    return (
        f"The resource agent {agent} follows version {metadata.api_version} of the OCF resource"
        f" agent API; only version {API_MAJOR}.x is supported. Install a version of the agent for"
        f" OCF {API_MAJOR}.x."
    )


def require_api(metadata: AgentMetadata, agent: str) -> None:
    """Raise AgentError with the reason if *agent* is ``why_not_supported``."""
    why = why_not_supported(metadata, agent)
    if why:
        raise AgentError(why)


def metadata_root(text: str, agent: str) -> xml.Element:
    """Return the element ``resource-agent`` of *text*; reads no file and no network."""
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
) -> AgentMetadata:
    """Return the metadata of the agent at *path*; raises AgentError when it prints none in time."""
    request = AgentCall(agent, "meta-data", agent.type, deadline, ocf_root=ocf_root)
    text = printed(str(agent), [path, "meta-data"], request.environment(), deadline=deadline)
    return parse_metadata(text, str(agent))


def printed(
    agent: str,
    argv: Sequence[str],
    environment: Mapping[str, str],
    stdin: bytes = b"",
    deadline: float = METADATA_DEADLINE,
    run: Callable[..., Outcome] = run_process,
) -> str:
    """Return what the *agent*, called by *argv*, prints as its metadata.

    Raises AgentError when it fails, or does not end within *deadline* seconds.
    """
    outcome = run(argv, deadline=deadline, stdin=stdin, environment=environment)
    if outcome.timed_out:
        raise AgentError(f"{agent} did not print its metadata within {deadline:g} seconds.")
    if outcome.exit_status != 0:
        said = " ".join((outcome.stderr.strip() or outcome.stdout).split())
        raise AgentError(
            f"{agent} failed to print its metadata (exit status {outcome.exit_status}):"
            f" {said[-300:] or 'it said nothing'}."
        )
    return outcome.stdout


def parse_parameter(element: xml.Element) -> Parameter:
    """Return the parameter that *element* describes."""
    content = element.find("content")
    if content is None:
        content = xml.Element("content")
    name = element.get("name", "")
    replacements = element.iterfind("deprecated/replaced-with")
    return Parameter(
        name=name,
        type=content.get("type") or "string",
        required=flag(element.get("required")),
        default=content.get("default"),
        unique_group=element.get("unique-group") or (name if flag(element.get("unique")) else ""),
        reloadable=flag(element.get("reloadable")),
        deprecated=element.find("deprecated") is not None or flag(element.get("deprecated")),
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


def flag(value: str | None) -> bool:
    """Return whether an attribute is true."""
    return (value or "").lower() in ("1", "true", "yes", "on")


def _text(element: xml.Element, tag: str) -> str:
    """Return the text of *tag*, in English if there are several languages."""
    found = element.findall(tag)
    english = [one for one in found if one.get("lang", "en").startswith("en")]
    return "".join((english or found)[0].itertext()).strip() if found else ""


def check_parameters(
    metadata: AgentMetadata,
    parameters: Mapping[str, object],
    option: str = "parameters",
    elsewhere: Collection[str] = (),
) -> dict[str, str]:
    """Return *parameters* as the texts that the agent gets; one that is None is left out.

    The parameters *elsewhere* are given too, by values that are not known here.

    Raises InputError for a name that the agent does not have, a value that is not of the
    parameter's type, and a required parameter without a default that is missing, unless the
    one that replaced it is given.
    """
    texts: dict[str, str] = {}
    for name, value in parameters.items():
        parameter = metadata.parameter(name)
        if parameter is None:
            names = sorted(one.name for one in metadata.parameters)
            expected = f"a parameter of {metadata.name} (it has: {', '.join(names) or 'none'})"
            raise InputError(option, name, expected + did_you_mean(name, names))
        if value is not None:
            texts[name] = _checked(parameter, value, option)
    for parameter in metadata.parameters:
        if parameter.required and not parameter.default:
            _require(metadata, parameter, {**texts, **dict.fromkeys(elsewhere, HIDDEN)}, option)
    return texts


def check_meta(meta: Mapping[str, object]) -> dict[str, str]:
    """Return *meta* as the texts that an agent gets; one that is None is left out.

    Raises InputError for a name not in ``META_NAMES`` and a value that is not a text, a number
    or a boolean.
    """
    texts = {}
    for name, value in meta.items():
        if name not in META_NAMES:
            known = ", ".join(sorted(META_NAMES))
            hint = did_you_mean(name, META_NAMES)
            raise InputError("meta", name, f"one of {known}{hint}")
        if value is None:
            continue
        text = written(value)
        if text is None or "\0" in text:
            raise InputError(f"meta.{name}", value, "a text, a number or a boolean")
        texts[name] = text
    return texts


def check_meta_of_action(action: str, meta: Mapping[str, str]) -> None:
    """Raise InputError when *meta* lacks an attribute that *action* needs."""
    for name in _NEEDED.get(action, ()):
        if not meta.get(name):
            raise InputError("meta", sorted(meta), f"also {name}, which the action {action} needs")


def deprecation_warnings(metadata: AgentMetadata, names: Iterable[str]) -> tuple[str, ...]:
    """Return a sentence for each of the parameters *names* that is deprecated."""
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
    purpose = f" ({parameter.shortdesc})" if parameter.shortdesc else ""
    expected = f"also {' or '.join(names)}, which {metadata.name} requires{purpose}"
    raise InputError(option, sorted(texts), expected)


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
    """Return *value* as an agent gets it, or None for what is no text, number or boolean."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    return None


def expectation(kind: str, options: Sequence[str], value: str) -> str | None:
    """Return what is expected when *value* is not of the type *kind*, else None."""
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
