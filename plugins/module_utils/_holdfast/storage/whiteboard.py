# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""NAME.metadata, the whiteboard, byte for byte as oVirt's hosted engine has it.

Blocks of 4096 bytes.  Block 0 is global: ``maintenance=1`` or ``maintenance=0``.
Block N belongs to the node with host id N: a machine part of at most 512 bytes,
tokens joined by ``|`` with a CRC-32 among them, then text for people up to the end
of the block.  Each block is read by itself, so that a damaged one harms no other
(hosted engine decodes the whole board as one text and fails as a whole).
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType

from ..errors import FormatError, InputError, StorageError
from ..names import MAX_HOST_ID
from .block_file import HeldFile
from .whole_file import create

BLOCK_BYTES = 4096
"""HOST_SEGMENT_BYTES of hosted engine (env/constants.py)."""

MACHINE_BYTES = 512
"""What the machine part of a block may have (agent/hosted_engine.py)."""

EXTRA_BYTES = BLOCK_BYTES - MACHINE_BYTES

PARSE_VERSION = 1
FEATURE_VERSION = 1

CHECKSUM_TOKEN = 9
"""Which token is the CRC-32; it is computed with eight zeros in its place."""

_INTEGER = re.compile(r"-?[0-9]{1,18}\Z")
_TRUE = "ty1"
_FALSE = "fn0"


@dataclass(frozen=True)
class HostBlock:
    """What one node says about itself.

    ``timestamp`` is whole seconds of the writer's own monotonic clock: it can be
    compared with an earlier one of the same node, never with a reader's clock.
    ``health`` is a JSON object, None before the first check.  The two ``conf``
    fields are None in blocks of agents that did not have them yet.  ``extra`` is
    lines of ``key=value`` for people.  ``checksum`` is what a block that was read had.
    """

    host_id: int
    timestamp: int
    score: int
    host_name: str
    health: Mapping[str, object] | None = None
    maintenance: bool = False
    stopped: bool = False
    conf_on_shared_storage: bool | None = True
    conf_timestamp: int | None = 0
    extra: str = ""
    checksum: str = field(default="", compare=False)


@dataclass(frozen=True)
class GlobalBlock:
    """What holds for the whole cluster; a blank block means no maintenance."""

    maintenance: bool = False


@dataclass(frozen=True)
class Board:
    """All blocks as one read found them.

    ``global_block`` is None when block 0 is damaged: then it is not known whether
    the cluster is in maintenance.  ``problems`` says for each damaged block what is
    wrong with it, by host id and 0 for the global block; blank blocks are in neither.
    """

    max_hosts: int
    global_block: GlobalBlock | None = field(default_factory=GlobalBlock)
    hosts: dict[int, HostBlock] = field(default_factory=dict)
    problems: dict[int, str] = field(default_factory=dict)


def encode_host(block: HostBlock) -> bytes:
    """Return the 4096 bytes of *block*.

    Characters beyond ASCII in the health and in ``extra`` are written as escapes,
    and ``|`` within the health as its JSON escape: hosted engine's reader slices the
    board by characters and splits at every ``|``, so either would damage what it
    sees of all later nodes.  Raises ``InputError`` for a host name that would do the
    same, and when the machine part or the extra text is too long.
    """
    _check_host_name(block.host_name)
    tokens = [
        str(PARSE_VERSION),
        str(FEATURE_VERSION),
        str(block.timestamp),
        str(block.host_id),
        str(block.score),
        _encode_health(block.health),
        block.host_name,
        "1" if block.maintenance else "0",
        "1" if block.stopped else "0",
        "",
    ]
    if block.conf_on_shared_storage is not None and block.conf_timestamp is not None:
        tokens.append("1" if block.conf_on_shared_storage else "0")
        tokens.append(str(block.conf_timestamp))
    tokens[CHECKSUM_TOKEN] = _checksum(tokens)
    machine = "|".join(tokens).encode("ascii")
    if len(machine) > MACHINE_BYTES:
        raise InputError(
            f"block of host id {block.host_id}",
            f"{len(machine)} bytes",
            f"a machine part of at most {MACHINE_BYTES} bytes; shorten the health or host name",
        )
    extra = block.extra.encode("ascii", "backslashreplace")
    if len(extra) > EXTRA_BYTES or b"\0" in extra:
        raise InputError(
            f"extra text of host id {block.host_id}",
            f"{len(extra)} bytes",
            f"at most {EXTRA_BYTES} bytes without NUL",
        )
    return machine.ljust(MACHINE_BYTES, b"\0") + extra.ljust(EXTRA_BYTES, b"\0")


