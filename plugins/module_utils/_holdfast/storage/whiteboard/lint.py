# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with a whiteboard, and its repair.

``lint`` is a pure function from the board's bytes to findings, ``plan_repair`` one from findings
and two looks at the nodes to changes; ``apply_repair`` makes them.  A live node writes its block
again by itself, so its block is never touched here, unless that is forced.

A repair may wait, so a node counts as live while anything speaks for it or cannot be read: a
host lease that is held, a kernel lock on that lease, or a block that changed between the looks.
This is for repairs only, not for recovery.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import FormatError, LeaseError, StorageError
from ...names import MAX_HOST_ID
from ..block_file import SECTOR, BlockFile
from ..kernel_lock import KernelLock, is_lockable
from ..lockspace.delta_lease import HostLeases, read_lockspace
from ..lockspace.file import locked_host_ids
from ..lockspace.host_timing import LeaseTiming
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

MIN_WATCH = 3.0
"""Seconds in which a node writes its block three times."""

CLEAR = "clear"
REWRITE = "rewrite"
LEAVE = "leave"


@dataclass(frozen=True)
class Finding:
    """One problem of the block of *host_id* (0: the global block).

    ``remedy`` is the repaired block, None where there is none; ``advice`` describes the repair,
    or what else to do.
    """

    host_id: int
    problem: str
    remedy: bytes | None
    advice: str


@dataclass(frozen=True)
class Repair:
    """One change of one block: ``action`` is clear, rewrite or leave, with its reason.

    ``before`` and ``after`` are all bytes of the block, equal when it is left.
    """

    host_id: int
    action: str
    problem: str
    reason: str
    before: bytes
    after: bytes


def lint(data: Data, block_bytes: int) -> list[Finding]:
    """Return the problems of each block of the board in *data*, in the order of host ids.

    They include what harms hosted engine's readers only: characters beyond ASCII shift all
    later blocks for them, and after a byte that is no UTF-8 they cannot read the board at all.
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


@dataclass(frozen=True)
class Look:
    """One look: the board's bytes, and the lockspace beside it if there is one."""

    board: bytes
    block_bytes: int
    leases: HostLeases | None = None
    lockspace_problem: str = ""
    locked: frozenset[int] = field(default_factory=frozenset)

    def block(self, number: int) -> bytes:
        """Return the bytes of one block."""
        return self.board[number * self.block_bytes : (number + 1) * self.block_bytes]


@dataclass(frozen=True)
class Sighting:
    """Two looks and the seconds between them; with 0 seconds both are the same."""

    first: Look
    second: Look
    seconds: float = 0.0


def look(board: Whiteboard, lockspace: str) -> Look:
    """Return one look at *board* and the lockspace file at *lockspace*, which may be missing."""
    leases = None
    problem = ""
    locked: frozenset[int] = frozenset()
    if lockspace and Path(lockspace).exists():
        try:
            leases = read_lockspace(lockspace)
            locked = locked_host_ids(lockspace, leases.max_hosts)
        except StorageError as error:
            problem = str(error)
    return Look(board.read_bytes(), board.block_bytes(), leases, problem, locked)


def look_twice(
    board: Whiteboard,
    lockspace: str,
    seconds: float,
    sleep: Callable[[float], None] = time.sleep,
) -> Sighting:
    """Return two looks with *seconds* between; with 0 look only once."""
    first = look(board, lockspace)
    if seconds <= 0:
        return Sighting(first, first)
    sleep(seconds)
    return Sighting(first, look(board, lockspace), seconds)


def host_guard(lockspace: str) -> Callable[[int], Callable[[], None]]:
    """Return a function that locks a host id against joins here, and returns its release.

    It takes the kernel lock that a node of an embedded cluster needs.  Nodes of other machines
    can still join, so the block has to be read once more as well.  The function raises
    ``LeaseError`` when another process has the lock.
    """

    def take(host_id: int) -> Callable[[], None]:
        if not is_lockable(lockspace):
            return lambda: None
        lock = KernelLock(lockspace, (host_id - 1) * SECTOR, SECTOR)
        if not lock.take():
            raise LeaseError(
                f"{lockspace}: a process on this machine just took host id {host_id}; its node"
                " lives and its block is left as it is."
            )
        return lock.release

    return take


