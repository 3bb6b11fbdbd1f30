# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One block of the whiteboard, byte for byte as in oVirt's hosted engine.

There are two kinds of board, with different sizes of a block: 4096 bytes, as hosted engine
writes them, with fields joined by ``|`` and ``maintenance=1``; and 2048 bytes, as its page
documents them, with fields joined by `` | `` and ``maintenance = 1``.  In both the machine part
is the first 512 bytes, with a CRC-32 among its fields, and the rest is text for people.

Our own blocks have one more field at the end of the machine part: a MAC under the cluster key.
Hosted engine's reader ignores it.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from ...documents import read_document
from ...errors import DocumentError, FormatError, InputError
from ..authentication import MAC_BYTES, NO_AUTHENTICATION, Authentication

BLOCK_BYTES = 4096
"""HOST_SEGMENT_BYTES of hosted engine (env/constants.py): the size unless chosen otherwise."""

SMALL_BLOCK_BYTES = 2048
"""The size of a block in oVirt's page "Hosted engine metadata"."""

SEPARATORS: Mapping[int, str] = {BLOCK_BYTES: "|", SMALL_BLOCK_BYTES: " | "}
"""The separator of the fields of a block, by its size."""

MACHINE_BYTES = 512
"""The size of the machine part of a block (agent/hosted_engine.py): one sector."""

PARSE_VERSION = 1
FEATURE_VERSION = 1

MIN_FIELDS = 10
"""The fields up to the checksum; a block with fewer cannot be checked."""

MAX_SIZE = max(SEPARATORS)

_NUMBER = r"(-?[0-9]{1,18})"
_FIELDS = (
    ("parse version", r"([0-9]{1,9})"),
    ("feature version", r"([0-9]{1,9})"),
    ("timestamp", _NUMBER),
    ("host id", _NUMBER),
    ("score", _NUMBER),
    ("health", r"([^|]*)"),
    ("host name", r"([^|]*)"),
    ("maintenance", _NUMBER),
    ("stopped", _NUMBER),
    ("checksum", r"([0-9a-f]{8})"),
)
_CONF_FIELDS = (("conf_on_shared_storage", _NUMBER), ("conf timestamp", _NUMBER))

SIGNED_AS = "whiteboard"
"""The purpose of a block's MAC."""

_MAC = re.compile(rb"mac=([0-9a-f]{%d})" % (2 * MAC_BYTES))
"""The last field of a machine part with a MAC."""

_CHECKSUM_FIELD = 9

_CHECKSUM_GROUP = 10
_TRUE = "ty1"
_FALSE = "fn0"
_BLANK = bytes(MAX_SIZE)


def _pattern(separator: str) -> re.Pattern[str]:
    """Return the pattern of a machine part; fields after the known ones are ignored."""
    mark = re.escape(separator)
    known = mark.join(pattern for _name, pattern in _FIELDS)
    conf = mark.join(pattern for _name, pattern in _CONF_FIELDS)
    # Nothing, or one field that means nothing alone, or both and whatever follows.
    rest = rf"(?:{mark}{conf}(?:{mark}[^|]*)*|(?:{mark}[^|]*)?)"
    return re.compile(rf"{known}{rest}\Z")


_PATTERNS = {size: _pattern(separator) for size, separator in SEPARATORS.items()}


