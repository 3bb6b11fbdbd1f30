# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``holdfast status --watch``, ``history``, ``check``, ``list``, ``lint`` and ``metrics``.

Exit status: 0, or 2 when the question could not be answered; of ``check`` those of monitoring
plugins: 0 OK, 1 warning, 2 critical, 3 unknown.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import HoldfastError, InputError, StorageError
from ..streams import on_terminal, takes_colour
from .arguments import (
    add_commands,
    add_config,
    add_flag,
    add_number,
    add_output,
    as_data,
    load_config,
    write_answer,
    write_text,
)

if TYPE_CHECKING:
    from ...node.configuration import NodeConfiguration
    from ..report.health import Health

WELL = 0
UNKNOWN = 3
"""Of ``holdfast check`` alone, as monitoring plugins have it."""

EVERY = 2.0

SUFFIX = ".prom"
"""The node exporter's textfile collector reads files that end so, and no others."""

_ENTER = "\x1b[?1049h\x1b[?25l"
_LEAVE = "\x1b[?25h\x1b[?1049l"
_AGAIN = "\x1b[H"
_TO_LINE_END = "\x1b[K"
_TO_SCREEN_END = "\x1b[J"
"""Of a terminal: another screen without a cursor and back, its beginning, and clearing."""


def register(commands: Any) -> None:
    """Add the commands to the subparsers *commands*."""
    parsers = add_commands(
        commands,
        ("watch", watch_status, "show the cluster and what changes, until Ctrl-C"),
        ("history", _history, "show what the manager did, and why"),
        ("check", _check, "one line and an exit status for monitoring"),
        ("list", _list, "list names, one in a line"),
        ("lint", _lint, "show what is wrong with the whiteboard and the records"),
        ("metrics", _metrics, "print or write metrics for Prometheus"),
    )
    add_config(*parsers)
    watch, history, _check_parser, list_, lint, metrics = parsers
    add_watching(watch)
    watch.add_argument("--html", metavar="FILE", help="keep a status page in FILE up to date")

    for name, text in (
        ("node", "about a node; repeatable"),
        ("service", "about a service; repeatable"),
        ("kind", "such as fence; repeatable"),
    ):
        history.add_argument(
            f"--{name}", action="append", default=[], metavar=name.upper(), help=text
        )
    history.add_argument(
        "--since", metavar="WHEN", help="a span such as 2h, or a time such as 2026-11-21T18:00:00Z"
    )
    add_number(history, "--last", "the newest N only", default=0, metavar="N")
    add_output(history)

    list_.add_argument("what", choices=("nodes", "services", "online", "manager"))
    add_output(lint)
    metrics.add_argument(
        "--write",
        metavar="FILE",
        help=f"a file in the node exporter's textfile folder, ending in {SUFFIX}; as a whole",
    )
    text = "with --write: interval in seconds at which the file is written again"
    add_number(metrics, "--every", text, metavar="SECONDS")
    metrics.add_argument(
        "--rehearsals", metavar="FILE", help="the report of the fence rehearsals, if not the usual"
    )
    add_flag(metrics, "--whole-cluster", "also what only the manager's node exports, on any node")


def add_watching(parser: argparse.ArgumentParser) -> None:
    """Add the options of a view that is refreshed."""
    text = f"refresh interval in seconds (default {EVERY:g})"
    add_number(parser, "--every", text, default=EVERY, metavar="SECONDS")
    add_number(parser, "--times", "end after N refreshes", default=0, metavar="N")


def watch_status(options: argparse.Namespace) -> int:
    """Show the status again and again until Ctrl-C."""
    configuration = load_config(options)
    terminal = on_terminal()
    try:
        if terminal:
            sys.stdout.write(_ENTER)
        _go_on_looking(configuration, options, terminal)
    except KeyboardInterrupt:
        pass
    finally:
        if terminal:
            sys.stdout.write(_LEAVE)
            sys.stdout.flush()
    return WELL