def why_live(host_id: int, observed: Sighting) -> str:
    """Return why the node of *host_id* counts as live; "" when it does not."""
    if observed.first.block(host_id) != observed.second.block(host_id):
        return "its block changed while it was watched"
    if host_id in observed.second.locked:
        return "a process on this machine locks its host lease"
    if observed.second.lockspace_problem:
        return f"its host lease cannot be read: {observed.second.lockspace_problem.rstrip('.')}"
    leases = observed.second.leases
    if leases is not None:
        return _why_held(host_id, observed, leases)
    if observed.seconds < MIN_WATCH:
        return (
            "there is no lockspace to ask and it was not watched for"
            f" {MIN_WATCH:g} seconds, so it may live"
        )
    return ""


def plan_repair(
    findings: Sequence[Finding],
    observed: Sighting,
    *,
    only: Collection[int] = (),
    force: bool = False,
) -> list[Repair]:
    """Return the repair of each finding with a remedy, for the host ids *only* if any.

    The block of a node that lives, or may live, is left with the reason, unless *force*.
    """
    repairs = []
    for finding in findings:
        if finding.remedy is None or (only and finding.host_id not in only):
            continue
        repairs.append(
            plan_block(finding.host_id, finding.problem, finding.remedy, observed, force=force)
        )
    return repairs


def plan_block(
    host_id: int, problem: str, after: bytes, observed: Sighting, *, force: bool = False
) -> Repair:
    """Return the change of one block to *after*, or the reason to leave it as it is."""
    before = observed.second.block(host_id)
    live = why_live(host_id, observed) if host_id else ""
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

    Each block is read once more just before the write: one that changed since the look is a
    live node's and raises ``LeaseError``; one that is as planned was repaired by another process
    and is no change.  *guard* locks a host id against joins and returns the release.
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
    """Return the whole blocks of the board at *path*, their size, and the problem of its own size.

    The problem is a file that ends within a block, "" if there is none.  The size of a block is
    recognised unless it is given.
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
    """Extend the file at *path* with zeros to a whole block."""
    try:
        size = Path(path).stat().st_size
        os.truncate(path, -(-size // block_bytes) * block_bytes)
    except OSError as error:
        raise StorageError(f"{path} cannot be made longer: {error.strerror}.") from error


def _lint_global(raw: bytes, block_bytes: int) -> list[Finding]:
    """Return the problems of the global block."""
    try:
        block = decode_global(raw)
    except FormatError as error:
        # All nodes treat an unknown value as maintenance, so this changes nothing.
        advice = "write it as in maintenance; then choose whether it shall be"
        remedy = encode_global(GlobalBlock(True), block_bytes)
        return [Finding(0, str(error).rstrip("."), remedy, advice)]
    canonical = encode_global(block, block_bytes)
    if not any(raw) or raw == canonical:
        return []
    problem = f"global block: {without_padding(raw)[:60]!r} is not how it is written"
    return [Finding(0, problem, canonical, "write the same maintenance as it has to be")]


def _lint_text(raw: bytes, block: HostBlock) -> list[Finding]:
    """Return the problems of the text in a block that is otherwise whole."""
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


def _why_held(host_id: int, observed: Sighting, leases: HostLeases) -> str:
    """Return why the node lives by its host lease; "" when it does not."""
    if host_id in leases.problems:
        return f"its host lease cannot be read: {leases.problems[host_id].rstrip('.')}"
    lease = leases.leases.get(host_id)
    if lease is None or lease.free:
        return ""
    before = (
        observed.first.leases.leases.get(host_id) if observed.first.leases is not None else None
    )
    if before != lease:
        return f"node {lease.host_name} renewed its host lease while it was watched"
    # The node's watchdog timeout is not on the storage: take the longest.
    needed = LeaseTiming(lease.io_timeout).dead_seconds
    if observed.seconds < needed:
        return (
            f"node {lease.host_name} holds its host lease; without a renewal it counts as dead"
            f" only after {needed} seconds"
        )
    return ""


def _spilt(data: Data, host_id: int, block_bytes: int) -> str:
    """Return a remark if the text of the block before runs into this one, else ""."""
    if host_id > 1 and data[host_id * block_bytes - 1]:
        return f"; the text of host id {host_id - 1} runs into it"
    return ""


def _replace(board: Whiteboard, repair: Repair) -> bool:
    """Write one block unless it is as planned; return whether it was written."""
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
