# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``holdfast board`` and ``holdfast lockspace``: show shared storage, and repair it.

They need no node, no configuration and no cluster: Python and the path of a file, a device or a
copy are enough.  Exit status: 0 no problems, 1 problems, 2 the question could not be answered.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import InputError
from .arguments import (
    add_actions,
    add_commands,
    add_flag,
    add_number,
    add_output,
    as_data,
    write_answer,
    write_text,
)

if TYPE_CHECKING:
    from ...storage.whiteboard.file import Whiteboard
    from ...storage.whiteboard.lint import Finding, Repair

WELL, WRONG = 0, 1

OUR_WATCH = 3.0
FOREIGN_WATCH = 12.0
"""Agents of hosted engine write about every 10 seconds."""

SIZES = {"1M": 1 << 20, "2M": 2 << 20, "4M": 4 << 20, "8M": 8 << 20}


def register(commands: Any) -> None:
    """Add the two commands to the subparsers *commands* of ``holdfast``."""
    _register_board(add_actions(commands, "board", "show or repair a whiteboard"))
    _register_lockspace(add_actions(commands, "lockspace", "look at a lockspace, or make one"))


def _register_board(actions: Any) -> None:
    dump, lint, repair = add_commands(
        actions,
        ("dump", _dump_board, "show all blocks"),
        ("lint", lint_board, "show what is wrong with each block"),
        ("repair", _repair_board, "show how each block would be repaired; --apply does it"),
    )
    add_flag(dump, "--hosted-engine", "print as hosted-engine --vm-status does")
    add_flag(repair, "--apply", "write; without it nothing is written")
    add_flag(repair, "--force", "also blocks of nodes that live, or may live")
    text = "only this block; may be repeated"
    add_number(repair, "--host-id", text, action="append", default=[], metavar="HOST_ID")
    repair.add_argument(
        "--lockspace",
        metavar="FILE",
        help="the lockspace with the host leases (the one beside a NAME.metadata, if not given)",
    )
    for action in (dump, lint, repair):
        action.add_argument("path", type=_path, help="a whiteboard: a file, a device or a copy")
        add_output(action)
        action.add_argument(
            "--block-size",
            type=_whole_number,
            choices=(4096, 2048),
            help="bytes of a block; recognised if not given",
        )
    for action, seconds, default in (
        (dump, 0.0, ""),
        (repair, None, f" ({OUR_WATCH:g}, or else {FOREIGN_WATCH:g})"),
    ):
        text = f"how long to watch who writes{default}"
        add_number(action, "--watch", text, default=seconds, metavar="SECONDS")


def _register_lockspace(actions: Any) -> None:
    dump, init = add_commands(
        actions,
        ("dump", _dump_lockspace, "show all leases as sanlock direct dump does"),
        ("init", _init_lockspace, "make a lockspace as sanlock direct init does"),
    )
    add_output(dump)
    init.add_argument("--name", help="its name (that of the file, if not given)")
    init.add_argument(
        "--io-timeout", type=_io_timeout, default=10, metavar="SECONDS", help="seconds (10)"
    )
    init.add_argument("--sector-size", type=_whole_number, choices=(512, 4096), default=512)
    init.add_argument("--area-size", choices=sorted(SIZES), default="1M")
    add_flag(init, "--force", "also over one that is in use")
    for action in (dump, init):
        action.add_argument("path", type=_path, help="a lockspace: a file, a device or a copy")


def _path(text: str) -> str:
    """Return an argument that is a path."""
    if not text:
        raise InputError("path", text, "a file or a device")
    return text


def _whole_number(text: str) -> int | str:
    """Return an argument as a number; another text as it is, for the parser to name the choices.

    Python converts no text of thousands of digits.
    """
    return int(text) if text.isdecimal() and len(text) < 10 else text


