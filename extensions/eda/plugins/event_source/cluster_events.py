# Copyright: 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What happens in a cluster, as events for event-driven Ansible.

An event source cannot import from its collection, so this file needs nothing but Python: it
runs ``holdfast status --json`` and ``holdfast metrics`` on one node after the other, by a
command that it is given, and compares what they say.  It is told late, and may miss what came
and went between two looks; nothing that keeps a cluster safe may wait for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import time
from typing import Any

DOCUMENTATION = r"""
---
short_description: What happens in a holdfast cluster.
description:
  - Looks at a cluster again and again and tells what changed. An event has C(kind), C(cluster) and
    C(text); most have C(node) or C(service).
  - The kinds are V(node_fenced), V(node_back), V(no_manager), V(problem), V(problem_gone),
    V(failover_finished), V(lease_margin_small), V(rehearsal_overdue), V(drift), V(unreachable) and
    V(reachable). What lasts is told once, and again after it was gone. A problem of which only
      numbers change is the same one.
options:
  nodes:
    description:
      - The nodes to ask, in this order. Without any, O(command) is run once as it is.
    type: list
    elements: str
  command:
    description:
      - The command of holdfast as a list, run without a shell; C({node}) in it becomes the node.
    type: list
    elements: str
    default: [holdfast]
  delay:
    description:
      - Seconds between two looks.
    type: float
    default: 10
  timeout:
    description:
      - Seconds that a node gets to answer before the next is asked.
    type: float
    default: 15
  margin:
    description:
      - A host lease is told when less than this share of its time is left on a node that is asked.
    type: float
    default: 0.5
  rehearsal_days:
    description:
      - The fencing of a node is told when it was not rehearsed for so many days; V(0) is never.
    type: float
    default: 0
  expected:
    description:
      - A file with the variables C(holdfast_services) and C(holdfast_rules) as JSON. It is told
        when the names that are declared differ from it.
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

_DAY = 86400.0
_SAMPLE = re.compile(r"^holdfast_(\w+)\{(.*)\} (\S+)$")
_NUMBER = re.compile(r"(?<!\w)(?<!\w[.:-])\d+(?:\.\d+)?(?!\w|[.:-]\w)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

Event = dict[str, Any]


class Cluster:
    """What is known of a cluster from the last look; each look returns what is new."""

    def __init__(self, arguments: dict[str, Any], wall: Any = time.time) -> None:
        """Take the arguments of the source; nothing is known yet."""
        self._arguments = arguments
        self._wall = wall
        self._lasting: dict[str, Event] = {}
        self._problems_told = 0
        self._fenced: set[tuple[str, float]] = set()
        self._finished: set[tuple[str, float]] = set()
        self._first = True

    def look(self, status: dict[str, Any], metrics: str, expected: dict[str, Any]) -> list[Event]:
        """Return what is new in *status* and the text *metrics* of the node that answered."""
        name = status["cluster"]
        now: dict[str, Event] = {}
        for node, one in status["nodes"].items():
            if one["state"] == "off":
                now[f"off {node}"] = _event("node_fenced", name, one["reason"], node=node)
        if not status["manager"]["active"] and status["manager"]["active"] is not None:
            now["manager"] = _event("no_manager", name, "No node holds the manager lease.")
        now.update(self._problems(name, status["problems"]))
        for event in (*self._measured(name, metrics), *_drift(name, status, expected)):
            about = event.get("node", event.get("name", ""))
            now[f"{event['kind']} {about}"] = event
        new = [event for key, event in now.items() if key not in self._lasting]
        gone = [event for key, event in self._lasting.items() if key not in now]
        new += self._fenced_and_back(name, status, now)
        new += [_over(event) for event in gone if event["kind"] in _ENDS]
        new += self._failovers(name, status)
        self._lasting, self._first = now, False
        return new

    def silent(self, why: str) -> list[Event]:
        """Return that nobody answers, once; what lasted until then is told anew afterwards."""
        known = self._lasting.get("silent")
        self._lasting["silent"] = event = _event("unreachable", "", why)
        return [] if known else [event]

    def _problems(self, name: str, texts: list[str]) -> dict[str, Event]:
        """Return each problem by a key that it keeps while only numbers in its text change."""
        known = {key: one["text"] for key, one in self._lasting.items() if one["kind"] == "problem"}
        found: dict[str, Event] = {}
        # Those whose text is the same come first, so that no other takes their key.
        for text in sorted(texts, key=lambda text: text not in known.values()):
            same = [key for key, other in known.items() if other == text]
            same += [key for key, other in known.items() if _form(other) == _form(text)]
            if not same:
                self._problems_told += 1
            key = same[0] if same else f"problem {self._problems_told}"
            known.pop(key, None)
            found[key] = _event("problem", name, text)
        return found

    def _measured(self, name: str, metrics: str) -> list[Event]:
        found = []
        values: dict[str, float] = {}
        rehearsed: dict[str, float] = {}
        for metric, labels, value in samples(metrics):
            values.setdefault(metric, value)
            if metric == "fence_rehearsal_timestamp_seconds":
                rehearsed[labels["node"]] = max(rehearsed.get(labels["node"], 0.0), value)
        margin, age = values.get("lease_margin_seconds"), values.get("lease_age_seconds")
        share = float(self._arguments.get("margin", 0.5))
        if margin is not None and age is not None and margin < share * (margin + age):
            text = f"{margin:.1f} s are left until the node has to stop its services."
            found.append(_event("lease_margin_small", name, text, margin=margin))
        days = float(self._arguments.get("rehearsal_days", 0))
        if days:
            for node in sorted(
                {
                    labels["node"]
                    for metric, labels, _value in samples(metrics)
                    if metric == "node_score"
                }
            ):
                if rehearsed.get(node, 0.0) < self._wall() - days * _DAY:
                    text = f"The fencing of {node} was not rehearsed for {days:g} days."
                    found.append(_event("rehearsal_overdue", name, text, node=node))
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
                found += [event, _over(event)]
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


_ENDS = {"node_fenced": "node_back", "problem": "problem_gone", "unreachable": "reachable"}


def _form(text: str) -> tuple[str, ...]:
    """Return the text of a problem without the numbers that count on or away in it.

    Its first two words say what it is about.  A number in a name or an address is none.
    """
    words = text.split(" ", 2)
    return (*words[:2], *(_NUMBER.sub("#", one) for one in words[2:]))


def samples(text: str) -> list[tuple[str, dict[str, str], float]]:
    """Return the numbers in the text of metrics by name, without the prefix, and labels."""
    found = []
    for line in text.splitlines():
        match = _SAMPLE.match(line)
        if match:
            labels = dict(_LABEL.findall(match[2]))
            found.append((match[1], labels, float(match[3])))
    return found


async def main(queue: Any, args: dict[str, Any]) -> None:
    """Look again and again, and put what is new into *queue*."""
    cluster = Cluster(args)
    expected = _expected(args.get("expected"))
    while True:
        try:
            status, metrics = await ask(args)
            events = cluster.look(status, metrics, expected)
        except OSError as error:
            events = cluster.silent(str(error))
        for event in events:
            await queue.put({"holdfast": event})
        await asyncio.sleep(float(args.get("delay", 10)))


async def ask(args: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return status and metrics of the first node that answers; OSError when none does."""
    nodes = args.get("nodes") or [""]
    whys = []
    for node in nodes:
        # What begins so would be an option of ssh.
        if str(node).startswith("-"):
            raise ValueError(f"nodes: {node!r} is no name of a node")
        try:
            text = await _run(args, str(node), "status", "--json")
            status = json.loads(text)
            if not isinstance(status, dict) or "nodes" not in status:
                raise ValueError("no status")
            return status, await _run(args, str(node), "metrics", "--whole-cluster")
        except (OSError, ValueError, asyncio.TimeoutError) as error:
            whys.append(f"{node}: {str(error) or 'no answer in time'}".lstrip(": "))
    raise OSError("; ".join(whys))


