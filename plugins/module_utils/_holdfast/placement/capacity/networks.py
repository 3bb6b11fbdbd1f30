# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the networks of a placement: the node groups an instance can reach, and its addresses.

htools only compares the uuids of networks.  Here an interface that names its network by name, or
only by its address, gets the uuid.  Its address is checked against the network's pool and all
addresses in use.  An interface that wants any address of a pool gets one.

Addresses are pairs of IP version and number; the caller converts them from and to text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from ...errors import ClusterDataError, InputError

Address = tuple[int, int]
Range = tuple[int, int]
Read = Callable[[str], "Address | None"]

POOL = "pool"
"""The address of an interface that wants one of its network's pool (Ganeti's word)."""


@dataclass(frozen=True)
class Network:
    """A network from *first* to *last* address, with the *pool* that addresses are given from.

    *reserved* are ranges with what each is reserved for.  *groups* are the names or uuids of
    more node groups that are connected to it, beside those whose own data names it.
    """

    name: str
    uuid: str
    version: int
    first: int
    last: int
    pool: tuple[Range, ...]
    reserved: tuple[tuple[int, int, str], ...] = ()
    groups: tuple[str, ...] = ()

    def has(self, address: Address) -> bool:
        """Return whether *address* lies in this network."""
        return address[0] == self.version and self.first <= address[1] <= self.last

    def refusal(self, value: int) -> str | None:
        """Return why *value* may not be given to an interface, None if it may."""
        for first, last, what in self.reserved:
            if first <= value <= last:
                return f"it is reserved ({what})"
        if any(first <= value <= last for first, last in self.pool):
            return None
        return f"it is outside the pool of {self.name}"

    def free(self, used: Iterable[int]) -> int | None:
        """Return the lowest address of the pool that is neither reserved nor *used*."""
        taken = [(first, last) for first, last, _what in self.reserved]
        taken += [(value, value) for value in used]
        taken.sort()
        best = None
        for first, last in sorted(self.pool):
            for low, high in taken:
                if low <= first <= high:
                    first = high + 1
            if first <= last and (best is None or first < best):
                best = first
        return best


@dataclass(frozen=True)
class Interface:
    """An interface of an instance, *new* if that is to be placed.

    *network* is the network that it names, *text* its address as written; "" where there is
    none.  *nic* is its data in the request.
    """

    instance: str
    number: int
    new: bool
    network: str
    text: str
    nic: dict[str, Any] = field(compare=False, repr=False)

    def __str__(self) -> str:
        return f"interface {self.number} of {self.instance}"


@dataclass
class NetworkReport:
    """The result of the check of networks.

    *problems* let the request fail, *clashes* are between existing instances or networks.
    *groups* are for each new instance the node groups that reach all its networks; *given* are
    the addresses that interfaces get from a pool, as (interface, uuid, address).
    """

    problems: list[str] = field(default_factory=list)
    clashes: list[str] = field(default_factory=list)
    groups: dict[str, list[str]] = field(default_factory=dict)
    given: list[tuple[Interface, str, Address]] = field(default_factory=list)


def check_networks(
    message: Mapping[str, Any], networks: Sequence[Network], read: Read
) -> tuple[dict[str, Any], NetworkReport]:
    """Return a request with its interfaces' networks filled in, and what is wrong with them.

    *message* is an allocator's request as data; it is not changed.  *read* returns the number
    of an address from its text, or None.  Raises `InputError` if two
    networks cannot be told apart, and `ClusterDataError` if *message* is no object.
    """
    if not isinstance(message, Mapping):
        raise ClusterDataError("Parsing input IAllocator message: Unable to read JSObject")
    completed: dict[str, Any] = deepcopy(dict(message))
    known = _by_name(networks)
    report = NetworkReport(clashes=_overlaps(networks))
    users: dict[tuple[str, int], Interface] = {}
    found = interfaces(completed)
    for interface in found:
        uuid, value = _place(interface, networks, known, read, report)
        if uuid:
            interface.nic["network"] = uuid
        if uuid and value is not None:
            other = users.setdefault((uuid, value), interface)
            if other is not interface:
                text = f"{interface} has the address {interface.text} of {other}"
                (report.problems if interface.new else report.clashes).append(text)
    _give(found, networks, users, report)
    _connect_groups(completed, networks)
    report.groups = _reached(completed, report, {each.uuid: each.name for each in networks})
    return completed, report


def interfaces(message: Mapping[str, Any]) -> list[Interface]:
    """Return all interfaces of a request, those of existing instances first."""
    found = []
    for name, data in _records(message.get("instances")).items():
        found += _interfaces_of(name, data, False)
    for data in _new_instances(message):
        found += _interfaces_of(str(data.get("name", "")), data, True)
    return found


def _records(value: object) -> dict[str, Any]:
    """Return the objects in an object; anything else in it is refused later on."""
    if not isinstance(value, Mapping):
        return {}
    return {name: data for name, data in value.items() if isinstance(data, Mapping)}