def _io_timeout(text: str) -> int:
    """Return an argument as an I/O timeout with which nodes are safe."""
    from ...storage.lockspace.host_timing import checked_io_timeout

    number = _whole_number(text)
    if not isinstance(number, int):
        raise InputError("--io-timeout", text, "whole seconds, such as 10")
    return checked_io_timeout(number)


def _dump_board(options: argparse.Namespace) -> int:
    from ...storage.whiteboard.board import view, vm_status, vm_status_text, watch
    from ...storage.whiteboard.file import Whiteboard

    seconds = _watch_seconds(options, 0.0)
    with Whiteboard(options.path, options.block_size) as board:
        _warn_if_not_direct(board)
        watched = watch(board.read, seconds, time.monotonic, time.sleep)
    if options.hosted_engine:
        status = vm_status(watched)
        write_answer(options, status, lambda: vm_status_text(watched))
    else:
        board_view = view(watched)
        write_answer(options, board_view, lambda: _board_text(board_view))
    return WRONG if watched.board.problems else WELL


def lint_board(options: argparse.Namespace, records: Sequence[str] | None = None) -> int:
    """Print what is wrong with the whiteboard at ``path``; return the exit status.

    *records* is what is wrong with the records beside it, None if they were not read.
    """
    from ...storage.whiteboard.lint import finding_rows, lint, read_for_lint

    data, block_size, problem = read_for_lint(options.path, options.block_size)
    findings = lint(data, block_size)
    if as_data(options):
        document = {
            "file_problem": problem,
            "block_size": block_size,
            "findings": finding_rows(findings),
        }
        if records is not None:
            document["records"] = list(records)
        write_answer(options, document, str)
    else:
        lines = [f"file: {problem}\n    append zeros up to a whole block"] if problem else []
        lines += [
            f"{_place(finding.host_id)}: {finding.problem}\n    {finding.advice}"
            for finding in findings
        ]
        lines += records or ()
        write_text("\n".join(lines) or "nothing is wrong")
    return WRONG if problem or findings or records else WELL


def _repair_board(options: argparse.Namespace) -> int:
    from ...storage.whiteboard.file import Whiteboard
    from ...storage.whiteboard.lint import (
        LEAVE,
        apply_repair,
        complete_file,
        host_guard,
        lint,
        look_twice,
        plan_repair,
        read_for_lint,
    )

    lockspace = _lockspace_of(options)
    seconds = _watch_seconds(options, OUR_WATCH if lockspace else FOREIGN_WATCH)
    data, block_size, problem = read_for_lint(options.path, options.block_size)
    findings = lint(data, block_size)
    repairs: list[Repair] = []
    written = 0
    if problem and options.apply:
        complete_file(options.path, block_size)
    if findings and not (problem and not options.apply):
        with Whiteboard(options.path, block_size) as board:
            _warn_if_not_direct(board)
            observed = look_twice(board, lockspace, seconds, time.sleep)
            findings = lint(observed.second.board, block_size)
            repairs = plan_repair(findings, observed, only=options.host_id, force=options.force)
            if options.apply:
                guard = host_guard(lockspace) if lockspace and not options.force else None
                written = apply_repair(board, repairs, guard)
    if options.apply:
        data, block_size, problem = read_for_lint(options.path, block_size)
        findings = lint(data, block_size)
    _report(options, problem, findings, repairs, written)
    left = any(repair.action == LEAVE for repair in repairs)
    return WRONG if problem or findings or left else WELL


