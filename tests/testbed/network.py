# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The networks of the lab: one for the cluster, one for the management boards.

Every node has a network namespace of its name, with ``eth0`` on the bridge of the first network and
``eth1`` on that of the second.  The lab has an address on both.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

CLUSTER, BOARDS = 0, 1
"""The two networks: 10.77.0.0/24 and 10.77.1.0/24."""

BOTH, FROM_NODE, TO_NODE = "both", "from", "to"
"""The direction in which a cable is cut."""


def address(network: int, number: int) -> str:
    """Return the address of node *number* in a network; the lab itself is number 0."""
    return f"10.77.{network}.{10 + number if number else 1}"


def board_address(number: int) -> str:
    """Return the address of a node's management board."""
    return f"10.77.{BOARDS}.{110 + number}"


def build(nodes: int) -> None:
    """Create bridges, namespaces and cables of nodes that are off."""
    for network in (CLUSTER, BOARDS):
        bridge = f"br{network}"
        _ip("link", "add", bridge, "type", "bridge", "forward_delay", "0")
        _ip("address", "add", f"{address(network, 0)}/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
    for number in range(1, nodes + 1):
        name = f"n{number}"
        _ip("netns", "add", name)
        _ip("-n", name, "link", "set", "lo", "up")
        for network in (CLUSTER, BOARDS):
            cable, end = _cable(name, network), f"eth{network}"
            _ip("link", "add", cable, "type", "veth", "peer", "name", end, "netns", name)
            _ip("link", "set", cable, "master", f"br{network}", "up")
        _ip("address", "add", f"{board_address(number)}/24", "dev", f"br{BOARDS}")


def switch_off(number: int) -> None:
    """Set a node's interfaces down, and remove their addresses.

    A machine with a kernel of its own has no namespace; its interfaces end with it.
    """
    if not Path(f"/run/netns/n{number}").exists():
        return
    for network in (CLUSTER, BOARDS):
        _ip("-n", f"n{number}", "link", "set", f"eth{network}", "down")
        _ip("-n", f"n{number}", "address", "flush", "dev", f"eth{network}")


def switch_on(number: int) -> None:
    """Set a node's interfaces up with their permanent addresses, as after a reboot."""
    switch_off(number)
    for network in (CLUSTER, BOARDS):
        own, end = f"{address(network, number)}/24", f"eth{network}"
        _ip("-n", f"n{number}", "address", "add", own, "dev", end)
        _ip("-n", f"n{number}", "link", "set", end, "up")


def cut(name: str, network: int = CLUSTER, way: str = BOTH) -> None:
    """Drop everything on a node's cable, or everything from the node, or to it."""
    heal(name, network)
    cable = _cable(name, network)
    if way == BOTH:
        _ip("link", "set", cable, "down")
    elif way == FROM_NODE:
        _nft("", _drop(cable))
    else:
        _nft(name, _drop(f"eth{network}"))


def lose(name: str, percent: int, network: int = CLUSTER) -> None:
    """Drop *percent* of the packets on a node's cable, in each direction."""
    heal(name, network)
    _nft("", _drop(_cable(name, network), percent))
    _nft(name, _drop(f"eth{network}", percent))


def heal(name: str, network: int = CLUSTER) -> None:
    """Repair a node's cable."""
    cable = _cable(name, network)
    _nft("", f"add table netdev {cable}\ndelete table netdev {cable}\n")
    end = f"eth{network}"
    _nft(name, f"add table netdev {end}\ndelete table netdev {end}\n")
    _ip("link", "set", cable, "up")


def open_cable(name: str, network: int = CLUSTER) -> tuple[str, str]:
    """Take a node's cable off its bridge; return the cable and the interface in its place."""
    cable, here, there = _cable(name, network), f"{name}-open", f"{name}-bridge"
    _ip("link", "add", here, "type", "veth", "peer", "name", there)
    _ip("link", "set", cable, "nomaster")
    _ip("link", "set", there, "master", f"br{network}", "up")
    _ip("link", "set", here, "up")
    return cable, here


def close_cable(name: str, network: int = CLUSTER) -> None:
    """Connect an opened cable to its bridge again."""
    _ip("link", "del", f"{name}-open")
    _ip("link", "set", _cable(name, network), "master", f"br{network}")


def unplug_board(number: int) -> None:
    """Take a management board off the network: it no longer answers."""
    _ip("address", "del", f"{board_address(number)}/24", "dev", f"br{BOARDS}")


def plug_board(number: int) -> None:
    """Connect a management board to the network again."""
    _ip("address", "replace", f"{board_address(number)}/24", "dev", f"br{BOARDS}")


def _cable(name: str, network: int) -> str:
    return f"{name}-{network}"


def _drop(interface: str, percent: int = 100) -> str:
    """Return rules that drop incoming packets of an interface before anything else."""
    rule = "drop" if percent == 100 else f"numgen random mod 100 < {percent} drop"
    return (
        f"table netdev {interface} {{\n"
        f'  chain cut {{\n    type filter hook ingress device "{interface}" priority 0;'
        f" policy accept;\n    {rule}\n  }}\n}}\n"
    )


def _nft(namespace: str, rules: str) -> None:
    entered = ["nsenter", f"--net=/run/netns/{namespace}"] if namespace else []
    subprocess.run([*entered, "nft", "-f", "-"], input=rules, text=True, check=True, timeout=120)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, timeout=120)
