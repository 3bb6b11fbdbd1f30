# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with a whiteboard, and what would put it right.

``lint`` is a pure function from the board's bytes to findings, ``plan_repair`` one
from findings and what was seen of the nodes to changes; ``apply_repair`` makes them.
A node that lives writes its block anew by itself, so its block is never touched
here, unless that is forced.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import FormatError, LeaseError, StorageError
from ...names import MAX_HOST_ID
from ..block_file import SECTOR, BlockFile
from .block import (
    BLOCK_BYTES,
    MACHINE_BYTES,
    SMALL_BLOCK_BYTES,
    GlobalBlock,
    HostBlock,
    decode_global,
    decode_host,
    encode_global,
    without_padding,
)
from .board import Data, recognise
from .file import Whiteboard
from .host_life import Sighting, why_live

CLEAR = "clear"
REWRITE = "rewrite"
LEAVE = "leave"


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with the block of *host_id* (0: the global block).

    ``remedy`` is what the block would become, None where nothing can be done from
    here; ``advice`` says what that is, or what else to do.
    """

    host_id: int
    problem: str
    remedy: bytes | None
    advice: str


@dataclass(frozen=True)
class Repair:
    """One change of one block: ``action`` is clear, rewrite or leave, with its reason.

    ``before`` and ``after`` are all bytes of the block; they are equal when it is left.
    """

    host_id: int
    action: str
    problem: str
    reason: str
    before: bytes
    after: bytes


def lint(data: Data, block_bytes: int) -> list[Finding]:
    """Return what is wrong with each block of the board in *data*, in the order of host ids.

    Blank blocks are right.  Besides what makes a block unreadable here, that is what
    harms hosted engine's readers: characters beyond ASCII shift all later blocks for
    them, and a byte that is no UTF-8 takes the whole board away.
    """
    findings = _lint_global(data[:block_bytes], block_bytes)
    names: dict[str, int] = {}
    for host_id in range(1, min(len(data) // block_bytes, MAX_HOST_ID + 1)):
        raw = data[host_id * block_bytes : (host_id + 1) * block_bytes]
        try:
            block = decode_host(raw, host_id)
        except FormatError as error:
            problem = str(error).rstrip(".") + _spilt(data, host_id, block_bytes)
            findings.append(Finding(host_id, problem, bytes(block_bytes), "clear the block"))
            continue
        if block is None:
            if any(raw):
                problem = "its machine part is blank but bytes follow it"
                findings.append(Finding(host_id, problem, bytes(block_bytes), "clear the block"))
            continue
        findings += _lint_text(raw, block)
        other = names.setdefault(block.host_name, host_id)
        if other != host_id:
            problem = f"its host name {block.host_name} is that of host id {other} too"
            advice = "give each node a name of its own, or clear the block that is out of date"
            findings.append(Finding(host_id, problem, None, advice))
    return findings


def finding_rows(findings: Sequence[Finding]) -> list[dict[str, object]]:
    """Return *findings* as plain data."""
    return [
        {
            "host_id": finding.host_id,
            "problem": finding.problem,
            "advice": finding.advice,
            "repairable": finding.remedy is not None,
        }
        for finding in findings
    ]


def plan_repair(
    findings: Sequence[Finding],
    seen: Sighting,
    *,
    only: Collection[int] = (),
    force: bool = False,
) -> list[Repair]:
    """Return what is done about each finding that has a remedy, of the host ids *only* if any.

    The block of a node that lives, or may live, is left with the reason, unless *force*.
    """
    repairs = []
    for finding in findings:
        if finding.remedy is None or (only and finding.host_id not in only):
            continue
        repairs.append(
            plan_block(finding.host_id, finding.problem, finding.remedy, seen, force=force)
        )
    return repairs


def plan_block(
    host_id: int, problem: str, after: bytes, seen: Sighting, *, force: bool = False
) -> Repair:
    """Return the change of one block to *after*, or the reason to leave it as it is."""
    before = seen.second.block(host_id)
    live = why_live(host_id, seen) if host_id else ""
    if live and not force:
        return Repair(host_id, LEAVE, problem, live, before, before)
    action = REWRITE if any(after) else CLEAR
    return Repair(
        host_id, action, problem, f"forced although {live}" if live else "", before, after
    )


def apply_repair(
    board: Whiteboard,
    repairs: Sequence[Repair],
    guard: Callable[[int], Callable[[], None]] | None = None,
) -> int:
    """Make the changes; return how many blocks were written.

    Each block is read once more just before it is written: one that changed since it
    was looked at belongs to a node that lives, which raises ``LeaseError``; one that is
    as wanted already was repaired by somebody else and is no change.
    *guard* excludes the node of a host id from joining meanwhile and returns its release.
    """
    written = 0
    for repair in repairs:
        if repair.action == LEAVE:
            continue
        release = guard(repair.host_id) if guard is not None and repair.host_id else None
        try:
            written += _replace(board, repair)
        finally:
            if release is not None:
                release()
    return written


def read_for_lint(path: str, block_bytes: int | None = None) -> tuple[bytes, int, str]:
    """Return the whole blocks of the board at *path*, their size, and what is wrong with its own.

    For a file that ends within a block, which is refused as a whiteboard; a device has
    no such problem.  The size of a block is recognised unless it is given.
    """
    with BlockFile.open(path, alignment=SECTOR) as file:
        size = min(file.size, (MAX_HOST_ID + 1) * BLOCK_BYTES)
        if size < 2 * SMALL_BLOCK_BYTES:
            raise FormatError(f"{path} has {size} bytes, which is no whiteboard.")
        data = file.read(0, size - size % SECTOR)
    if block_bytes is None:
        block_bytes = recognise(data, path)
    problem = ""
    if size % block_bytes and Path(path).is_file():
        problem = f"the file ends within the block of host id {size // block_bytes}"
    return data[: len(data) - len(data) % block_bytes], block_bytes, problem


def complete_file(path: str, block_bytes: int) -> None:
    """Let the file at *path* end with a whole block: what is missing becomes zeros."""
    try:
        size = Path(path).stat().st_size
        os.truncate(path, -(-size // block_bytes) * block_bytes)
    except OSError as error:
        raise StorageError(f"{path} cannot be made longer: {error.strerror}.") from error


def _lint_global(raw: bytes, block_bytes: int) -> list[Finding]:
    """Return what is wrong with the global block."""
    try:
        block = decode_global(raw)
    except FormatError as error:
        # Unknown is treated as maintenance by everybody, so saying so changes nothing.
        advice = "write it as in maintenance; then say whether it shall be"
        remedy = encode_global(GlobalBlock(True), block_bytes)
        return [Finding(0, str(error).rstrip("."), remedy, advice)]
    canonical = encode_global(block, block_bytes)
    if not any(raw) or raw == canonical:
        return []
    problem = f"global block: {without_padding(raw)[:60]!r} is not how it is written"
    return [Finding(0, problem, canonical, "write the same maintenance as it has to be")]


def _lint_text(raw: bytes, block: HostBlock) -> list[Finding]:
    """Return what is wrong with the text in a block that is otherwise whole."""
    host_id = block.host_id
    findings = []
    if not raw[:MACHINE_BYTES].isascii():
        problem = (
            f"block of host id {host_id}: characters beyond ASCII in its machine part shift all"
            " later blocks for the readers of hosted engine"
        )
        advice = "clear the block; let the node write it with a host name in ASCII"
        return [Finding(host_id, problem, bytes(len(raw)), advice)]
    extra = raw[MACHINE_BYTES:]
    text = extra.split(b"\0", 1)[0]
    problems = []
    if any(extra[len(text) :]):
        problems.append("bytes follow the end of its text")
    if not text.isascii():
        problems.append(
            "characters beyond ASCII in its text shift all later blocks for the readers of hosted"
            " engine, or take the whole board away"
        )
    if problems:
        plain = text.decode("utf-8", "backslashreplace").encode("ascii", "backslashreplace")
        remedy = raw[:MACHINE_BYTES] + plain[: len(extra)].ljust(len(extra), b"\0")
        problem = f"block of host id {host_id}: {' and '.join(problems)}"
        findings.append(Finding(host_id, problem, remedy, "write its text in ASCII"))
    return findings


def _spilt(data: Data, host_id: int, block_bytes: int) -> str:
    """Return the remark that the text of the block before runs into this one, if it does."""
    if host_id > 1 and data[host_id * block_bytes - 1]:
        return f"; the text of host id {host_id - 1} runs into it"
    return ""


def _replace(board: Whiteboard, repair: Repair) -> bool:
    """Write one block unless it is as wanted; False when nothing was written."""
    present = board.read_block(repair.host_id)
    if present == repair.after:
        return False
    if present != repair.before:
        raise LeaseError(
            f"{board.path}: the block of host id {repair.host_id} was written meanwhile; it is"
            " left as it is. Look again."
        )
    board.write_block(repair.host_id, repair.after)
    if board.read_block(repair.host_id) != repair.after:
        raise StorageError(
            f"{board.path}: the block of host id {repair.host_id} was written over at once by"
            " somebody else; its node lives."
        )
    return True
