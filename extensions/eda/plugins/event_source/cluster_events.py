# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What happens in a cluster, as events for event-driven Ansible.

An event source cannot import from its collection, so this file needs nothing but Python and the
YAML that ansible-core needs too.  By a command that it is given it runs ``holdfast status --json``
on one node after the other until one answers, and ``holdfast metrics`` on each, side by side, and
compares what they say.  It is told late, and may miss what came and went between two looks;
nothing that keeps a cluster safe may wait for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterable
from typing import Any

import yaml

DOCUMENTATION = r"""
---
short_description: What happens in a holdfast cluster.
description:
  - Looks at a cluster again and again and tells what changed. An event has C(kind), C(cluster) and
    C(text); most have C(node) or C(service).
  - The kinds are V(node_fenced), V(node_back), V(no_manager), V(problem), V(problem_gone),
    V(failover_finished), V(lease_margin_small), V(rehearsal_overdue), V(drift),
    V(expected_unreadable), V(unreachable) and V(reachable).
  - The options are checked before anything is run. One that is none, or that has no such value,
    ends the source with a sentence that names it.
  - A lasting state is reported once, and again after it was gone. A problem in which only
    numbers change is the same one.
  - Texts may have output of agents. They end after 4000 characters, control characters in them
    become blanks, and C({{), C({%) and C({#) get a blank inside, so that a playbook to which an
    event is passed does not take a text for a template.
  - An answer that is not a status is passed over like no answer.
options:
  nodes:
    description:
      - The nodes to ask, always a list. The first that answers says how the cluster is; each is
        asked for its metrics. Without any, O(command) is run as it is.
    type: list
    elements: str
  command:
    description:
      - The command of holdfast as a list of words, run without a shell; C({node}) in them becomes
        the node.
    type: list
    elements: str
    default: [holdfast]
  delay:
    description:
      - Seconds between two looks, from 0.1 to 86400.
    type: float
    default: 10
  timeout:
    description:
      - Seconds that a node gets to answer, from 0.1 to 3600. Then the next is asked how the cluster
        is, and its metrics are not known.
    type: float
    default: 15
  margin:
    description:
      - A host lease is reported when less than this share of its time, from 0 to 1, is left on a
        node that answers.
    type: float
    default: 0.5
  rehearsal_days:
    description:
      - The fencing of a node is reported when the last rehearsal is older than this many days,
        36500 at most, by all reports read since the source started; V(0) is never.
    type: float
    default: 0
  expected:
    description:
      - A file with the variables C(holdfast_services) and C(holdfast_rules), as YAML or JSON, such
        as the playbook C(export) writes. It is reported when the names that are
        declared differ from it; the playbook C(drift) compares the rest too. The file is read again
        with each look.
    type: str
"""

EXAMPLES = r"""
- holdfast.ha.cluster_events:
    nodes: [n1.example, n2.example, n3.example]
    command: [ssh, -o, BatchMode=yes, "{node}", holdfast]
    rehearsal_days: 30
"""

PLACE = "{node}"
END_WAIT = 2.0
"""Seconds that a killed command gets to be gone."""

MOST_BYTES = 64 << 20
"""The longest answer of a command."""

LONGEST_TEXT = 4000
"""The number of characters of a text in an event."""

LONGEST_LINE = 4096
"""The number of characters of a line in the metrics."""

MOST_PROBLEMS = 1000
"""The number of problems that are told at once."""

LARGEST = 1e28
"""The largest amount of a number in an answer."""

AT_ONCE = 32
"""So many nodes are asked for their metrics side by side."""

DECLARED = ("holdfast_services", "holdfast_rules")

_DAY = 86400.0
_SAMPLE = re.compile(r"^holdfast_(\w+)\{(.*)\} (\S+)$")
_NUMBER = re.compile(r"(?<!\w)(?<!\w[.:-])\d+(?:\.\d+)?(?!\w|[.:-]\w)")
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z")
"""The name of a cluster or a node."""

_SERVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}\Z")
"""The name of a service or a rule."""

_TEMPLATE = re.compile(r"\{(?=[{%#])|#(?=jinja2)")
"""Where a text would begin to be a template of Ansible."""

_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

