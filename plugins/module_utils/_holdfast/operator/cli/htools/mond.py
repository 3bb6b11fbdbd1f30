# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask the monitoring daemons of Ganeti's nodes for the load of their processors.

All are asked over HTTP at the same time, or their answers are in a file.  As in htools 3.0.2 the
answers count only if every node gave one; address, report, file and messages were measured there.
"""

from __future__ import annotations

from ....errors import ClusterDataError
from ....hints import Any, Callable, Optional, Sequence
from ....placement.iallocator.json_text import (
    encode,
    items,
    no_others,
    number,
    parse,
    part,
    record,
    required,
    whole,
)
from ....placement.iallocator.json_text import text as word
from ....placement.model.show import quoted_list

Kept = Optional[dict[str, dict[str, Any]]]

PORT = 1815
OF_NODES, OF_INSTANCES = "cpu-avg-load", "xen-cpu-avg-load"
"""The collectors: of each node's processors as a whole, and under Xen of each instance."""
REPORT = "/1/report/default/{collector}"
LONGEST = 10.0
"""Seconds until a node that has not answered counts as silent."""
AT_ONCE = 32
MOST_BYTES = 1 << 20
CATEGORIES = ("storage", "instance", "daemon", "hypervisor")
KINDS = (0, 1)
MOST_LOAD = 1e100
"""A larger load counts as none: sums of it would overflow."""


def processor_loads(
    names: Sequence[str],
    say: Callable[[str], object],
    kept: Kept = None,
    port: int = PORT,
    longest: float = LONGEST,
) -> dict[str, float] | None:
    """Return the processor load of each of the nodes *names*, None unless all report it.

    *kept* are answers from a file; without it the daemons are asked.  *say* gets the messages.
    """
    reports = _reports(names, OF_NODES, _total, say, kept, port, longest)
    return None if reports is None else dict(zip(names, reports))


def instance_loads(
    names: Sequence[str],
    instances: Sequence[str],
    say: Callable[[str], object],
    kept: Kept = None,
) -> dict[str, float] | None:
    """Return the load of each of *instances* as the nodes *names* report it, None if one lacks.

    Of several reports of an instance the first counts.  The rest is as in `processor_loads`.
    """
    reports = _reports(names, OF_INSTANCES, _of_each, say, kept, PORT, LONGEST)
    if reports is None:
        return None
    loads: dict[str, float] = {}
    for report in reports:
        loads = {**report, **loads}
    missing = sorted(set(instances) - set(loads))
    if missing:
        say(f"No CPU information available for {quoted_list(missing)}")
        return None
    return loads


def read_kept(text: str) -> dict[str, dict[str, Any]]:
    """Return the data in a file for hbal's option ``--mond-data``, by node and collector.

    Of two entries of a node the last counts, of two reports by one collector the first.  Raises
    `ClusterDataError`, with hbal's words where it has some.
    """
    try:
        entries: Any = parse(text, "the kept reports of monitoring daemons")
    except RecursionError:
        raise ClusterDataError("can't parse MonD data: it is nested too deeply") from None
    kept: dict[str, dict[str, Any]] = {}
    try:
        try:
            records = [record(one) for one in items(entries)]
        except ClusterDataError as error:
            raise ClusterDataError(f"Parsing MonD's answer: {error}") from None
        for entry in records:
            name = required("Parsing node's name", entry, "node", word)
            kept[name] = required("Parsing node's reports", entry, "reports", _by_collector)
    except ClusterDataError as error:
        raise ClusterDataError(f"can't parse MonD data: {error}") from None
    return kept


