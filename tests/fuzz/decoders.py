# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Millions of damaged blocks, leases and records: a decoder answers or raises a FormatError.

Samples that are right are changed at random: bytes, fields, lengths, pieces of one
another.  Nearly all of them fail a checksum, so half of them get a right one
afterwards, which leads into what comes behind it.  A plain seeded mutator, and not
hypothesis or a coverage-guided fuzzer: it makes some ten thousand inputs a second
instead of some hundred, needs nothing but Python, and a seed gives the same inputs
everywhere.  Where a decoder takes something, it has to say the same again when it
is written and read once more.

Use: python3 tests/fuzz/decoders.py [--inputs 10000000] [--seed 1]
"""

from __future__ import annotations

import argparse
import random
import re
import struct
import sys
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(CHECKOUT / ".collections"))

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (  # noqa: E402
    FormatError,
    InputError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage import (  # noqa: E402
    device_header,
    record_format,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace import (  # noqa: E402
    delta_lease,
    leader_record,
    resource_lease,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard import (  # noqa: E402
    block as whiteboard_block,
)

CHECKSUM_FIELD = re.compile(rb"((?:[^|]*\|){9} ?)([^| ]*)")


@dataclass(frozen=True)
class Target:
    """One decoder: how often it is chosen, samples that are right, and how to check one input.

    ``mend`` gives damaged bytes a right checksum; ``check`` raises ``FormatError`` for
    what is refused and returns whether anything was found.
    """

    name: str
    weight: int
    samples: tuple[bytes, ...]
    mend: Callable[[bytearray], None]
    check: Callable[[bytes], bool]


def fuzz(inputs: int, seed: int) -> dict[str, tuple[int, int]]:
    """Give *inputs* damaged samples to the decoders; return inputs and accepted ones by name.

    Raises whatever a decoder raises that is not a ``FormatError``, with the input.
    """
    dice = random.Random(seed)
    every = [target for target in targets() for _share in range(target.weight)]
    counts = {target.name: [0, 0] for target in every}
    for _number in range(inputs):
        target = every[int(dice.random() * len(every))]
        data = mutate(dice, target)
        count = counts[target.name]
        count[0] += 1
        try:
            count[1] += target.check(data)
        except FormatError:
            continue
        except Exception as error:
            raise RuntimeError(f"{target.name} fails with {error!r} for {data!r}") from error
    return {name: (tried, taken) for name, (tried, taken) in counts.items()}


def mutate(dice: random.Random, target: Target) -> bytes:
    """Return one of the target's samples with one to four changes."""
    samples = target.samples
    data = bytearray(samples[int(dice.random() * len(samples))])
    size = len(data)
    # Most of a sample is padding: changes belong where something is.
    used = len(data.rstrip(b"\0")) + 8
    for _change in range(1 + int(dice.random() * 4)):
        kind = dice.random()
        place = int(dice.random() * min(used, size))
        if kind < 0.35:
            data[place] = int(dice.random() * 256)
        elif kind < 0.5:
            data[place] ^= 1 << int(dice.random() * 8)
        elif kind < 0.65:
            piece = PIECES[int(dice.random() * len(PIECES))]
            data[place : place + len(piece)] = piece
        elif kind < 0.75:
            length = int(dice.random() * 40)
            data[place : place + length] = dice.randbytes(length)
        elif kind < 0.85:
            other = samples[int(dice.random() * len(samples))]
            start = int(dice.random() * used)
            data[place : place + 64] = other[start : start + 64]
        elif kind < 0.95:
            length = 1 + int(dice.random() * 8)
            del data[place : place + length]
        else:
            data[place:] = bytes(max(0, len(data) - place))
    del data[size:]
    if len(data) < size:
        data += bytes(size - len(data))
    if dice.random() < 0.5:
        target.mend(data)
    if dice.random() < 0.01:
        del data[int(dice.random() * size) :]
    return bytes(data)