BY_HAND = "fenced: "
"""With this begins the reason for which a node is kept empty whose power somebody was to cut."""

GONE = ("free", "dead")
"""States of a host lease behind which its node is dead, or has left."""

OWN = "eda_"
"""What ansible-rulebook itself gives to a source begins so."""

Event = dict[str, Any]
Number = tuple[str, dict[str, str], float]


def _is_off(node: dict[str, Any]) -> bool:
    """Return whether a node is confirmed dead, or was to be fenced by hand with its lease gone."""
    if node["state"] != "offline":
        return bool(node["state"] == "off")
    by_hand = ((node.get("maintenance") or {}).get("reason") or "").startswith(BY_HAND)
    return by_hand and node["host_lease"]["state"] in GONE


class Cluster:
    """What is known of a cluster from the last look; each look returns what is new."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._name = ""
        self._lasting: dict[str, Event] = {}
        self._problems_told = 0
        self._fenced: set[tuple[str, float]] = set()
        self._finished: set[tuple[str, float]] = set()
        self._first = True

    def look(self, status: dict[str, Any], drift: Iterable[Event] = ()) -> list[Event]:
        """Return what is new in *status*, and in the events on its *drift*, which last."""
        name = self._name = status["cluster"]
        now: dict[str, Event] = {}
        for node, one in status["nodes"].items():
            if _is_off(one):
                now[f"off {node}"] = _event("node_fenced", name, one["reason"], node=node)
        if not status["manager"]["active"] and status["manager"]["active"] is not None:
            now["manager"] = _event("no_manager", name, "No node holds the manager lease.")
        now.update(self._problems(name, status["problems"]))
        now.update((f"{one['kind']} {one['text']}", one) for one in drift)
        new = [event for key, event in now.items() if key not in self._lasting]
        gone = [event for key, event in self._lasting.items() if key not in now]
        new += self._fenced_and_back(name, status, now)
        new += [_over(event, name) for event in gone if event["kind"] in _ENDS]
        new += self._failovers(name, status)
        self._lasting, self._first = now, False
        return new

    def silent(self, why: str) -> list[Event]:
        """Return that nobody answers, once; what lasted until then is reported again afterwards."""
        known = self._lasting.get("silent")
        self._lasting["silent"] = event = _event("unreachable", self._name, why)
        return [] if known else [event]

    def _problems(self, name: str, texts: list[str]) -> dict[str, Event]:
        """Return each problem by a key that it keeps while only numbers in its text change."""
        texts = [plain(text) for text in texts[:MOST_PROBLEMS]]
        known = {key: one["text"] for key, one in self._lasting.items() if one["kind"] == "problem"}
        by_text: dict[str, list[str]] = {}
        by_form: dict[tuple[str, ...], list[str]] = {}
        for key, text in known.items():
            by_text.setdefault(text, []).append(key)
            by_form.setdefault(_form(text), []).append(key)
        found: dict[str, Event] = {}
        # Those whose text is the same come first, so that no other takes their key.
        for text in sorted(texts, key=lambda text: text not in by_text):
            same = [key for key in by_text.get(text, ()) if key not in found]
            same += [key for key in by_form.get(_form(text), ()) if key not in found]
            if not same:
                self._problems_told += 1
            key = same[0] if same else f"problem {self._problems_told}"
            found[key] = _event("problem", name, text)
        return found

    def _fenced_and_back(
        self, name: str, status: dict[str, Any], now: dict[str, Event]
    ) -> list[Event]:
        """Return nodes that were fenced and came back between two looks; none before the first.

        The state of a node tells nothing of a reboot that is over; the record of its failover does.
        """
        found = []
        for one in status["failovers"]:
            node, key = one["node"], (one["node"], one["recorded"])
            if "confirmed" not in one["seconds"] or key in self._fenced:
                continue
            self._fenced.add(key)
            off = f"off {node}"
            if not self._first and off not in now and off not in self._lasting:
                event = _event("node_fenced", name, one["proof"], node=node)
                found += [event, _over(event, name)]
        return found

    def _failovers(self, name: str, status: dict[str, Any]) -> list[Event]:
        """Return failovers that finished since the last look; none from before the first."""
        found = []
        for one in status["failovers"]:
            key = (one["node"], one["recorded"])
            if one["finished"] and key not in self._finished:
                self._finished.add(key)
                if not self._first:
                    text = f"Failover of {one['node']}: {one['reason']}; {one['proof']}"
                    seconds = one["seconds"].get("finished", 0.0)
                    found.append(
                        _event("failover_finished", name, text, node=one["node"], seconds=seconds)
                    )
        return found


class Measures:
    """What the nodes' metrics said; each look returns what is new."""

    def __init__(self, arguments: dict[str, Any], wall: Any = time.time) -> None:
        """Take the arguments of the source, checked; nothing is known yet."""
        self._margin = arguments["margin"]
        self._days = arguments["rehearsal_days"]
        self._wall = wall
        self._name = ""
        self._nodes: set[str] = set()
        self._rehearsed: dict[str, float] = {}
        self._lasting: dict[str, Event] = {}

    def look(self, metrics: dict[str, str]) -> list[Event]:
        """Return what is new in the text *metrics* of each node that answered.

        What was told of the lease of a node that does not answer lasts until it does.
        """
        now = {
            key: event
            for key, event in self._lasting.items()
            if event["kind"] == "lease_margin_small" and event["node"] not in metrics
        }
        told: set[str] = set()
        for node, text in metrics.items():
            numbers = samples(text)
            names = (labels["cluster"] for _name, labels, _value in numbers if "cluster" in labels)
            self._name = next(names, self._name)
            told.update(
                labels["node"]
                for name, labels, _value in numbers
                if name == "node_score" and "node" in labels
            )
            self._take_rehearsals(numbers)
            now.update(self._small_margin(node, numbers))
        self._nodes = told or self._nodes
        now.update(self._overdue())
        new = [event for key, event in now.items() if key not in self._lasting]
        self._lasting = now
        return new

    def _small_margin(self, node: str, numbers: list[Number]) -> dict[str, Event]:
        values = {name: value for name, _labels, value in numbers}
        margin, age = values.get("lease_margin_seconds"), values.get("lease_age_seconds")
        if margin is None or age is None or margin >= self._margin * (margin + age):
            return {}
        who = node or "the node"
        text = f"{margin:.1f} s are left until {who} has to stop its services."
        event = _event("lease_margin_small", self._name, text, node=node, margin=margin)
        return {f"margin {node}": event}

    def _take_rehearsals(self, numbers: list[Number]) -> None:
        """Keep the newest rehearsal of each node: the one with the report may be down later."""
        for name, labels, at in numbers:
            if name == "fence_rehearsal_timestamp_seconds" and "node" in labels:
                self._rehearsed[labels["node"]] = max(self._rehearsed.get(labels["node"], 0.0), at)

    def _overdue(self) -> dict[str, Event]:
        if not self._days:
            return {}
        since = self._wall() - self._days * _DAY
        found = {}
        for node in sorted(self._nodes):
            if self._rehearsed.get(node, 0.0) < since:
                text = f"The fencing of {node} was not rehearsed for {self._days:g} days."
                found[f"overdue {node}"] = _event("rehearsal_overdue", self._name, text, node=node)
        return found


