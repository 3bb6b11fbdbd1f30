# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks of a placement: which node groups an instance can reach, and its addresses.

htools compares the uuids of networks only, and looks at no address.  Here an interface
that names its network by name, or only by its address, gets the uuid; its address is
checked against the network's pool and against all that are in use; and an interface
that wants any address of a pool gets one.

Addresses are pairs of IP version and number: what reads and writes their texts is the
caller's (`network` and `addresses` are made with netaddr by the modules).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
    """A network with the pool that its addresses are given from.

    *first* and *last* are its own bounds, *pool* the ranges to give from, *reserved*
    ranges with what each is reserved for.  *groups* are the names or uuids of node groups
    that are connected to it besides those that say so themselves.
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

    *network* is what it names, *text* its address as written; "" where there is none.
    """

    instance: str
    number: int
    new: bool
    network: str
    text: str

    def __str__(self) -> str:
        return f"interface {self.number} of {self.instance}"


@dataclass
class NetworkReport:
    """What the check of networks found.

    *problems* stand in the way of the request, *clashes* are among what is there.
    *groups* are for each new instance the node groups that reach all its networks;
    *given* the addresses that interfaces get from a pool, as (interface, uuid, address).
    """

    problems: list[str] = field(default_factory=list)
    clashes: list[str] = field(default_factory=list)
    groups: dict[str, list[str]] = field(default_factory=dict)
    given: list[tuple[Interface, str, Address]] = field(default_factory=list)


def check_networks(
    message: Mapping[str, Any], networks: Sequence[Network], read: Read
) -> tuple[dict[str, Any], NetworkReport]:
    """Return a request with its interfaces' networks filled in, and what is wrong with them.

    *message* is an allocator's request as data; it is not changed.  *read* returns the
    number of an address from its text, None if it is none.  Raises `InputError` if two
    networks cannot be told apart, and `ClusterDataError` if *message* is no object.
    """
    if not isinstance(message, Mapping):
        raise ClusterDataError("Parsing input IAllocator message: Unable to read JSObject")
    known = _by_name(networks)
    report = NetworkReport(clashes=_overlaps(networks))
    networks_of: dict[tuple[str, int, bool], str] = {}
    users: dict[tuple[str, int], Interface] = {}
    for interface in interfaces(message):
        uuid, value = _place(interface, networks, known, read, report)
        if uuid:
            networks_of[(interface.instance, interface.number, interface.new)] = uuid
        if uuid and value is not None:
            other = users.setdefault((uuid, value), interface)
            if other is not interface:
                text = f"{interface} has the address {interface.text} of {other}"
                (report.problems if interface.new else report.clashes).append(text)
    _give(message, networks, networks_of, users, report)
    completed = _completed(message, networks, networks_of)
    report.groups = _reached(completed, report, {each.uuid: each.name for each in networks})
    return completed, report


def interfaces(message: Mapping[str, Any]) -> list[Interface]:
    """Return all interfaces of a request, those of instances that are there first."""
    found = []
    for name, data in _records(message.get("instances")).items():
        found += _interfaces_of(name, data, False)
    for data in _new_instances(message):
        found += _interfaces_of(str(data.get("name", "")), data, True)
    return found


def _records(value: object) -> dict[str, Any]:
    """Return the objects in an object; whatever else stands there is refused later on."""
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
        Interface(name, number, new, str(nic.get("network") or ""), str(nic.get("ip") or ""))
        for number, nic in enumerate(nics if isinstance(nics, list) else ())
        if isinstance(nic, Mapping)
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
    message: Mapping[str, Any],
    networks: Sequence[Network],
    networks_of: Mapping[tuple[str, int, bool], str],
    users: dict[tuple[str, int], Interface],
    report: NetworkReport,
) -> None:
    """Give each new interface that wants any address of a pool the lowest free one."""
    by_uuid = {network.uuid: network for network in networks}
    for interface in interfaces(message):
        uuid = networks_of.get((interface.instance, interface.number, interface.new), "")
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


def _completed(
    message: Mapping[str, Any],
    networks: Sequence[Network],
    networks_of: Mapping[tuple[str, int, bool], str],
) -> dict[str, Any]:
    """Return *message* with the networks of interfaces and of groups as uuids."""
    completed = dict(message)
    completed["instances"] = {
        name: _with_networks(name, data, False, networks_of)
        for name, data in _records(message.get("instances")).items()
    }
    if not isinstance(message.get("instances"), Mapping):
        completed["instances"] = message.get("instances")
    asked = message.get("request")
    if isinstance(asked, Mapping) and asked.get("type") == "allocate":
        completed["request"] = _with_networks(str(asked.get("name", "")), asked, True, networks_of)
    elif isinstance(asked, Mapping) and asked.get("type") == "multi-allocate":
        several = asked.get("instances")
        if isinstance(several, list) and all(isinstance(each, Mapping) for each in several):
            placed = [
                _with_networks(str(each.get("name", "")), each, True, networks_of)
                for each in several
            ]
            completed["request"] = {**asked, "instances": placed}
    groups = message.get("nodegroups")
    if isinstance(groups, Mapping):
        completed["nodegroups"] = {
            uuid: _with_more_networks(uuid, data, networks) for uuid, data in groups.items()
        }
    return completed


def _with_networks(
    name: str,
    data: Mapping[str, Any],
    new: bool,
    networks_of: Mapping[tuple[str, int, bool], str],
) -> dict[str, Any]:
    nics = data.get("nics")
    if not isinstance(nics, list):
        return dict(data)
    filled = []
    for number, nic in enumerate(nics):
        uuid = networks_of.get((name, number, new))
        filled.append({**nic, "network": uuid} if uuid and isinstance(nic, Mapping) else nic)
    return {**data, "nics": filled}


def _with_more_networks(uuid: str, data: Any, networks: Sequence[Network]) -> Any:
    if not isinstance(data, Mapping) or not isinstance(data.get("networks"), list):
        return data
    named = {str(data.get("name")), uuid}
    more = [
        each.uuid
        for each in networks
        if named & set(each.groups) and each.uuid not in data["networks"]
    ]
    return {**data, "networks": [*data["networks"], *more]}


def _reached(
    message: Mapping[str, Any], report: NetworkReport, names: Mapping[str, str]
) -> dict[str, list[str]]:
    """Return for each new instance the groups that have all its networks; note where none has."""
    reached: dict[str, list[str]] = {}
    groups = _records(message.get("nodegroups"))
    for data in _new_instances(message):
        name = str(data.get("name", ""))
        wanted = {each.network for each in _interfaces_of(name, data, True)} - {""}
        reached[name] = [
            str(group.get("name", uuid))
            for uuid, group in groups.items()
            if wanted <= {str(each) for each in group.get("networks") or ()}
        ]
        if not reached[name]:
            shown = ", ".join(sorted(names.get(uuid, uuid) for uuid in wanted))
            report.problems.append(f"{name}: no node group has all its networks ({shown})")
    return reached
