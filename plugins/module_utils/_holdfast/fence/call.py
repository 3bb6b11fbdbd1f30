# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Call one action of a fence agent for one plug and return its result.

Fence agents read ``name=value`` lines from standard input, so that no password is on a command
line.  They take a missing action for "reboot", skip unknown names, take a boolean for true as
soon as it is there, strip blanks and quotes from passwords, and take a comma in a plug for
several plugs, of which some agents switch one only (fencing.py of fence-agents 4.12).  All of
that is refused here before anything is run.

Only the exit status counts.  An agent's text has no agreed form and is kept for people, with
all secrets hidden.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..errors import AgentError, FenceError, InputError
from ..names import did_you_mean
from ..process.run import KEEP, Outcome
from ..process.run import run as run_process
from ..secrets import HIDDEN, hide
from ..text import clean
from .known_agents import fence_environment
from .metadata import FALSE_WORDS, TRUE_WORDS, FenceMetadata, FenceParameter
from .secret_sources import secrets_from_files, secrets_from_scripts

POWER_ACTIONS = frozenset({"on", "off", "reboot", "status"})
"""The actions that are about one machine, and so need a plug where the agent has one."""

_CHOSEN_BY_US = ("action", "plug", "port")
_OF_THE_NODE = ("plug", "port", "nodename")
_NOT_TO_BE_SET: Mapping[str, str] = {
    "help": "with it the agent prints its help, does nothing and reports success",
    "version": "with it the agent prints its version, does nothing and reports success",
    "plug_separator": "each call is for one plug, so there is nothing to separate",
}
"""(fencing.py of fence-agents 4.12, check_input and fence_action.)"""
_INTEGER = re.compile(r"[+-]?[0-9]+\Z")


def fence_request(
    metadata: FenceMetadata,
    action: str,
    parameters: Mapping[str, object],
    plug: str | None = None,
    option: str = "parameters",
    nodename: str = "",
) -> bytes:
    """Return the agent's standard input for *action* on *plug*.

    *nodename* is sent to an agent that has this parameter, as by Pacemaker, unless *parameters*
    set it.  Raises AgentError for an action that the agent does not have, and InputError with
    *option* for a parameter that it would misread.
    """
    if not metadata.supports(action):
        names = ", ".join(sorted({one.name for one in metadata.actions}))
        raise AgentError(f"{metadata.name} has no action {action!r}; it has: {names}.")
    lines = {"action": action}
    lines.update(check_fence_parameters(metadata, parameters, option))
    host_argument = _checked_plug(metadata, action, plug)
    if host_argument is not None and plug is not None:
        lines[host_argument] = plug
    has_nodename = metadata.parameter("nodename") is not None
    # The last line counts, by whichever of its names (fence_pve has it as node_name too).
    if nodename and has_nodename and not metadata.spellings("nodename") & set(lines):
        lines["nodename"] = nodename
    _require(metadata, action, lines, option)
    return "".join(f"{name}={value}\n" for name, value in lines.items()).encode("utf-8")


def check_fence_parameters(
    metadata: FenceMetadata, parameters: Mapping[str, object], option: str = "parameters"
) -> dict[str, str]:
    """Return *parameters* as texts to send; false booleans are left out."""
    lines: dict[str, str] = {}
    given: dict[str, str] = {}
    # For a few agents it is something else.
    port_is_plug = metadata.host_argument == "port" or "port" in metadata.spellings("plug")
    for name, value in parameters.items():
        parameter = metadata.parameter(name)
        if parameter is None:
            names = [one.name for one in metadata.parameters]
            known = ", ".join(sorted(set(names) - {*_CHOSEN_BY_US, *_NOT_TO_BE_SET})) or "none"
            expected = f"a parameter of {metadata.name} (it has: {known})"
            raise InputError(option, name, expected + did_you_mean(name, names))
        if name in _CHOSEN_BY_US and (name != "port" or port_is_plug):
            raise InputError(option, name, f"parameters without {name}, which has its own place")
        if name in _NOT_TO_BE_SET:
            raise InputError(option, name, f"parameters without {name}: {_NOT_TO_BE_SET[name]}")
        for spelling in metadata.spellings(name):
            if spelling in given:
                raise InputError(option, name, f"only one of {given[spelling]} and {name}")
            given[spelling] = name
        if value is None:
            continue
        text = _text(parameter, value, f"{option}.{name}")
        if text is not None:
            lines[name] = text
    return lines