def _go_on_looking(
    configuration: NodeConfiguration, options: argparse.Namespace, terminal: bool
) -> None:
    """Show the status again and again, ``--times`` times or without an end."""
    from ...text import clean
    from ..cluster_info import write_page_in_time
    from ..report.status import read_status_in_time

    before: dict[str, Any] | None = None
    looks, trouble = 0, ""
    while True:
        status: dict[str, Any] | None = None
        try:
            if options.html:
                page = Path(options.html)
                status = write_page_in_time(page, configuration, refresh=options.every)
            else:
                status = read_status_in_time(configuration)
            error_text = ""
        except HoldfastError as error:
            error_text = clean(error)
        if terminal:
            _show(status, error_text, options.every)
        else:
            told = [f"holdfast: {error_text}"] if error_text and error_text != trouble else []
            told += changes(before, status) if status is not None else []
            sys.stdout.write("".join(f"{line}\n" for line in told))
        sys.stdout.flush()
        before, trouble = status or before, error_text
        looks += 1
        if looks == options.times:
            return
        time.sleep(options.every)


def _show(status: dict[str, Any] | None, error_text: str, every: float) -> None:
    """Draw the screen over what is on it, so that it does not flicker."""
    import shutil

    from ..report.text import render_text

    size = shutil.get_terminal_size((100, 24))
    parts = [f"Every {every:g} s; Ctrl-C ends."]
    if error_text:
        parts.append(f"holdfast: {error_text}")
    if status is not None:
        parts.append(render_text(status, colour=takes_colour(), width=size.columns))
    shown = screen("\n".join(parts), size.lines)
    drawn = f"{_TO_LINE_END}\r\n".join(shown.splitlines())
    sys.stdout.write(f"{_AGAIN}{drawn}{_TO_LINE_END}{_TO_SCREEN_END}")


def _history(options: argparse.Namespace) -> int:
    from ..report.history import Wish, chosen, lines, read_history, refuse_unknown, since
    from ..report.status import in_time

    wish = Wish(
        tuple(options.node),
        tuple(options.service),
        tuple(options.kind),
        since(options.since, time.time()) if options.since else 0.0,
        options.last,
    )
    configuration = load_config(options)
    history = in_time(configuration, lambda: read_history(configuration))
    refuse_unknown(wish, history, configuration.members)
    events = chosen(history["events"], wish)
    if events or as_data(options):
        write_answer(options, events, lambda: "\n".join(lines(events)))
    return WELL


def _check(options: argparse.Namespace) -> int:
    from ..report.health import judge_health, unknown
    from ..report.status import read_status_in_time

    try:
        status = read_status_in_time(load_config(options))
    except HoldfastError as error:
        return _print_health(unknown(str(error)))
    return _print_health(judge_health(status))


def _print_health(health: Health) -> int:
    write_text(health.line())
    return int(health.level)


def refuse_check(why: str) -> int:
    """Print *why* the command line of ``check`` is not understood; return UNKNOWN.

    Monitoring reads standard output alone, and takes exit status 2 for critical.
    """
    from ..report.health import unknown

    return _print_health(unknown(f"The command line is not understood: {why}"))


def _list(options: argparse.Namespace) -> int:
    from ..report.inventory import MANAGER, ONLINE, inventory_groups

    configuration = load_config(options)
    if options.what == "nodes":
        # Known without any storage.
        names = sorted(configuration.members)
    else:
        from ..report.status import read_status_in_time

        status = read_status_in_time(configuration)
        groups = {"online": ONLINE, "manager": MANAGER}
        names = (
            sorted(status["services"])
            if options.what == "services"
            else inventory_groups(status)[groups[options.what]]
        )
    sys.stdout.write("".join(f"{name}\n" for name in names))
    return WELL


def _lint(options: argparse.Namespace) -> int:
    from ..report.status import in_time
    from .board import lint_board

    configuration = load_config(options)
    records = in_time(configuration, lambda: _damaged_records(configuration))
    board = argparse.Namespace(
        path=str(configuration.metadata_path), block_size=None, output=options.output
    )
    return lint_board(board, records)


def _damaged_records(configuration: NodeConfiguration) -> list[str]:
    """Return what is wrong with the records, or that none can be read."""
    from ...node import record_faults
    from ...node.cluster_storage import ClusterStorage
    from ...text import clean

    storage = ClusterStorage(configuration)
    try:
        return [clean(one) for one in record_faults.damaged_records(storage)]
    except StorageError as error:
        return [clean(error)]
    finally:
        storage.close()


