# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated power switch with outlets that speaks SNMP 1 and 2c, in a thread.

It has the objects of an APC MasterSwitch that fence_apc_snmp falls back to.  Only what the
tools of net-snmp ask for is here: get, getnext and set of whole numbers and texts (RFC
1157, RFC 3416), in the basic encoding rules (X.690) with definite lengths.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

ADDRESS = "127.0.0.1"
COMMUNITY = "secret-of-outlets"

ON, OFF = 1, 2

_STATE = (1, 3, 6, 1, 4, 1, 318, 1, 1, 4, 4, 2, 1, 3)
_NAME = (1, 3, 6, 1, 4, 1, 318, 1, 1, 4, 4, 2, 1, 4)
_OBJECT_ID = (1, 3, 6, 1, 2, 1, 1, 2, 0)
_OUR_OBJECT_ID = (1, 3, 6, 1, 4, 1, 318, 1, 3, 4, 99)

_INTEGER, _TEXT, _NULL, _OID, _SEQUENCE = 0x02, 0x04, 0x05, 0x06, 0x30
_GET, _GET_NEXT, _RESPONSE, _SET = 0xA0, 0xA1, 0xA2, 0xA3
_NO_SUCH_INSTANCE, _END_OF_VIEW = 0x81, 0x82
_NO_SUCH_NAME = 2

Oid = tuple[int, ...]


class Outlets:
    """Outlets 1, 2, ... with a name each; ``deaf`` ones say that they switch and do not."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self.states = dict.fromkeys(range(1, len(names) + 1), ON)
        self.deaf = False
        self.silent = False
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((ADDRESS, 0))
        self._socket.settimeout(0.1)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._serve)

    @property
    def parameters(self) -> dict[str, object]:
        """What fence_apc_snmp needs to talk to it."""
        return {
            "ip": ADDRESS,
            "ipport": self._socket.getsockname()[1],
            "community": COMMUNITY,
            "power_wait": 0,
        }

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._ending.set()
        self._thread.join(timeout=10)
        self._socket.close()

    def _serve(self) -> None:
        while not self._ending.is_set():
            try:
                packet, sender = self._socket.recvfrom(4096)
            except TimeoutError:
                continue
            answer = self._answer(packet)
            if answer and not self.silent:
                self._socket.sendto(answer, sender)

    def _answer(self, packet: bytes) -> bytes:
        """Return the answer to a request; nothing for one with another community."""
        _tag, message, _rest = _read(packet)
        _tag, version, rest = _read(message)
        _tag, community, rest = _read(rest)
        kind, request, _rest = _read(rest)
        if community.decode() != COMMUNITY:
            return b""
        _tag, number, rest = _read(request)
        _tag, _status, rest = _read(rest)
        _tag, _index, rest = _read(rest)
        _tag, bindings, _rest = _read(rest)
        _tag, binding, _rest = _read(bindings)
        _tag, name, value = _read(binding)
        oid = _oid(name)
        found, encoded = self._act(kind, oid, value)
        status = 0
        if encoded[0] in (_NO_SUCH_INSTANCE, _END_OF_VIEW) and version == b"\0":
            # Version 1 has an error where 2c has a value that says so.
            status, encoded = _NO_SUCH_NAME, _part(_NULL, b"")
        told = _part(_SEQUENCE, _part(_OID, _oid_bytes(found)) + encoded)
        answer = _part(_INTEGER, number) + _integer(status) + _integer(1 if status else 0)
        pdu = _part(_RESPONSE, answer + _part(_SEQUENCE, told))
        return _part(_SEQUENCE, _part(_INTEGER, version) + _part(_TEXT, community) + pdu)

    def _act(self, kind: int, oid: Oid, value: bytes) -> tuple[Oid, bytes]:
        objects = dict(self._objects())
        if kind == _GET_NEXT:
            later = sorted(one for one in objects if one > oid)
            return (later[0], objects[later[0]]) if later else (oid, _part(_END_OF_VIEW, b""))
        if oid not in objects:
            return oid, _part(_NO_SUCH_INSTANCE, b"")
        if kind == _SET and oid[:-1] == _STATE:
            if not self.deaf:
                self.states[oid[-1]] = int.from_bytes(_read(value)[1], "big")
            return oid, value
        return oid, objects[oid]

    def _objects(self) -> Iterator[tuple[Oid, bytes]]:
        yield _OBJECT_ID, _part(_OID, _oid_bytes(_OUR_OBJECT_ID))
        for number, name in enumerate(self.names, 1):
            yield (*_STATE, number), _integer(self.states[number])
            yield (*_NAME, number), _part(_TEXT, name.encode())


@contextmanager
def outlets(names: Sequence[str]) -> Iterator[Outlets]:
    """Give outlets of these names, which are on; they end with the block."""
    made = Outlets(names)
    made.start()
    try:
        yield made
    finally:
        made.end()


def _read(data: bytes) -> tuple[int, bytes, bytes]:
    """Return tag and content of the first part of *data*, and what follows it."""
    length, begin = data[1], 2
    if length & 0x80:
        begin += length & 0x7F
        length = int.from_bytes(data[2:begin], "big")
    return data[0], data[begin : begin + length], data[begin + length :]


def _part(tag: int, content: bytes) -> bytes:
    if len(content) < 0x80:
        return bytes([tag, len(content)]) + content
    length = len(content).to_bytes((len(content).bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content


def _integer(value: int) -> bytes:
    return _part(_INTEGER, value.to_bytes(4, "big", signed=True))


def _oid(data: bytes) -> Oid:
    numbers = []
    value = 0
    for byte in data:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    return (numbers[0] // 40, numbers[0] % 40, *numbers[1:])


def _oid_bytes(oid: Oid) -> bytes:
    data = b""
    for number in (oid[0] * 40 + oid[1], *oid[2:]):
        digits = [number & 0x7F]
        while number > 0x7F:
            number >>= 7
            digits.append(0x80 | number & 0x7F)
        data += bytes(reversed(digits))
    return data