def check_plug(plug: object, option: str = "plug") -> str:
    """Return *plug* as one plug that an agent reads unchanged, else raise InputError."""
    if not isinstance(plug, str) or not plug or _damaged(plug):
        raise InputError(option, plug, "the name or number of one plug, without blanks around it")
    if "," in plug:
        raise InputError(
            option,
            plug,
            "one plug: agents take a comma for several, and some switch only the first",
        )
    return plug


def _checked_plug(metadata: FenceMetadata, action: str, plug: str | None) -> str | None:
    host_argument = metadata.host_argument
    if plug is None:
        parameter = metadata.parameter(host_argument) if host_argument else None
        if (
            parameter is not None
            and parameter.required
            and action in POWER_ACTIONS
            and not parameter.default
        ):
            raise InputError("plug", None, f"the plug of one machine: {metadata.name} needs it")
        return None
    check_plug(plug)
    if host_argument is None:
        raise InputError(
            "plug", plug, f"no plug: {metadata.name} takes none and acts on its only device"
        )
    return host_argument


def _require(metadata: FenceMetadata, action: str, lines: Mapping[str, str], option: str) -> None:
    """Raise InputError for a required parameter that is missing under all of its names."""
    if action in ("metadata", "manpage"):
        return
    for parameter in metadata.parameters:
        if not parameter.required or parameter.default or parameter.name in _OF_THE_NODE:
            continue
        names = metadata.spellings(parameter.name)
        if not names & set(lines):
            desired = " or ".join(sorted(names))
            raise InputError(
                option, sorted(set(lines) - {"action"}), f"also {desired} for {metadata.name}"
            )


def _text(parameter: FenceParameter, value: object, option: str) -> str | None:
    """Return *value* as it is sent, or None when it is not sent."""
    if parameter.type == "boolean":
        return _boolean(parameter, value, option)
    if isinstance(value, bool):
        value = "1" if value else "0"
    if not isinstance(value, (str, int, float)):
        raise InputError(option, _shown(parameter, value), "a text or a number")
    text = str(value)
    problem = _damaged(text)
    if problem:
        raise InputError(option, _shown(parameter, value), problem)
    if parameter.default and _expected(parameter, parameter.default):
        return text
    expected = _expected(parameter, text)
    if expected:
        raise InputError(option, _shown(parameter, value), expected)
    return text


def _shown(parameter: FenceParameter, value: object) -> object:
    return HIDDEN if parameter.secret else value


def _boolean(parameter: FenceParameter, value: object, option: str) -> str | None:
    """Return a boolean as it is sent; false is None, as agents take any value for true."""
    word = str(value).lower()
    if value is True or word in TRUE_WORDS:
        return "1"
    if value is False or word in FALSE_WORDS:
        return "0" if parameter.true_by_default else None
    raise InputError(option, _shown(parameter, value), "true or false")


def _damaged(text: str) -> str:
    """Return what to write instead when an agent would not read *text* as it is, else ""."""
    if any(character in text for character in "\n\r\0"):
        return "a value in one line: agents read one parameter from each line"
    if text != text.strip():
        return "a value without blanks around it: agents strip them"
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return "a value without double quotes around it: agents strip them"
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "a value that can be written as UTF-8"
    return ""


def _expected(parameter: FenceParameter, text: str) -> str:
    if parameter.type in ("integer", "second") and not _INTEGER.match(text):
        unit = " of seconds" if parameter.type == "second" else ""
        return f"a whole number{unit}"
    if parameter.type == "select" and parameter.options and text not in parameter.options:
        return "one of " + ", ".join(parameter.options)
    return ""


TEXT_LIMIT = 2000
"""How many of the last characters of an agent's output are kept: the reason is there."""

WORDS_LIMIT = 250
"""The longest reason that is taken from an agent's output, in characters."""

