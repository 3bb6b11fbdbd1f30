# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The networks of the lab: those of the testbed, and two to the storage machine.

Each machine has a tap device on the bridge of each network.  To cut a cable its tap device leaves
the bridge, but stays up: the network card of a kernel in user mode does not survive "down".
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable

from testbed.network import BOARDS, BOTH, CLUSTER, FROM_NODE, address, board_address

FIRST_PATH, SECOND_PATH = 2, 3
"""The storage networks 10.77.2.0/24 and 10.77.3.0/24; each has a portal of the storage machine."""

PATHS = (FIRST_PATH, SECOND_PATH)
NETWORKS = (CLUSTER, BOARDS, *PATHS)


def build(numbers: Iterable[int]) -> None:
    """Create the bridges, the cables of the machines *numbers* and the addresses of the boards."""
    for network in NETWORKS:
        bridge = f"br{network}"
        _ip("link", "add", bridge, "type", "bridge", "forward_delay", "0")
        _ip("address", "add", f"{address(network, 0)}/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
    for number in numbers:
        for network in NETWORKS:
            _ip("tuntap", "add", cable(number, network), "mode", "tap")
            heal(number, network)
        _ip("address", "add", f"{board_address(number)}/24", "dev", f"br{BOARDS}")


def cable(number: int, network: int) -> str:
    """Return the tap device of a machine in a network."""
    return f"n{number}-{network}"


def cut(number: int, network: int = CLUSTER, way: str = BOTH) -> None:
    """Drop everything on a machine's cable, or everything from the machine, or to it."""
    heal(number, network)
    device = cable(number, network)
    if way == BOTH:
        _ip("link", "set", device, "nomaster")
        return
    hook = "ingress" if way == FROM_NODE else "egress"
    _nft(
        f'table netdev {device} {{\n  chain cut {{\n    type filter hook {hook} device "{device}"'
        " priority 0; policy drop;\n  }\n}\n"
    )


def heal(number: int, network: int = CLUSTER) -> None:
    """Repair a machine's cable."""
    device = cable(number, network)
    _nft(f"add table netdev {device}\ndelete table netdev {device}\n")
    _ip("link", "set", device, "master", f"br{network}", "up")


def _nft(rules: str) -> None:
    subprocess.run(["nft", "-f", "-"], input=rules, text=True, check=True, timeout=20)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, timeout=20)