_ENDS = {"node_fenced": "node_back", "problem": "problem_gone", "unreachable": "reachable"}


def _form(text: str) -> tuple[str, ...]:
    """Return the text of a problem without the numbers that count on or away in it.

    Its first two words say what it is about.  A number in a name or an address is none.
    """
    words = text.split(" ", 2)
    return (*words[:2], *(_NUMBER.sub("#", one) for one in words[2:]))


def samples(text: str) -> list[Number]:
    """Return the numbers in the text of metrics by name, without the prefix, and labels.

    A line that is none is passed over, and so is one of a cluster or node without a proper name.
    """
    found = []
    for line in text.splitlines():
        match = _SAMPLE.match(line) if len(line) <= LONGEST_LINE else None
        if match:
            labels = dict(_LABEL.findall(match[2]))
            names = [labels[one] for one in ("cluster", "node") if one in labels]
            with contextlib.suppress(ValueError):
                number = _amount(float(match[3]))
                if all(_NODE.match(one) for one in names):
                    found.append((match[1], labels, number))
    return found


def plain(value: object) -> str:
    """Return *value* as a text on one line that neither a terminal nor Ansible takes for more.

    It has no control characters, and nothing in it begins a template.
    """
    text = str(value)[:LONGEST_TEXT]
    if not text.isprintable():
        text = "".join(one if one.isprintable() else " " for one in text)
    return _TEMPLATE.sub(r"\g<0> ", text)