async def _run(args: dict[str, Any], node: str, *words: str) -> str:
    command = [word.replace(PLACE, node) for word in args.get("command") or ["holdfast"]]
    process = await asyncio.create_subprocess_exec(
        *command,
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, error = await asyncio.wait_for(process.communicate(), float(args.get("timeout", 15)))
    except BaseException:
        await _end(process)
        raise
    if process.returncode not in (0, 1) or not (out.strip() or words[0] != "status"):
        said = error.decode("utf-8", "replace").strip().splitlines()
        raise OSError(said[-1] if said else f"exit status {process.returncode}")
    return out.decode("utf-8", "replace")


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
    return {"kind": kind, "cluster": cluster, "text": text, **more}


def _over(event: Event) -> Event:
    return {**event, "kind": _ENDS[event["kind"]]}


def _expected(path: str | None) -> dict[str, Any]:
    if not path:
        return {}
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - it needs nothing else of pathlib
        found: dict[str, Any] = json.load(file)
    return found


def _drift(name: str, status: dict[str, Any], expected: dict[str, Any]) -> list[Event]:
    """Return that other services or rules are declared than there are to be."""
    found = []
    live = {
        "holdfast_services": set(status["services"]),
        "holdfast_rules": {rule["name"] for rule in status["rules"]},
    }
    for variable, names in live.items():
        if variable not in expected:
            continue
        asked = {
            row["name"] for row in expected[variable] if row.get("state", "present") != "absent"
        }
        for one in sorted(names ^ asked):
            where = "only in the cluster" if one in names else "declared nowhere in the cluster"
            text = f"{one} of {variable} is {where}."
            found.append(_event("drift", name, text, name=one))
    return found