@dataclass(frozen=True)
class HostBlock:
    """The block of one node.

    ``timestamp`` is whole seconds of the writer's own monotonic clock: it can be compared with
    an earlier one of the same node, never with a reader's clock.  ``health`` is a JSON object,
    None before the first check.  The ``conf`` fields are None in blocks of older agents.
    ``extra`` is lines of ``key=value`` for people.  ``checksum`` is for a block that was read.
    No MAC is over the ``extra``, and nothing depends on it.
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
    """The block of the whole cluster; a blank one means no maintenance."""

    maintenance: bool = False


def check_block_bytes(value: object) -> int:
    """Return *value* as the size of a block, 4096 or 2048; raises ``InputError`` for others."""
    if isinstance(value, int) and value in SEPARATORS:
        return value
    raise InputError("block_size", value, f"{BLOCK_BYTES} or {SMALL_BLOCK_BYTES}")


def encode_host(
    block: HostBlock,
    block_bytes: int = BLOCK_BYTES,
    authentication: Authentication = NO_AUTHENTICATION,
) -> bytes:
    """Return the *block_bytes* bytes of *block*.

    Characters beyond ASCII in the health and in ``extra`` are written as escapes, and ``|``
    within the health as its JSON escape: hosted engine's reader slices the board by characters
    and splits at every ``|``, so either would damage all later nodes for it.  Raises
    ``InputError`` for a host name that would do the same, and when the machine part or the
    extra text is too long.
    """
    separator = SEPARATORS[check_block_bytes(block_bytes)]
    _check_host_name(block.host_name)
    fields = [
        str(PARSE_VERSION),
        str(FEATURE_VERSION),
        str(block.timestamp),
        str(block.host_id),
        str(block.score),
        _encode_health(block.health),
        block.host_name,
        "1" if block.maintenance else "0",
        "1" if block.stopped else "0",
    ]
    before = separator.join([*fields, ""]).encode("ascii")
    conf = []
    if block.conf_on_shared_storage is not None and block.conf_timestamp is not None:
        conf = ["1" if block.conf_on_shared_storage else "0", str(block.conf_timestamp)]
    if authentication.signs:
        mac = authentication.mac(SIGNED_AS, separator.join([*fields, *conf]).encode("ascii"))
        conf.append(f"mac={mac.hex()}")
    after = "".join(separator + one for one in conf).encode("ascii")
    machine = before + _checksum(before, after).encode("ascii") + after
    if len(machine) > MACHINE_BYTES:
        raise InputError(
            f"block of host id {block.host_id}",
            f"{len(machine)} bytes",
            f"a machine part of at most {MACHINE_BYTES} bytes; shorten the health or host name",
        )
    extra = block.extra.encode("ascii", "backslashreplace")
    extra_bytes = block_bytes - MACHINE_BYTES
    if len(extra) > extra_bytes or b"\0" in extra:
        raise InputError(
            f"extra text of host id {block.host_id}",
            f"{len(extra)} bytes",
            f"at most {extra_bytes} bytes without NUL",
        )
    return machine.ljust(MACHINE_BYTES, b"\0") + extra.ljust(extra_bytes, b"\0")


def decode_host(data: bytes, host_id: int) -> HostBlock | None:
    """Return the block in *data*, read from the slot of *host_id*; None when it is blank.

    The size of *data* shows the kind of board.  Raises ``FormatError`` for a wrong or missing
    checksum, a block of another host id, an unknown version, bytes that are no UTF-8, and
    fields that are no numbers.  Fields after the known ones are covered by the checksum and
    otherwise ignored.
    """
    pattern = _PATTERNS.get(len(data))
    if pattern is None:
        raise FormatError(
            f"block of host id {host_id}: {len(data)} bytes are not a block of"
            f" {BLOCK_BYTES} or {SMALL_BLOCK_BYTES}."
        )
    machine = without_padding(data[:MACHINE_BYTES])
    if not machine:
        return None
    try:
        text = machine.decode("utf-8")
        found = pattern.match(text)
        if found is None:
            raise FormatError(_why_not(text, len(data)))
        return _host_block(data, host_id, machine, found)
    except UnicodeDecodeError as error:
        raise FormatError(f"block of host id {host_id}: byte {error.start} is not UTF-8.") from None
    except FormatError as error:
        raise FormatError(f"block of host id {host_id}: {error}.") from None


def is_authentic(data: bytes, authentication: Authentication) -> bool:
    """Return whether a member wrote the block in *data*, which is whole.

    The MAC is over the fields of the machine part without checksum and MAC, in their order.
    """
    separator = SEPARATORS[len(data)].encode("ascii")
    *fields, last = without_padding(data[:MACHINE_BYTES]).split(separator)
    found = _MAC.fullmatch(last)
    if found is None or len(fields) <= _CHECKSUM_FIELD:
        return False
    del fields[_CHECKSUM_FIELD]
    mac = bytes.fromhex(found[1].decode("ascii"))
    return authentication.accepts(mac, SIGNED_AS, separator.join(fields))


def encode_global(block: GlobalBlock, block_bytes: int = BLOCK_BYTES) -> bytes:
    """Return the *block_bytes* bytes of the global *block*."""
    equals = _equals(check_block_bytes(block_bytes))
    text = f"maintenance{equals}{int(block.maintenance)}"
    return text.encode("ascii").ljust(block_bytes, b"\0")


def decode_global(data: bytes) -> GlobalBlock:
    """Return the global block in *data*, whose size shows the kind of board.

    As hosted engine reads it: lines of ``key=value``, the first letter of a truth value counts
    (t, y, 1 or f, n, 0), unknown keys are ignored.  Raises ``FormatError`` for bytes that are no
    UTF-8, another value, and a spelling of the other kind of board, which some agents would
    understand and others ignore.
    """
    where = "global block"
    if len(data) not in SEPARATORS:
        raise FormatError(
            f"{where}: {len(data)} bytes are not a block of {BLOCK_BYTES} or {SMALL_BLOCK_BYTES}."
        )
    try:
        text = without_padding(data).decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(f"{where}: byte {error.start} is not UTF-8.") from None
    spelt = f"maintenance{_equals(len(data))}"
    maintenance = False
    for line in text.split("\n"):
        key, found, _value = line.partition("=")
        if key.strip() != "maintenance" or not found:
            continue
        value = line[len(spelt) :]
        if not line.startswith(spelt) or value[:1] == " ":
            raise FormatError(
                f"{where}: {line[:40]!r} is not how a board of {len(data)}-byte blocks spells it;"
                f" expected '{spelt}1' or '{spelt}0'."
            )
        first = value[:1].lower()
        if not first or first not in _TRUE + _FALSE:
            raise FormatError(f"{where}: maintenance is {value[:40]!r}; expected 1 or 0.")
        maintenance = first in _TRUE
    return GlobalBlock(maintenance)


def without_padding(data: bytes) -> bytes:
    """Return *data* without the NULs at its end."""
    end = data.find(b"\0")
    if end < 0:
        return data
    # Nearly always the first NUL begins the padding, and to compare is faster than to strip.
    if len(data) <= MAX_SIZE and data.endswith(_BLANK[: len(data) - end]):
        return data[:end]
    return data.rstrip(b"\0")


def _host_block(data: bytes, host_id: int, machine: bytes, found: re.Match[str]) -> HostBlock:
    """Return the block whose *machine* part has the form of one, once its content is checked."""
    fields = found.groups()
    parse, feature, timestamp, writer, score, health, name, maintenance, stopped = fields[:9]
    checksum, conf, conf_timestamp = fields[9:]
    if int(parse) > PARSE_VERSION or int(feature) < FEATURE_VERSION:
        _check_versions(int(parse), int(feature))
    place = found.start(_CHECKSUM_GROUP)
    if len(found.string) != len(machine):
        place = len(found.string[:place].encode("utf-8"))
    computed = _checksum(machine[:place], machine[place + len(checksum) :])
    if checksum != computed:
        raise FormatError(f"the checksum is {checksum!r} but the data has {computed!r}")
    if int(writer) != host_id:
        raise FormatError(f"it was written by host id {int(writer)} into a wrong slot")
    return HostBlock(
        host_id,
        int(timestamp),
        int(score),
        name,
        _decode_health(health),
        bool(int(maintenance)),
        bool(int(stopped)),
        None if conf is None else bool(int(conf)),
        None if conf_timestamp is None else int(conf_timestamp),
        # No checksum covers the extra text, and nothing depends on it.
        without_padding(data[MACHINE_BYTES:]).decode("utf-8", "replace"),
        computed,
    )


def _equals(block_bytes: int) -> str:
    """Return the separator of key and value in a global block."""
    return "=" if block_bytes == BLOCK_BYTES else " = "


def _check_host_name(name: str) -> None:
    """Raise ``InputError`` for a host name that would damage the block or other blocks."""
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


def _checksum(before: bytes, after: bytes) -> str:
    """Return the CRC-32 of a machine part with eight zeros between *before* and *after*."""
    return f"{zlib.crc32(after, zlib.crc32(b'00000000', zlib.crc32(before))):08x}"


def _check_versions(parse: int, feature: int) -> None:
    """Raise ``FormatError`` unless a block of these versions can be read."""
    if parse > PARSE_VERSION:
        raise FormatError(f"its version {parse} is newer than {PARSE_VERSION}")
    if feature < FEATURE_VERSION:
        raise FormatError(f"its version {feature} is older than {FEATURE_VERSION}")


def _decode_health(text: str) -> Mapping[str, object] | None:
    """Return the health in *text*, a JSON object or null."""
    try:
        health = read_document(text, "the health")
    except DocumentError:
        raise FormatError(f"the health {text[:40]!r} is not JSON") from None
    if health is not None and not isinstance(health, dict):
        raise FormatError(f"the health {text[:40]!r} is not a JSON object")
    return health


def _why_not(machine: str, block_bytes: int) -> str:
    """Return why a *machine* part is no block of a board with *block_bytes*."""
    for size, pattern in _PATTERNS.items():
        if size != block_bytes and pattern.match(machine):
            return f"it is written as on a board of {size}-byte blocks"
    tokens = machine.split(SEPARATORS[block_bytes])
    if not tokens[0].isdigit():
        return f"{tokens[0][:40]!r} is not the start of a block"
    versions = [int(token[:9]) for token in tokens[:2] if token.isascii() and token.isdigit()]
    if len(versions) == 2:
        _check_versions(*versions)
    if len(tokens) < MIN_FIELDS:
        return (
            f"{len(tokens)} fields are too few; expected at least {MIN_FIELDS}, among them a"
            " checksum"
        )
    for (name, desired), token in zip((*_FIELDS, *_CONF_FIELDS), tokens):
        if not re.fullmatch(desired, token):
            kind = "eight hexadecimal digits" if name == "checksum" else "a whole number"
            return f"the {name} {token[:40]!r} is not {kind}"
    return "it is not written as a block"