def _report(
    options: argparse.Namespace,
    problem: str,
    findings: list[Finding],
    repairs: list[Repair],
    written: int,
) -> None:
    """Print what a repair did or would do; *findings* are those that remain."""
    from ...storage.whiteboard.lint import finding_rows

    rows = [
        {key: getattr(repair, key) for key in ("host_id", "action", "problem", "reason")}
        for repair in repairs
    ]
    if as_data(options):
        document = {
            "applied": options.apply,
            "written": written,
            "file_problem": problem,
            "repairs": rows,
            "remaining" if options.apply else "findings": finding_rows(findings),
        }
        write_answer(options, document, str)
        return
    would = {"clear": "cleared", "rewrite": "rewritten", "leave": "left as it is"}
    verb = "is" if options.apply else "would be"
    lines = []
    if problem:
        lines.append(f"file: {problem}\n    it would get zeros up to a whole block")
    for repair in repairs:
        reason = f": {repair.reason}" if repair.reason else ""
        lines.append(f"{_place(repair.host_id)}: {repair.problem}")
        lines.append(f"    {verb} {would[repair.action]}{reason}")
    mended = {repair.host_id for repair in repairs}
    for finding in findings:
        if finding.host_id not in mended:
            lines.append(f"{_place(finding.host_id)}: {finding.problem}\n    {finding.advice}")
    if not options.apply and any(row["action"] != "leave" for row in rows):
        lines.append("nothing was written; --apply does it")
    write_text("\n".join(lines) or "nothing is wrong")


def _dump_lockspace(options: argparse.Namespace) -> int:
    from ...storage.lockspace.file import dump, dump_text

    rows = dump(options.path)
    write_answer(options, [asdict(row) for row in rows], lambda: dump_text(rows))
    for row in rows:
        if row.problem:
            sys.stderr.write(f"holdfast: offset {row.offset}: {row.problem}\n")
    return WRONG if any(row.problem for row in rows) else WELL


def _init_lockspace(options: argparse.Namespace) -> int:
    from ...storage.lockspace.file import initialise
    from ...storage.lockspace.leader_record import Layout

    name = options.name or Path(options.path).name.removesuffix(".lockspace")
    layout = Layout(options.sector_size, SIZES[options.area_size])
    initialise(options.path, name, options.io_timeout, layout, force=options.force)
    write_text(
        f"lockspace {name} for {layout.max_hosts} hosts, I/O timeout {options.io_timeout} s:"
        f" {options.path}"
    )
    return WELL


def _board_text(board: dict[str, Any]) -> str:
    held = {True: "on", False: "off", None: "unknown"}[board["global_maintenance"]]
    lines = [
        f"{board['max_hosts']} host ids, blocks of {board['block_size']} bytes, global maintenance"
        f" {held}",
        f"{'id':>4}  {'host name':30} {'timestamp':>12} {'age':>6} {'score':>5}  flags",
    ]
    for host in board["hosts"]:
        age = "" if host["age"] is None else f"{host['age']:.1f} s"
        if host["live"] is False:
            age = "stale"
        flags = [name for name in ("maintenance", "stopped") if host[name]]
        lines.append(
            f"{host['host_id']:>4}  {host['host_name']:30} {host['timestamp']:>12} {age:>6}"
            f" {host['score']:>5}  {' '.join(flags)}".rstrip()
        )
    lines += [f"{_place(row['host_id'])}: {row['problem']}" for row in board["problems"]]
    return "\n".join(lines)


def _place(host_id: int) -> str:
    """Return how a block is called."""
    return f"host id {host_id}" if host_id else "global"


def _lockspace_of(options: argparse.Namespace) -> str:
    """Return the path of the lockspace to ask, empty when there is none."""
    if options.lockspace:
        if not Path(options.lockspace).exists():
            raise InputError("--lockspace", options.lockspace, "a file that exists")
        return str(options.lockspace)
    if options.path.endswith(".metadata"):
        beside = options.path[: -len(".metadata")] + ".lockspace"
        if Path(beside).exists():
            return str(beside)
    return ""


def _watch_seconds(options: argparse.Namespace, default: float) -> float:
    """Return how long to watch."""
    return default if options.watch is None else float(options.watch)


def _warn_if_not_direct(board: Whiteboard) -> None:
    """Warn when the page cache of this machine may have served what was read."""
    from ...storage.whiteboard.file import no_direct

    if not board.direct:
        sys.stderr.write(f"holdfast: warning: {no_direct(board.path)}\n")