def decode_host(data: bytes, host_id: int) -> HostBlock | None:
    """Return the block in *data*, read from the slot of *host_id*; None when it is blank.

    Raises ``FormatError`` for a wrong checksum or none, a block of another host id,
    an unknown version, bytes that are no UTF-8 and numbers that are none.  Tokens
    after the known ones are covered by the checksum and otherwise ignored.
    """
    where = f"block of host id {host_id}"
    if len(data) != BLOCK_BYTES:
        raise FormatError(f"{where}: {len(data)} bytes are not a block of {BLOCK_BYTES}.")
    machine = data[:MACHINE_BYTES].rstrip(b"\0")
    if not machine:
        return None
    tokens = _machine_text(machine, where).split("|")
    _check_version(tokens, where)
    if len(tokens) <= CHECKSUM_TOKEN:
        raise FormatError(
            f"{where}: {len(tokens)} fields are too few; expected at least {CHECKSUM_TOKEN + 1},"
            " among them a checksum."
        )
    computed = _checksum(tokens)
    if tokens[CHECKSUM_TOKEN] != computed:
        raise FormatError(
            f"{where}: the checksum is {tokens[CHECKSUM_TOKEN]!r} but the data has {computed!r}."
        )
    written_by = _integer(tokens[3], "host id", where)
    if written_by != host_id:
        raise FormatError(f"{where}: it was written by host id {written_by} into a wrong slot.")
    with_conf = len(tokens) > CHECKSUM_TOKEN + 2
    return HostBlock(
        host_id=host_id,
        timestamp=_integer(tokens[2], "timestamp", where),
        score=_integer(tokens[4], "score", where),
        health=_decode_health(tokens[5], where),
        host_name=tokens[6],
        maintenance=bool(_integer(tokens[7], "maintenance", where)),
        stopped=bool(_integer(tokens[8], "stopped", where)),
        conf_on_shared_storage=(
            bool(_integer(tokens[10], "conf_on_shared_storage", where)) if with_conf else None
        ),
        conf_timestamp=_integer(tokens[11], "conf timestamp", where) if with_conf else None,
        # No checksum covers the extra text and nothing is decided from it.
        extra=data[MACHINE_BYTES:].rstrip(b"\0").decode("utf-8", "replace"),
        checksum=computed,
    )


def encode_global(block: GlobalBlock) -> bytes:
    """Return the 4096 bytes of the global *block*."""
    return (b"maintenance=1" if block.maintenance else b"maintenance=0").ljust(BLOCK_BYTES, b"\0")


def decode_global(data: bytes) -> GlobalBlock:
    """Return the global block in *data*.

    As hosted engine reads it: lines of ``key=value``, of a truth value the first
    letter counts (t, y, 1 or f, n, 0), unknown keys are ignored.  Raises
    ``FormatError`` for bytes that are no UTF-8 and a value that is no truth value.
    """
    where = "global block"
    if len(data) != BLOCK_BYTES:
        raise FormatError(f"{where}: {len(data)} bytes are not a block of {BLOCK_BYTES}.")
    maintenance = False
    for line in _machine_text(data.rstrip(b"\0"), where).split("\n"):
        key, _equals, value = line.partition("=")
        if key != "maintenance" or not _equals:
            continue
        first = value[:1].lower()
        if not first or first not in _TRUE + _FALSE:
            raise FormatError(f"{where}: maintenance is {value[:40]!r}; expected 1 or 0.")
        maintenance = first in _TRUE
    return GlobalBlock(maintenance)


def decode_board(data: bytes) -> Board:
    """Return all blocks in *data*, block 0 first; what is damaged is named in ``problems``."""
    hosts: dict[int, HostBlock] = {}
    problems: dict[int, str] = {}
    global_block: GlobalBlock | None = None
    try:
        global_block = decode_global(data[:BLOCK_BYTES])
    except FormatError as error:
        problems[0] = str(error)
    max_hosts = len(data) // BLOCK_BYTES - 1
    for host_id in range(1, max_hosts + 1):
        start = host_id * BLOCK_BYTES
        try:
            block = decode_host(data[start : start + BLOCK_BYTES], host_id)
        except FormatError as error:
            problems[host_id] = str(error)
            continue
        if block is not None:
            hosts[host_id] = block
    return Board(max_hosts, global_block, hosts, problems)