_BEFORE_WORDS = re.compile(r"(\d{4}-\d\d-\d\d [\d:,]+ )?((ERROR|CRITICAL): )?(Failed: )?")
_NO_WORDS = "Please use '-h' for usage"
"""What fencing.py of fence-agents writes before its reason, and in a line after it."""

LISTS = ("list", "list-status")

STATUS_OFF = 2
"""The exit status of a ``status`` that is off (FenceAgentAPI, Agent Operations: status)."""

_KEEP = 64 * 1024


@dataclass(frozen=True)
class FenceCall:
    """The result of one call; ``exit_status`` is None when the agent did not end by itself.

    ``duration`` is in seconds.  ``output`` is its standard output alone, for lists.
    """

    action: str
    exit_status: int | None
    timed_out: bool
    duration: float
    text: str
    output: str = ""

    @property
    def succeeded(self) -> bool:
        """The agent reports success, which proves nothing yet.

        (FenceAgentAPI, Agent Operations: a status or monitor of a machine that is off is 2.)
        """
        good = (0, STATUS_OFF) if self.action in ("status", "monitor") else (0,)
        return self.exit_status in good and not self.timed_out

    @property
    def words(self) -> str:
        """The reason in the agent's own words, in one line; its last line that has one."""
        lines = [_BEFORE_WORDS.sub("", clean(one), 1) for one in self.text.splitlines()]
        told = [one for one in lines if one and one != _NO_WORDS]
        text = told[-1].rstrip(".") if told else f"exit status {self.exit_status}"
        if len(text) > WORDS_LIMIT:
            # Chained errors have the cause at their end.
            half = (WORDS_LIMIT - 5) // 2
            text = f"{text[:half]} ... {text[-half:]}"
        return text

    @property
    def power(self) -> str:
        """The power by a status: ``on`` (0) or ``off`` (2); anything else is ``unknown``.

        (FenceAgentAPI, Agent Operations: status.)
        """
        if self.action != "status" or self.timed_out:
            return "unknown"
        if self.exit_status == 0:
            return "on"
        return "off" if self.exit_status == STATUS_OFF else "unknown"


def call_fence_agent(
    path: str,
    metadata: FenceMetadata,
    action: str,
    parameters: Mapping[str, object],
    *,
    plug: str | None = None,
    nodename: str = "",
    timeout: float,
    run: Callable[..., Outcome] = run_process,
    clock: Callable[[], float] = time.monotonic,
) -> FenceCall:
    """Call *action* of the fence agent at *path* for *plug* within *timeout* seconds.

    Secrets in files and from scripts are fetched first, within the same time; with none left
    the agent is not called.  Raises InputError, AgentError or FenceError when the request is
    wrong (see ``fence_request``), a secret is not available, or the agent cannot be started;
    a failure of the agent is in the result.
    """
    began = clock()
    parameters = secrets_from_files(metadata, parameters)
    parameters = secrets_from_scripts(metadata, parameters, run, timeout)
    request = fence_request(metadata, action, parameters, plug, nodename=nodename)
    secrets = metadata.secrets_in(parameters)
    fetching = clock() - began
    if fetching >= timeout:
        raise FenceError(
            f"The secrets of {metadata.name} took all of its {timeout:g} seconds; it is not called."
        )
    outcome = run(
        [path],
        deadline=timeout - fetching,
        stdin=request,
        environment=fence_environment(),
        keep=KEEP if action in LISTS else _KEEP,
    )
    return FenceCall(
        action=action,
        exit_status=outcome.exit_status,
        timed_out=outcome.timed_out,
        duration=fetching + outcome.duration,
        text=_output_text(outcome, secrets, timeout),
        output=hide(outcome.stdout, secrets),
    )


def _output_text(outcome: Outcome, secrets: Sequence[str], timeout: float) -> str:
    parts = [outcome.stdout.strip(), outcome.stderr.strip()]
    if outcome.timed_out:
        parts.append(f"no answer within {timeout:g} seconds; the agent was killed")
    elif outcome.signal is not None:
        parts.append(f"the agent was killed by signal {outcome.signal}")
    # Hidden before it is cut, so that no part of a secret is left at the edge.
    text = hide("\n".join(part for part in parts if part), secrets)
    return text[-TEXT_LIMIT:]