def read_status(text: str) -> dict[str, Any]:
    """Return the parts of a status that events are made of; ValueError says why it is none.

    The library's own reader is out of reach, see the head of this file.
    """
    try:
        status = json.loads(text, parse_constant=_refuse, parse_int=_whole, parse_float=_fraction)
    except RecursionError:
        raise ValueError("no status: it is nested too deep") from None
    return _checked(status)


def _refuse(word: str) -> object:
    raise ValueError(f"{word} is no number")


def _whole(digits: str) -> int:
    if len(digits) > 21:
        raise ValueError("a number is too large")
    return int(digits)


def _fraction(digits: str) -> float:
    return _amount(float(digits))


def _amount(number: float) -> float:
    """Return a number that can be calculated with."""
    if not abs(number) <= LARGEST:
        raise ValueError("a number is too large")
    return number


def _checked(status: object) -> dict[str, Any]:
    """Return what is used of a status, each value of its type."""
    whole = _row(status)
    active = _row(whole.get("manager")).get("active")
    return {
        "cluster": _name(whole.get("cluster"), _NODE),
        "manager": {"active": None if active is None else bool(active)},
        "nodes": {
            _name(name, _NODE): _checked_node(_row(one))
            for name, one in _row(whole.get("nodes")).items()
        },
        "problems": [plain(one) for one in _rows(whole.get("problems"))],
        "failovers": [_checked_failover(_row(one)) for one in _rows(whole.get("failovers"))],
        "services": {_name(one, _SERVICE): {} for one in _row(whole.get("services"))},
        "rules": [
            {"name": _name(_row(one).get("name"), _SERVICE)} for one in _rows(whole.get("rules"))
        ],
    }


def _checked_node(node: dict[str, Any]) -> dict[str, Any]:
    maintenance = node.get("maintenance")
    return {
        "state": plain(node.get("state")),
        "reason": plain(node.get("reason")),
        "maintenance": maintenance and {"reason": plain(_row(maintenance).get("reason"))},
        "host_lease": {"state": plain(_row(node.get("host_lease")).get("state"))},
    }


def _checked_failover(failover: dict[str, Any]) -> dict[str, Any]:
    seconds = _row(failover.get("seconds"))
    return {
        "node": _name(failover.get("node"), _NODE),
        "recorded": _number_of(failover.get("recorded")),
        "finished": _number_of(failover.get("finished")),
        "reason": plain(failover.get("reason")),
        "proof": plain(failover.get("proof")),
        "seconds": {plain(name): _number_of(one) for name, one in seconds.items()},
    }