PIECES = (
    *(b"|", b" | ", b"||", b"\n", b"\0", b"\xff", b"\xc3\xa9", b"-1", b"0", b"null", b"{}", b"[]"),
    *(b"NaN", b"1e999", b"9" * 30, b"[" * 200, b'{"a":' * 60, b'"\\ud800"', b"maintenance=", b"="),
    *(
        b"\xd9\xa1",
        b"\xe2\x80\xa8",
        b"+1",
        b" 1",
        b"1_0",
        b"\xff" * 8,
        bytes(8),
        b"\x80" + bytes(7),
    ),
)
"""What decoders have stumbled over elsewhere: separators, other digits, depth, extreme numbers."""


def targets() -> tuple[Target, ...]:
    """Return the decoders with their samples."""
    return (
        *(_board_target(size) for size in sorted(whiteboard_block.SEPARATORS)),
        *(_global_target(size) for size in sorted(whiteboard_block.SEPARATORS)),
        _host_lease_target(),
        _lease_target(),
        _file_header_target(),
        _record_target(),
        _device_target(),
    )


def _board_target(size: int) -> Target:
    """Return the decoder of host blocks of *size* bytes."""
    health = {"vm": "down", "health": "bad", "detail": "unknown", "reason": "not here"}
    blocks = (
        whiteboard_block.HostBlock(7, 4262, 3400, "n7.example.com", health, extra="state=Up\n"),
        whiteboard_block.HostBlock(7, 0, -5, "n", None, True, True, None, None),
        whiteboard_block.HostBlock(
            7, 10**12, 0, "x" * 60, {"a": [1, {"b": None}]}, extra="k=v\n" * 9
        ),
    )

    def mend(data: bytearray) -> None:
        machine = bytes(data[: whiteboard_block.MACHINE_BYTES]).rstrip(b"\0")
        found = CHECKSUM_FIELD.match(machine)
        if found is not None:
            before, after = machine[: found.end(1)], machine[found.end(2) :]
            crc = zlib.crc32(before + b"00000000" + after)
            mended = before + f"{crc:08x}".encode() + after
            data[: whiteboard_block.MACHINE_BYTES] = mended[: whiteboard_block.MACHINE_BYTES].ljust(
                whiteboard_block.MACHINE_BYTES, b"\0"
            )

    def check(data: bytes) -> bool:
        block = whiteboard_block.decode_host(data, 7)
        if block is None:
            return False
        try:
            again = whiteboard_block.encode_host(block, size)
        except InputError:
            # Read from others, but never written here: a name or text beyond ASCII.
            return True
        if whiteboard_block.decode_host(again, 7) != block and data.isascii():
            raise ValueError("it does not read back as it was")
        return True

    samples = tuple(whiteboard_block.encode_host(block, size) for block in blocks)
    return Target(f"host block of {size}", 3, samples, mend, check)


def _global_target(size: int) -> Target:
    """Return the decoder of global blocks of *size* bytes."""
    samples = (
        *(
            whiteboard_block.encode_global(whiteboard_block.GlobalBlock(on), size)
            for on in (True, False)
        ),
        b"foo=bar\nmaintenance=yes\n".ljust(size, b"\0"),
    )

    def check(data: bytes) -> bool:
        whiteboard_block.decode_global(data)
        return True

    return Target(f"global block of {size}", 1, samples, lambda _data: None, check)


def _mend_leader(data: bytearray) -> None:
    """Give a leader record a right checksum."""
    place = leader_record.CHECKSUM_OFFSET
    struct.pack_into("<I", data, place, leader_record.crc32c(bytes(data[:place])))