class Whiteboard:
    """The whiteboard file at *path*, kept open for repeated use; not for several threads."""

    def __init__(self, path: str) -> None:
        """Remember *path*; nothing is opened yet."""
        self.path = path
        self._held = HeldFile(path)

    def __enter__(self) -> Whiteboard:
        """Return the whiteboard itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()

    def create(self, max_hosts: int, *, replace: bool = False) -> bool:
        """Create a blank whiteboard for *max_hosts* nodes; False when there is a file already."""
        if not 1 <= max_hosts <= MAX_HOST_ID:
            raise InputError("max_hosts", max_hosts, f"a whole number from 1 to {MAX_HOST_ID}")
        return create(self.path, (max_hosts + 1) * BLOCK_BYTES, replace=replace)

    def max_hosts(self) -> int:
        """Return how many nodes the board has blocks for, at most 2000 whatever its size."""
        size = self._held.for_reading().size
        if size < 2 * BLOCK_BYTES or size % BLOCK_BYTES:
            raise FormatError(
                f"{self.path} has {size} bytes, which is no whiteboard; expected a multiple of"
                f" {BLOCK_BYTES} and at least {2 * BLOCK_BYTES}."
            )
        return min(size // BLOCK_BYTES - 1, MAX_HOST_ID)

    def read(self) -> Board:
        """Return the whole board from a single read."""
        length = (self.max_hosts() + 1) * BLOCK_BYTES
        return decode_board(self._held.for_reading().read(0, length))

    def read_host(self, host_id: int) -> HostBlock | None:
        """Return the block of *host_id*; None when blank; ``FormatError`` when damaged."""
        offset = self._offset(host_id)
        return decode_host(self._held.for_reading().read(offset, BLOCK_BYTES), host_id)

    def read_global(self) -> GlobalBlock:
        """Return the global block; ``FormatError`` when it is damaged."""
        return decode_global(self._held.for_reading().read(0, BLOCK_BYTES))

    def write_host(self, block: HostBlock) -> None:
        """Write *block* into the slot of its host id, in one write."""
        data = encode_host(block)
        self._held.for_writing().write(self._offset(block.host_id), data)

    def write_global(self, block: GlobalBlock) -> None:
        """Write the global *block*."""
        self._held.for_writing().write(0, encode_global(block))

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._held.close()

    def _offset(self, host_id: int) -> int:
        """Return where the block of *host_id* is; ``StorageError`` when there is none."""
        max_hosts = self.max_hosts()
        if not 1 <= host_id <= max_hosts:
            raise StorageError(
                f"{self.path} has no block for host id {host_id}; it was created for host ids 1"
                f" to {max_hosts}."
            )
        return host_id * BLOCK_BYTES


def _check_host_name(name: str) -> None:
    """Raise ``InputError`` for a host name that would damage the block or its neighbours."""
    if not name or not name.isascii() or any(char in "|\0\n" for char in name):
        raise InputError("host_name", name, "ASCII characters without '|', line feed and NUL")


def _encode_health(health: Mapping[str, object] | None) -> str:
    """Return *health* as JSON that hosted engine's reader can split."""
    if health is None:
        return "null"
    try:
        text = json.dumps(dict(health), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError("health", health, "a mapping that JSON can express") from error
    return text.replace("|", "\\u007c")


def _decode_health(text: str, where: str) -> Mapping[str, object] | None:
    """Return the health in *text*, a JSON object or null."""
    try:
        health = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise FormatError(f"{where}: the health {text[:40]!r} is not JSON.") from None
    if health is not None and not isinstance(health, dict):
        raise FormatError(f"{where}: the health {text[:40]!r} is not a JSON object.")
    return health


def _refuse_constant(name: str) -> object:
    """Refuse NaN and the infinities, which are not JSON."""
    raise ValueError(name)


def _machine_text(data: bytes, where: str) -> str:
    """Return *data* as text."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(f"{where}: byte {error.start} is not UTF-8.") from None


def _check_version(tokens: list[str], where: str) -> None:
    """Raise ``FormatError`` unless the block can be read with the version known here."""
    if len(tokens) < 2 or not tokens[0].isdigit():
        raise FormatError(f"{where}: {tokens[0][:40]!r} is not the start of a block.")
    parse = _integer(tokens[0], "parse version", where)
    feature = _integer(tokens[1], "feature version", where)
    if parse > PARSE_VERSION:
        raise FormatError(f"{where}: its version {parse} is newer than {PARSE_VERSION}.")
    if feature < FEATURE_VERSION:
        raise FormatError(f"{where}: its version {feature} is older than {FEATURE_VERSION}.")


def _integer(token: str, what: str, where: str) -> int:
    """Return *token* as a whole number; nothing that ``int`` would kindly let pass."""
    if not _INTEGER.match(token):
        raise FormatError(f"{where}: the {what} {token[:40]!r} is not a whole number.")
    return int(token)


def _checksum(tokens: list[str]) -> str:
    """Return the CRC-32 of *tokens* with zeros in the place of the checksum."""
    blanked = [*tokens[:CHECKSUM_TOKEN], "00000000", *tokens[CHECKSUM_TOKEN + 1 :]]
    return f"{zlib.crc32('|'.join(blanked).encode('utf-8')):08x}"
