# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask the monitoring daemons of Ganeti's nodes how busy their processors are.

Each is asked over HTTP, all side by side, and none for longer than `LONGEST` in all.  As in
htools 3.0.2 the answers count only if every node has given one; address, report and words
were measured there.
"""

from __future__ import annotations

from ..errors import ClusterDataError
from ..placement.fields import quoted_list
from ..placement.json_text import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

PORT = 1815
OF_NODES, OF_INSTANCES = "cpu-avg-load", "xen-cpu-avg-load"
"""The collectors: of each node's processors as a whole, and under Xen of each instance."""
REPORT = "/1/report/default/{collector}"
LONGEST = 10.0
"""Seconds until a node that has not answered counts as silent."""
AT_ONCE = 32
MOST_BYTES = 1 << 20


def processor_loads(
    names: Sequence[str],
    say: Callable[[str], object],
    port: int = PORT,
    longest: float = LONGEST,
) -> dict[str, float] | None:
    """Return the load of the processors of the nodes *names*, None if not all of them tell it.

    *say* is told which nodes cannot be reached, and that the others' answers are of no use.
    """
    reports = _reports(names, OF_NODES, _total, say, port, longest)
    return None if reports is None else dict(zip(names, reports))


def instance_loads(
    names: Sequence[str],
    instances: Sequence[str],
    say: Callable[[str], object],
    port: int = PORT,
    longest: float = LONGEST,
) -> dict[str, float] | None:
    """Return the load of each of *instances* as the nodes *names* tell it, None if one lacks.

    What the first of several nodes tells of an instance counts.  *say* is told as in
    `processor_loads`, and for which instances there is no load.
    """
    reports = _reports(names, OF_INSTANCES, _of_each, say, port, longest)
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


def _reports(
    names: Sequence[str],
    collector: str,
    read: Callable[[Any], Any],
    say: Callable[[str], object],
    port: int,
    longest: float,
) -> list[Any] | None:
    """Return what *read* makes of each node's report, None if it makes nothing of one."""
    answers = _ask_all(names, REPORT.format(collector=collector), port, longest)
    reports = []
    for name in names:
        text = answers.get(name)
        if text is None:
            say(f"Failed to contact node's {name} MonD for DC {collector}")
            continue
        report = read(_data_in(text))
        if report is not None:
            reports.append(report)
    if len(reports) < len(names):
        say(f"Didn't receive an answer by all MonDs, {collector}'s data will be ignored.")
        return None
    return reports


def _ask_all(names: Sequence[str], page: str, port: int, longest: float) -> dict[str, str]:
    """Return what each node says, of those that say something in time."""
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
        if response.status != 200:
            return None
        return response.read(MOST_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def _data_in(text: str) -> Any:
    """Return the data of a report, None if it is no report."""
    try:
        report: Any = parse(text, "the report of a monitoring daemon")
    except (ClusterDataError, RecursionError):
        return None
    return report.get("data") if isinstance(report, dict) else None


def _total(data: Any) -> float | None:
    """Return the load of all processors that *data* tells, None if it tells none."""
    return _load(data.get("cpu_total")) if isinstance(data, dict) else None


def _of_each(data: Any) -> dict[str, float] | None:
    """Return the load of each instance that *data* tells, None if it is something else."""
    if not isinstance(data, dict):
        return None
    loads = {name: _load(value) for name, value in data.items()}
    known = {name: load for name, load in loads.items() if load is not None}
    return known if len(known) == len(loads) else None


def _load(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e9:
        return None
    return float(value)
