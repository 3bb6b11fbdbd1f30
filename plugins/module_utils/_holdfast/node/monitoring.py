# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask the monitoring daemons of Ganeti's nodes how busy their processors are.

Each is asked over HTTP, all side by side, and none for longer than `LONGEST` in all.  As in
htools 3.0.2 the answers count only if every node has given one; address, report and words
were measured there.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

PORT = 1815
COLLECTOR = "cpu-avg-load"
REPORT = f"/1/report/default/{COLLECTOR}"
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
    answers = _ask_all(names, port, longest)
    loads: dict[str, float] = {}
    for name in names:
        text = answers.get(name)
        if text is None:
            say(f"Failed to contact node's {name} MonD for DC {COLLECTOR}")
            continue
        load = _load_in(text)
        if load is not None:
            loads[name] = load
    if len(loads) < len(names):
        say(f"Didn't receive an answer by all MonDs, {COLLECTOR}'s data will be ignored.")
        return None
    return loads


def _ask_all(names: Sequence[str], port: int, longest: float) -> dict[str, str]:
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
            text = _ask(name, port, deadline - time.monotonic())
            if text is not None:
                answers[name] = text

    # One that hangs in a name server's answer is left behind; it ends with the process.
    workers = [threading.Thread(target=work, daemon=True) for _one in names[:AT_ONCE]]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(max(0.0, deadline - time.monotonic()))
    return dict(answers)


def _ask(name: str, port: int, left: float) -> str | None:
    """Return the report of the node *name*, None if there is none within *left* seconds."""
    import http.client

    if left <= 0:
        return None
    connection = http.client.HTTPConnection(name, port, timeout=left)
    try:
        connection.request("GET", REPORT)
        response = connection.getresponse()
        if response.status != 200:
            return None
        return response.read(MOST_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def _load_in(text: str) -> float | None:
    """Return the load that a report tells, None if it tells none."""
    from ..errors import ClusterDataError
    from ..placement.json_text import parse

    try:
        report: Any = parse(text, "the report of a monitoring daemon")
    except (ClusterDataError, RecursionError):
        return None
    data = report.get("data") if isinstance(report, dict) else None
    load = data.get("cpu_total") if isinstance(data, dict) else None
    if isinstance(load, bool) or not isinstance(load, (int, float)) or not 0 <= load < 1e9:
        return None
    return float(load)
