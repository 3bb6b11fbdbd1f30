# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks as module options, read with netaddr: text to plain numbers and back.

PRIVATE to the collection.  The library is given numbers only, since nodes have no
netaddr; it has to be where the module runs, which is usually the controller.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import missing_required_lib

from ._holdfast.errors import HoldfastError, InputError
from ._holdfast.placement.capacity.networks import Address, Network, Range

try:
    import netaddr
except ImportError:
    NETADDR_MISSING: str | None = traceback.format_exc()
else:
    NETADDR_MISSING = None

NETWORK_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "name": {"type": "str", "required": True},
    "uuid": {"type": "str"},
    "network": {"type": "str", "required": True},
    "gateway": {"type": "str"},
    "pool": {"type": "list", "elements": "str"},
    "reserved": {"type": "list", "elements": "str", "default": []},
    "groups": {"type": "list", "elements": "str", "default": []},
}
"""The options of one network."""


def network_from_options(row: Mapping[str, Any]) -> Network:
    """Return the network that the options in *row* describe.

    Raises ``InputError`` naming the option that is wrong, and ``HoldfastError`` if
    netaddr is not installed.
    """
    if NETADDR_MISSING is not None:
        raise HoldfastError(missing_required_lib("netaddr"))
    try:
        network = netaddr.IPNetwork(row["network"]).cidr
    except (netaddr.AddrFormatError, ValueError):
        raise InputError(
            "networks.network", row["network"], "a network such as 192.0.2.0/24 or 2001:db8::/64"
        ) from None
    version = int(network.version)
    reserved = [(*_range(text, network, "networks.reserved"), text) for text in row["reserved"]]
    if row["gateway"] is not None:
        reserved.append((*_range(row["gateway"], network, "networks.gateway"), "the gateway"))
    if network.size > 2:
        reserved.append((network.first, network.first, "the network's own address"))
    if network.size > 2 and version == 4:
        reserved.append((network.last, network.last, "the broadcast address"))
    pool = [_range(text, network, "networks.pool") for text in row["pool"] or ()]
    return Network(
        name=row["name"],
        uuid=row["uuid"] or row["name"],
        version=version,
        first=network.first,
        last=network.last,
        pool=tuple(pool) if row["pool"] is not None else ((network.first, network.last),),
        reserved=tuple(reserved),
        groups=tuple(row["groups"]),
    )


def _range(text: str, network: Any, option: str) -> Range:
    """Return the first and the last of an address, a network or ``FIRST-LAST``."""
    expected = "an address, a network, or FIRST-LAST"
    try:
        if "-" in text:
            first, last = [netaddr.IPAddress(part.strip()) for part in text.split("-", 1)]
            found = (int(first), int(last))
            versions = {first.version, last.version}
        else:
            part = netaddr.IPNetwork(text)
            found = (part.first, part.last)
            versions = {part.version}
    except (netaddr.AddrFormatError, ValueError):
        raise InputError(option, text, expected) from None
    if versions != {network.version} or not network.first <= found[0] <= found[1] <= network.last:
        raise InputError(option, text, f"{expected}, inside {network}")
    return found


def read_address(text: str) -> Address | None:
    """Return the version and the number of an address, None if *text* is none."""
    try:
        address = netaddr.IPAddress(text)
    except (netaddr.AddrFormatError, ValueError):
        return None
    return int(address.version), int(address)


def show_address(address: Address) -> str:
    """Return the text of an address."""
    version, value = address
    return str(netaddr.IPAddress(value, version))