def _new_instances(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    asked = message.get("request")
    if not isinstance(asked, Mapping):
        return []
    if asked.get("type") == "allocate":
        return [asked]
    several = asked.get("instances") if asked.get("type") == "multi-allocate" else None
    return [data for data in several or () if isinstance(data, Mapping)]


def _interfaces_of(name: str, data: Mapping[str, Any], new: bool) -> list[Interface]:
    nics = data.get("nics")
    return [
        Interface(name, number, new, str(nic.get("network") or ""), str(nic.get("ip") or ""), nic)
        for number, nic in enumerate(nics if isinstance(nics, list) else ())
        if isinstance(nic, dict)
    ]


def _by_name(networks: Sequence[Network]) -> dict[str, Network]:
    known: dict[str, Network] = {}
    for network in networks:
        for name in (network.name, network.uuid):
            if known.setdefault(name, network) is not network:
                raise InputError("networks", name, "each name and uuid for one network only")
    return known


def _overlaps(networks: Sequence[Network]) -> list[str]:
    """Return the pairs of networks that share addresses where a group has both."""
    found = []
    for number, one in enumerate(networks):
        for other in networks[number + 1 :]:
            shared = set(one.groups) & set(other.groups)
            apart = one.version != other.version or one.last < other.first
            if shared and not apart and one.first <= other.last:
                names = ", ".join(sorted(shared))
                found.append(f"networks {one.name} and {other.name} overlap in group {names}")
    return found


def _place(
    interface: Interface,
    networks: Sequence[Network],
    known: Mapping[str, Network],
    read: Read,
    report: NetworkReport,
) -> tuple[str, int | None]:
    """Return the uuid of an interface's network and the number of its address."""
    wrong = report.problems if interface.new else report.clashes
    address = None
    if interface.text not in ("", POOL):
        address = read(interface.text)
        if address is None:
            wrong.append(f"{interface}: {interface.text!r} is no IP address")
    if not interface.network:
        inside = [each for each in networks if address is not None and each.has(address)]
        if not inside or address is None:
            if interface.text == POOL:
                wrong.append(f"{interface} wants an address of a pool and names no network")
            return "", None
        if len(inside) > 1:
            names = ", ".join([each.name for each in inside])
            wrong.append(
                f"{interface}: {interface.text} is in several networks ({names}); name one"
            )
            return "", None
        network = inside[0]
    elif interface.network in known:
        network = known[interface.network]
    else:
        # Only the nodes' groups know it: they are compared as htools does it.
        return interface.network, None
    if address is None:
        return network.uuid, None
    if not network.has(address):
        wrong.append(f"{interface}: {interface.text} is not in network {network.name}")
        return network.uuid, None
    refusal = network.refusal(address[1]) if interface.new else None
    if refusal is not None:
        wrong.append(f"{interface}: {interface.text} cannot be had, {refusal}")
    return network.uuid, address[1]


def _give(
    found: Sequence[Interface],
    networks: Sequence[Network],
    users: dict[tuple[str, int], Interface],
    report: NetworkReport,
) -> None:
    """Give each new interface that wants any address of a pool the lowest free one."""
    by_uuid = {network.uuid: network for network in networks}
    for interface in found:
        uuid = str(interface.nic.get("network") or "")
        if not interface.new or interface.text != POOL or not uuid:
            continue
        network = by_uuid.get(uuid)
        if network is None:
            report.problems.append(f"{interface}: the pool of network {uuid} is not known")
            continue
        value = network.free([used for owner, used in users if owner == uuid])
        if value is None:
            report.problems.append(f"{interface}: the pool of network {network.name} is used up")
            continue
        users[(uuid, value)] = interface
        report.given.append((interface, uuid, (network.version, value)))


def _connect_groups(message: Mapping[str, Any], networks: Sequence[Network]) -> None:
    """Add to the networks of each node group of *message* those that name the group."""
    for uuid, data in _records(message.get("nodegroups")).items():
        if isinstance(data.get("networks"), list):
            named = {str(data.get("name")), uuid}
            more = [each.uuid for each in networks if named & set(each.groups)]
            more = [each for each in more if each not in data["networks"]]
            data["networks"] = [*data["networks"], *more]


def _reached(
    message: Mapping[str, Any], report: NetworkReport, names: Mapping[str, str]
) -> dict[str, list[str]]:
    """Return for each new instance the groups that have all its networks; note where none has."""
    reached: dict[str, list[str]] = {}
    groups = _records(message.get("nodegroups"))
    for data in _new_instances(message):
        name = str(data.get("name", ""))
        desired = {each.network for each in _interfaces_of(name, data, True)} - {""}
        reached[name] = [
            str(group.get("name", uuid))
            for uuid, group in groups.items()
            if desired <= {str(each) for each in group.get("networks") or ()}
        ]
        if not reached[name]:
            shown = ", ".join(sorted(names.get(uuid, uuid) for uuid in desired))
            report.problems.append(f"{name}: no node group has all its networks ({shown})")
    return reached
