# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What authentication costs: CPU for records, blocks and datagrams, with it and without.

The bytes on storage are the same for records, and 45 more of 512 in each block.
"""

from __future__ import annotations

import argparse
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing import Process
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / ".collections"))

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import (
    Member,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.datagrams import (
    Correspondence,
    Kind,
    sources_of,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.network import (
    AnsweringNetwork,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage import (
    record_format,
    records,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.authentication import (
    KEY_BYTES,
    Authentication,
    Policy,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.block import (  # noqa: E501
    HostBlock,
    encode_host,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.board import (  # noqa: E501
    KnownBlocks,
    decode_board,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import (
    HOST,
    correspondence,
    datagram,
    free_ports,
)

POLICIES = {
    "off": Authentication(),
    "enforce": Authentication(Policy.ENFORCE, "c1", (b"k" * KEY_BYTES,)),
}
BLOCK = HostBlock(1, 4262, 3400, "n1.example.com", {"vm": "up", "health": "good", "report": 1})
HOSTS = 2000
RATE = 5000
FLOOD_SECONDS = 8.0


def cpu(work: Callable[[], object], times: int) -> float:
    """Return the CPU seconds of one call of *work*, the least of three rounds of *times*."""
    least = float("inf")
    for _round in range(3):
        begun = time.process_time()
        for _time in range(times):
            work()
        least = min(least, (time.process_time() - begun) / times)
    return least


def record_costs(size: int, authentication: Authentication, folder: str) -> tuple[float, float]:
    """Return the CPU seconds to write a record of *size* bytes, and to read it when it changed."""
    path = f"{folder}/{authentication.policy.value}-{size}.state"
    sizes = {record_format.Kind.CRM: 16 << 20}
    with records.RecordFile(path, authenticate=lambda: authentication) as file:
        file.create("c1", 2, sizes, replace=True)
        payload = b"x" * size
        times = max(3, min(200, (8 << 20) // size))
        write = cpu(lambda: file.write(record_format.Kind.CRM, 1, 1, payload), times)
        read = cpu(lambda: file.read(record_format.Kind.CRM, 1), times)
    return write, read


def board_costs(authentication: Authentication) -> tuple[float, float]:
    """Return the CPU seconds to encode a block, and to decode a board on which all have changed."""
    blocks = [
        b"".join(
            [bytes(4096)]
            + [
                encode_host(replace(BLOCK, host_id=n, timestamp=t), authentication=authentication)
                for n in range(1, HOSTS + 1)
            ]
        )
        for t in (1, 2)
    ]
    known = KnownBlocks(authentication)

    def both() -> None:
        for data in blocks:
            decode_board(data, known=known)

    encode = cpu(lambda: encode_host(BLOCK, authentication=authentication), 2000)
    return encode, cpu(both, 1) / 2


def answer_cost(authentication: Authentication) -> float:
    """Return the CPU seconds of a question and its answer, on both sides together."""
    members = [Member(f"n{i}", i, "127.0.0.1", 7410 + 3 * i) for i in (1, 2)]
    one, two = (
        Correspondence("c1", name, sources_of(members), lambda: authentication)
        for name in ("n1", "n2")
    )

    def ask() -> None:
        asked = two.believed(one.question("n2", 0.0), members[0].at(1), 0.0)
        assert asked is not None
        answer = two.message(Kind.ANSWER, asked.nonce, 41)
        assert one.believed(answer, members[1].at(1), 0.0) is not None
        one._queries.clear()

    return cpu(ask, 2000)


def flood_cost(seconds: float, from_member: bool) -> tuple[float, int]:
    """Return the share of a core that a flood costs a daemon, and how many datagrams were refused.

    They come from a port that is no member's, or from that of a member whose process is down.
    """
    first = free_ports()
    authentication = POLICIES["enforce"]
    network = AnsweringNetwork(HOST, first, correspondence("n1", first, authentication))
    source = first + 3 if from_member else 0
    flood = Process(target=_send, args=((HOST, first), source, seconds))
    begun, spent = time.monotonic(), time.process_time()
    flood.start()
    while time.monotonic() < begun + seconds:
        network.listen(0.5)
    share = (time.process_time() - spent) / (time.monotonic() - begun)
    flood.join()
    refused, _sender = network.refused()
    network.close()
    return share, refused


def _send(target: tuple[str, int], source: int, seconds: float) -> None:
    """Send ``RATE`` hints without a MAC a second."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.bind((HOST, source))
        sent, begun = 0, time.monotonic()
        while time.monotonic() < begun + seconds:
            for _datagram in range(RATE // 100):
                stranger.sendto(datagram(), target)
                sent += 1
            time.sleep(max(0.0, begun + sent / RATE - time.monotonic()))


def main() -> int:
    """Print a table; what each line is stands in it."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    rows: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for authentication in POLICIES.values():
            for size in (2_000, 200_000, 5_000_000):
                write, read = record_costs(size, authentication, folder)
                rows.setdefault(f"write a record of {size} bytes", []).append(write)
                rows.setdefault(f"read it, changed, of {size} bytes", []).append(read)
            encode, decode = board_costs(authentication)
            rows.setdefault("encode a block", []).append(encode)
            rows.setdefault(f"decode a board of {HOSTS} blocks, all changed", []).append(decode)
            rows.setdefault("ask, answer, hear", []).append(answer_cost(authentication))
    print(f"{'CPU, milliseconds':48} {'off':>9} {'enforce':>9}")
    for name, (off, enforce) in rows.items():
        print(f"{name:48} {off * 1e3:9.3f} {enforce * 1e3:9.3f}")
    for sender, from_member in (("a stranger", False), ("a member's port", True)):
        share, refused = flood_cost(FLOOD_SECONDS, from_member)
        print(f"{RATE} datagrams a second from {sender}: {share:.1%} of a core; refused: {refused}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