def _by_collector(reports: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for report in items(reports):
        name, data = _read_report(report)
        found.setdefault(name, data)
    return found


def _read_report(value: Any) -> tuple[str, Any]:
    """Return the collector and the data of a report.

    Raises `ClusterDataError` unless all its fields are as Ganeti's daemons write them.
    """
    report = record(value)
    name = part(report, "name", word)
    part(report, "version", _typed("DCVersion", _is_text))
    part(report, "format_version", whole)
    part(report, "timestamp", _time)
    if report.get("category") is not None:
        part(report, "category", _category)
    part(report, "kind", _typed("DCKind", _is_kind))
    data = part(report, "data", lambda found: found)
    known = ("category", "data", "format_version", "kind", "name", "timestamp", "version")
    no_others(report, known)
    return name, data


def _time(value: Any) -> None:
    try:
        whole(value)
    except ClusterDataError:
        raise ClusterDataError("Unable to read Integer") from None


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_kind(value: Any) -> bool:
    return value in KINDS and not isinstance(value, bool)


def _category(value: Any) -> None:
    _typed("DCCategory", _is_text)(value)
    if value not in CATEGORIES:
        raise ClusterDataError(f"Invalid category name {value} for type DCCategory")


def _typed(kind: str, is_one: Callable[[Any], bool]) -> Callable[[Any], None]:
    """Return a reader that refuses values which *is_one* does not take for the type *kind*."""

    def read(value: Any) -> None:
        if not is_one(value):
            raise ClusterDataError(f"Invalid JSON value {encode(value)} for type {kind}")

    return read


def _reports(
    names: Sequence[str],
    collector: str,
    read: Callable[[Any], Any],
    say: Callable[[str], object],
    kept: Kept,
    port: int,
    longest: float,
) -> list[Any] | None:
    """Return what *read* makes of each node's data by one collector, None if of one nothing."""
    if kept is not None:
        data = {name: kept[name][collector] for name in names if collector in kept.get(name, ())}
    else:
        answers = _ask_all(names, REPORT.format(collector=collector), port, longest)
        for name in names:
            if name not in answers:
                say(f"Failed to contact node's {name} MonD for DC {collector}")
        data = {name: _data_in(text) for name, text in answers.items()}
    found = [read(data[name]) for name in names if name in data]
    reports = [report for report in found if report is not None]
    if len(reports) < len(names):
        say(f"Didn't receive an answer by all MonDs, {collector}'s data will be ignored.")
        return None
    return reports


def _ask_all(names: Sequence[str], page: str, port: int, longest: float) -> dict[str, str]:
    """Return the text that each node answers within *longest* seconds, of those that do."""
    import threading
    import time

    answers: dict[str, str] = {}
    waiting = list(reversed(names))
    deadline = time.monotonic() + longest

    def work() -> None:
        while waiting:
            try:
                name = waiting.pop()
            except IndexError:
                return
            text = _ask(name, page, port, deadline - time.monotonic())
            if text is not None:
                answers[name] = text

    # One that hangs in a name server's answer is left behind; it ends with the process.
    workers = [threading.Thread(target=work, daemon=True) for _one in names[:AT_ONCE]]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(max(0.0, deadline - time.monotonic()))
    return dict(answers)


def _ask(name: str, page: str, port: int, left: float) -> str | None:
    """Return the report of the node *name*, None if there is none within *left* seconds."""
    import http.client

    if left <= 0:
        return None
    connection = http.client.HTTPConnection(name, port, timeout=left)
    try:
        connection.request("GET", page)
        response = connection.getresponse()
        text = response.read(MOST_BYTES).decode("utf-8", "replace")
        # What is left to be read is missing, or too much.
        return None if response.status >= 400 or response.length else text
    except (OSError, ValueError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def _data_in(text: str) -> Any:
    """Return the data of a report, None if it is no report."""
    if not text.startswith("{"):
        return None
    try:
        return _read_report(parse(text, "the report of a monitoring daemon"))[1]
    except (ClusterDataError, RecursionError):
        return None


def _total(data: Any) -> float | None:
    """Return the load of all processors in *data*, None if it has none."""
    try:
        fields = record(data)
        part(fields, "cpu_number", whole)
        part(fields, "cpus", lambda loads: [number(load) for load in items(loads)])
        load = part(fields, "cpu_total", number)
        no_others(fields, ("cpu_number", "cpu_total", "cpus"))
    except ClusterDataError:
        return None
    return load if abs(load) < MOST_LOAD else None


def _of_each(data: Any) -> dict[str, float] | None:
    """Return the load of each instance in *data*, None if it is something else."""
    try:
        loads = {name: number(load) for name, load in record(data).items()}
    except ClusterDataError:
        return None
    return loads if all(abs(load) < MOST_LOAD for load in loads.values()) else None