def _row(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("no status: an object is missing in it")
    return value


def _rows(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("no status: a list is missing in it")
    return value


def _name(value: object, names: re.Pattern[str]) -> str:
    if not isinstance(value, str) or not names.match(value):
        raise ValueError(f"no status: {plain(value)[:60]!r} in it is not a name")
    return value


def _number_of(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("no status: a number is missing in it")
    return value


async def main(queue: Any, args: dict[str, Any]) -> None:
    """Look again and again, and put what is new into *queue*.

    The metrics have a pace of their own: a node that is down must not delay what the others say.
    Raises ValueError for arguments that are not accepted, before anything is run.
    """
    args = checked(args)
    both = [
        asyncio.ensure_future(_follow_cluster(queue, args)),
        asyncio.ensure_future(_follow_measures(queue, args)),
    ]
    try:
        await asyncio.gather(*both)
    finally:
        # Neither goes on alone, whatever ended the other.
        for one in both:
            one.cancel()


def checked(args: dict[str, Any]) -> dict[str, Any]:
    """Return all options of the source as they are used; ValueError says which of *args* is wrong.

    One that is null counts as not given.
    """
    found = {name: default for name, (default, _take) in _OPTIONS.items()}
    for name, value in args.items():
        if name in _OPTIONS:
            if value is not None:
                found[name] = _OPTIONS[name][1](name, value)
        elif not name.startswith(OWN):
            close = difflib.get_close_matches(name, _OPTIONS, n=1)
            hint = f"; did you mean {close[0]}?" if close else "."
            known = ", ".join(_OPTIONS)
            raise ValueError(f"{name} is no option of cluster_events; expected {known}{hint}")
    return found


def _words(name: str, value: object) -> list[str]:
    """Return a list of texts; one text is none, as its letters would be taken for them."""
    if not isinstance(value, list) or not all(
        isinstance(one, (str, int)) and not isinstance(one, bool) and str(one) for one in value
    ):
        raise _not_accepted(name, value, "a list of texts, such as [n1, n2]")
    return [str(one) for one in value]


def _node_names(name: str, value: object) -> list[str]:
    """Return the nodes to ask, each once; one without a name where there are none."""
    nodes = list(dict.fromkeys(_words(name, value)))
    for node in nodes:
        # What begins so would be an option of ssh.
        if node.startswith("-"):
            raise _not_accepted(name, node, "the name of a node, which does not begin with a dash")
    return nodes or [""]


def _command(name: str, value: object) -> list[str]:
    words = _words(name, value)
    if not words:
        raise _not_accepted(name, value, "the words of a command, such as [holdfast]")
    return words


def _number(least: float, most: float, what: str) -> Callable[[str, object], float]:
    """Return what takes a number from *least* to *most*; a variable may have made a text of it."""

    def take(name: str, value: object) -> float:
        try:
            number = float(value) if isinstance(value, (int, float, str)) else None
        except ValueError:
            number = None
        if isinstance(value, bool) or number is None or not least <= number <= most:
            raise _not_accepted(name, value, f"{what} from {least:g} to {most:g}")
        return number

    return take


def _file(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise _not_accepted(name, value, "the path of a file")
    return value


def _not_accepted(name: str, value: object, expected: str) -> ValueError:
    return ValueError(f"{name}: {value!r} is not accepted; expected {expected}.")


_OPTIONS: dict[str, tuple[Any, Callable[[str, object], Any]]] = {
    "nodes": ([""], _node_names),
    "command": (["holdfast"], _command),
    "delay": (10.0, _number(0.1, 86400, "seconds")),
    "timeout": (15.0, _number(0.1, 3600, "seconds")),
    "margin": (0.5, _number(0, 1, "a share")),
    "rehearsal_days": (0.0, _number(0, 36500, "days")),
    "expected": ("", _file),
}
"""Each option with its default and with what takes a value of it."""


async def _follow_cluster(queue: Any, args: dict[str, Any]) -> None:
    cluster = Cluster()
    while True:
        try:
            status = await ask(args)
            events = cluster.look(status, drift(status, args["expected"]))
        except OSError as error:
            events = cluster.silent(str(error))
        await _put(queue, args, events)


async def _follow_measures(queue: Any, args: dict[str, Any]) -> None:
    measures = Measures(args)
    while True:
        await _put(queue, args, measures.look(await ask_metrics(args)))


async def _put(queue: Any, args: dict[str, Any], events: list[Event]) -> None:
    """Put *events* into *queue*, and wait until the next look."""
    for event in events:
        await queue.put({"holdfast": event})
    await asyncio.sleep(args["delay"])


async def ask(args: dict[str, Any]) -> dict[str, Any]:
    """Return the status of the first node that answers; OSError when none does."""
    whys = []
    for node in args["nodes"]:
        try:
            return read_status(await _run(args, node, "status", "--json"))
        except (OSError, ValueError, asyncio.TimeoutError) as error:
            whys.append(f"{node}: {str(error) or 'no answer in time'}".lstrip(": "))
    raise OSError("; ".join(whys))


async def ask_metrics(args: dict[str, Any]) -> dict[str, str]:
    """Return the metrics of each node that answers in time; all are asked side by side."""
    nodes = args["nodes"]
    room = asyncio.Semaphore(AT_ONCE)
    found: dict[str, str] = {}

    async def ask_one(node: str) -> None:
        # One is enough to tell of the whole cluster, beside the manager's node.
        more = ("--whole-cluster",) if node == nodes[0] else ()
        with contextlib.suppress(OSError, ValueError, asyncio.TimeoutError):
            async with room:
                found[node] = await _run(args, node, "metrics", *more)

    await asyncio.gather(*map(ask_one, nodes))
    return found


async def _run(args: dict[str, Any], node: str, *words: str) -> str:
    command = [word.replace(PLACE, node) for word in args["command"]]
    process = await asyncio.create_subprocess_exec(
        *command,
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, error = await asyncio.wait_for(_answer(process), args["timeout"])
    except BaseException:
        await _end(process)
        raise
    if process.returncode not in (0, 1) or not out.strip():
        said = error.decode("utf-8", "replace").strip().splitlines()
        raise OSError(said[-1] if said else f"exit status {process.returncode}")
    return out.decode("utf-8", "replace")


async def _answer(process: asyncio.subprocess.Process) -> tuple[bytes, bytes]:
    """Return what a command prints until it ends; OSError when that is too much."""
    out, error, _status = await asyncio.gather(
        _read_all(process.stdout), _read_all(process.stderr), process.wait()
    )
    return out, error


async def _read_all(stream: Any) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        part = await stream.read(1 << 16)
        if not part:
            return b"".join(parts)
        size += len(part)
        if size > MOST_BYTES:
            raise OSError(f"its answer is longer than {MOST_BYTES} bytes")
        parts.append(part)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill a command with all that it started, and let go of it, whoever holds its output."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(process.wait(), END_WAIT)
    # What left the command's session may hold the pipes for as long as it likes; nothing else
    # closes our ends of them.
    process._transport.close()  # type: ignore[attr-defined]


def _event(kind: str, cluster: str, text: str, **more: Any) -> Event:
    texts = {"cluster": cluster, "text": text, **more}
    told = {key: plain(one) if isinstance(one, str) else one for key, one in texts.items()}
    return {"kind": kind, **told}


def _over(event: Event, cluster: str) -> Event:
    """Return that *event* of *cluster*, which may be known only now, is over."""
    return {**event, "kind": _ENDS[event["kind"]], "cluster": cluster}


def drift(status: dict[str, Any], path: str | None) -> list[Event]:
    """Return that other services or rules are declared than the file *path* has, if there is one.

    Only names are compared.  That it cannot be used is an event as well.
    """
    if not path:
        return []
    name = status["cluster"]
    try:
        expected = read_expected(path)
    except ValueError as error:
        return [_event("expected_unreadable", name, str(error))]
    live = {
        "holdfast_services": set(status["services"]),
        "holdfast_rules": {rule["name"] for rule in status["rules"]},
    }
    found = []
    for variable, asked in expected.items():
        for one in sorted(live[variable] ^ asked):
            where = (
                "only in the cluster"
                if one in live[variable]
                else "declared nowhere in the cluster"
            )
            text = f"{one} of {variable} is {where}."
            found.append(_event("drift", name, text, name=one))
    return found


def read_expected(path: str) -> dict[str, set[str]]:
    """Return the names that there are to be by variable; ValueError says why it cannot."""
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - it needs nothing else of pathlib
            found = yaml.safe_load(file)
    except OSError as error:
        raise ValueError(f"The file {path} of expected cannot be read: {error.strerror}.") from None
    except RecursionError:
        raise ValueError(f"The file {path} of expected is nested too deep.") from None
    except (UnicodeError, yaml.YAMLError, ValueError, OverflowError) as error:
        first = " ".join(str(error).split())
        raise ValueError(f"The file {path} of expected is no YAML: {first}.") from None
    try:
        names = {one: _names(rows) for one, rows in found.items() if one in DECLARED}
    except (AttributeError, KeyError, TypeError):
        names = {}
    if not names:
        raise ValueError(
            f"The file {path} of expected is not accepted; expected are the variables"
            f" {' and '.join(DECLARED)}, lists of what has a name each."
        )
    return names


def _names(rows: Any) -> set[str]:
    """Return the names of those *rows* of a variable that are to be there."""
    return {str(row["name"]) for row in rows or () if row.get("state", "present") != "absent"}