_NUMBER = re.compile(r"(?<!\w)(?<!\w[.:-])\d+(?:\.\d+)?(?!\w|[.:-]\w)")


def changes(before: dict[str, Any] | None, after: dict[str, Any]) -> list[str]:
    """Return what is new in the status *after*, one line each with its time, the oldest first.

    New are events, problems that came and that went, and another manager.  Without a status
    *before* the first line says how the cluster is, and nothing older is told.
    """
    from ...cluster.model.maintenance import utc
    from ...text import clean
    from ..report import wording

    at = utc(after["at"])
    if before is None:
        _tone, verdict = wording.verdict(after)
        first = f"{at}  cluster {clean(after['cluster'])}: {verdict}; {wording.summary(after)}"
        return [first, *(f"{at}  {kind}: {clean(one)}" for kind, one in _labelled(after))]
    known = [_key(event) for event in before["events"]]
    told = [
        f"{utc(event['at'])}  {clean(event['kind'])}  {wording.event_subject(event)}:"
        f" {clean(event['text'])}"
        for event in after["events"]
        if _key(event) not in known
    ]
    if wording.manager(before) != wording.manager(after):
        told.append(f"{at}  {wording.manager(after)}")
    came, went = _came_and_went(_labelled(before), _labelled(after))
    told.extend(f"{at}  {kind}: {clean(one)}" for kind, one in came)
    told.extend(f"{at}  no longer: {clean(one)}" for _kind, one in went)
    return told


def _labelled(status: dict[str, Any]) -> list[tuple[str, str]]:
    """Return each error and warning of a status with its severity."""
    return [
        (one["severity"], one["text"]) for one in status["conditions"] if one["severity"] != "note"
    ]


def screen(text: str, height: int) -> str:
    """Return what of *text* fits on a screen, with its last line saying what does not."""
    lines = text.splitlines()
    if len(lines) <= height:
        return "\n".join(lines)
    left = len(lines) - height + 1
    return "\n".join([*lines[: height - 1], f"... {left} more lines; holdfast status shows all"])


Labelled = tuple[str, str]
"""The severity of a condition, and its text."""


def _came_and_went(
    before: list[Labelled], after: list[Labelled]
) -> tuple[list[Labelled], list[Labelled]]:
    """Return the conditions that are new and those that are gone.

    One of which only numbers changed, such as the attempts of a fence, is neither.
    """
    went = [one for one in before if one not in after]
    came = []
    for new in (one for one in after if one not in before):
        same = [one for one in went if _form(one[1]) == _form(new[1])]
        if same:
            went.remove(same[0])
        else:
            came.append(new)
    return came, went


def _form(text: str) -> tuple[str, ...]:
    """Return the text of a condition without the numbers that count on or away in it.

    Its first two words say what it is about.  A number in a name or an address is none.
    """
    words_ = text.split(" ", 2)
    return (*words_[:2], *(_NUMBER.sub("#", one) for one in words_[2:]))


def _key(event: dict[str, Any]) -> tuple[Any, ...]:
    return (event["at"], event["kind"], event["node"], event["service"], event["text"])


def _metrics(options: argparse.Namespace) -> int:
    from ...storage.whole_file import write_text
    from ..report.metrics import node_metrics

    configuration = load_config(options)
    report = Path(options.rehearsals) if options.rehearsals else None
    if options.write and not options.write.endswith(SUFFIX):
        raise InputError("--write", options.write, f"a file that ends in {SUFFIX}")
    if options.every is not None and not options.write:
        raise InputError("--every", options.every, "it only with --write")
    while True:
        text = node_metrics(configuration, report, whole_cluster=options.whole_cluster)
        if not options.write:
            sys.stdout.write(text)
            return 0
        try:
            write_text(Path(options.write), text)
        except HoldfastError as error:
            if not options.every:
                raise
            from ...text import clean

            sys.stderr.write(f"holdfast: {clean(error)}\n")
        if not options.every:
            return 0
        time.sleep(options.every)