def _host_lease_target() -> Target:
    """Return the decoder of host leases."""
    leases = (
        delta_lease.DeltaLease("c1", 7, "n7", 3, 12345, 2, events=b"event"),
        delta_lease.DeltaLease("c1", io_timeout=10),
        delta_lease.DeltaLease("x" * 47, 7, "y" * 47, 2**64 - 1, 2**64 - 1, 65535),
    )

    def check(data: bytes) -> bool:
        lease = delta_lease.decode_delta(data, 7)
        try:
            again = delta_lease.encode_delta(lease)
        except InputError:
            return True
        if delta_lease.decode_delta(again, 7) != lease:
            raise ValueError("it does not read back as it was")
        return True

    samples = tuple(delta_lease.encode_delta(lease) for lease in leases)
    return Target("host lease", 2, samples, _mend_leader, check)


def _lease_target() -> Target:
    """Return the decoder of leases."""
    leases = (
        resource_lease.ResourceLease("c1", "manager", 2, 3, 14, 99),
        resource_lease.ResourceLease("c1", "configuration"),
    )

    def check(data: bytes) -> bool:
        resource_lease.decode_lease(data, "lease")
        return True

    samples = tuple(resource_lease.encode_lease(lease) for lease in leases)
    return Target("lease", 1, samples, _mend_leader, check)


def _file_header_target() -> Target:
    """Return the decoder of the header of a state file."""
    samples = tuple(
        record_format.encode_header(record_format.Geometry(name, hosts))
        for name, hosts in (("c1", 64), ("x" * 40, 2000))
    )

    def mend(data: bytearray) -> None:
        end = record_format.FILE_HEADER.size - 4
        struct.pack_into("<I", data, end, zlib.crc32(data[:end]))

    def check(data: bytes) -> bool:
        geometry = record_format.decode_header(data, "file")
        return (
            record_format.decode_header(record_format.encode_header(geometry), "file") == geometry
        )

    return Target("state file", 1, samples, mend, check)


def _record_target() -> Target:
    """Return the decoder of the header of a record."""
    samples = tuple(
        record_format.encode_record(
            record_format.Record(record_format.Kind.LRM, 7, sequence, epoch, payload)
        )
        for sequence, epoch, payload in ((1, 0, b""), (2**64 - 1, 2**64 - 1, b'{"a":1}' * 20))
    )

    def mend(data: bytearray) -> None:
        end = record_format.COPY_HEADER.size - 4
        struct.pack_into("<I", data, end, zlib.crc32(data[:end]))

    def check(data: bytes) -> bool:
        header = record_format.decode_copy_header(data, record_format.Kind.LRM, 7, 4096)
        return header.sequence > 0

    return Target("record", 1, samples, mend, check)


def _device_target() -> Target:
    """Return the decoder of the header of a block device."""
    areas = {"lockspace": device_header.Area(8 << 20, 1 << 20)}
    pages = [
        device_header.encode_header(device_header.DeviceHeader(name, "7" * 32, size, areas, number))
        for name, size, number in (("c1", 512, 1), ("x" * 40, 4096, 2**64 - 1))
    ]
    samples = (pages[0] * 2, pages[1] * 2, pages[0] + bytes(device_header.COPY_BYTES))

    def mend(data: bytearray) -> None:
        size = device_header.COPY_BYTES
        for start in range(0, len(data) - size + 1, size):
            struct.pack_into(
                "<I", data, start + size - 4, zlib.crc32(data[start : start + size - 4])
            )

    def check(data: bytes) -> bool:
        header = device_header.decode_copies(data, "device").header
        if header is None:
            return False
        again = device_header.encode_header(header) * device_header.COPIES
        return device_header.decode_copies(again, "device").header == header

    return Target("device", 1, samples, mend, check)


def main() -> int:
    """Run as many inputs as asked for and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=100_000, help="how many inputs")
    parser.add_argument("--seed", type=int, default=1, help="where the dice begin")
    options = parser.parse_args()
    begun = time.monotonic()
    counts = fuzz(options.inputs, options.seed)
    took = time.monotonic() - begun
    for name, (tried, taken) in counts.items():
        print(f"{name:22} {tried:>10} inputs, {taken:>10} accepted")
    total = sum(tried for tried, _taken in counts.values())
    print(f"{'total':22} {total:>10} inputs in {took:.1f} s, {total / took:.0f} a second")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
