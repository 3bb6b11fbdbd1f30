# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster's membership: its nodes, their addresses, and their fence settings.

The manager records the membership that it manages with.  Each node computes its own from its
configuration.  Memberships are the same if their digests are equal.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ... import names
from ...documents import check_keys, fields_of, items, mapping_of, text, whole, wrong
from .maintenance import Maintenance, maintenance_document, maintenance_from_document

NAMES_SHOWN = 5
"""The number of node names in a text about two memberships."""

REMEDY = (
    "run the playbook deploy for all nodes; if that is not possible, 'holdfast membership' shows"
    " what is missing"
)
"""What an operator does about a node with another membership."""


@dataclass(frozen=True)
class Place:
    """A member's host id, and the address and first port of its daemons."""

    host_id: int
    address: str = ""
    port: int = 0


@dataclass(frozen=True)
class Membership:
    """A membership; *version* is 0 if no manager has recorded it.

    *fence* is the digest of the members' fence settings, empty without any.
    """

    version: int
    digest: str
    members: Mapping[str, Place] = field(default_factory=dict)
    fence: str = ""

    def host_ids(self) -> dict[int, str]:
        """Return the name of the member that has each host id."""
        return {place.host_id: name for name, place in self.members.items()}


@dataclass(frozen=True)
class Acceptance:
    """An operator's request to adopt the membership *digest* after version *after*.

    It applies to no other version, so it cannot bring an earlier membership back.
    """

    digest: str
    after: int
    by: Maintenance = field(default_factory=Maintenance)


def make_membership(members: Mapping[str, Place], fence: str) -> Membership:
    """Return the membership of these *members* with these *fence* settings; version 0."""
    ordered = {name: members[name] for name in sorted(members)}
    content = {"members": {name: asdict(one) for name, one in ordered.items()}, "fence": fence}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return Membership(0, hashlib.sha256(text.encode()).hexdigest()[:32], ordered, fence)


def differences(own: Membership, recorded: Membership) -> str:
    """Return how *own* differs from the *recorded* membership, in words; empty if it does not."""
    if own.digest == recorded.digest:
        return ""
    here, there = own.members, recorded.members
    common = sorted(here.keys() & there.keys())
    texts = [
        _listed("it lacks", sorted(there.keys() - here.keys())),
        _listed("it has", sorted(here.keys() - there.keys())),
        _listed("other host id of", [one for one in common if _moved(here[one], there[one])]),
        _listed("other address of", [one for one in common if _elsewhere(here[one], there[one])]),
        "other fence settings" if own.fence != recorded.fence else "",
    ]
    return "; ".join(text for text in texts if text) or "it was computed by another version"


def with_version(membership: Membership, version: int) -> Membership:
    """Return the membership as recorded with *version*."""
    return replace(membership, version=version)


def membership_document(membership: Membership) -> dict[str, Any]:
    """Return a membership as plain data for its record."""
    return {
        "version": membership.version,
        "digest": membership.digest,
        "members": {
            name: [place.host_id, place.address, place.port]
            for name, place in sorted(membership.members.items())
        },
        "fence": membership.fence,
    }


def membership_from_document(value: object) -> Membership:
    """Read back what ``membership_document`` made; unknown fields are ignored.

    Raises ``DocumentError`` if it is wrong.
    """
    values = _MEMBERSHIP.read(value)
    check_keys(values.get("members", ()), names.NODE_NAME, "a node name")
    return Membership(**values)


def _place(value: object) -> Place:
    found = items(value)
    if len(found) < 3:
        raise wrong(value, "a list of host id, address and port")
    return Place(whole(found[0]), text(found[1]), whole(found[2]))


_MEMBERSHIP = fields_of(Membership, members=mapping_of(_place))


def acceptance_document(acceptance: Acceptance) -> dict[str, Any]:
    """Return an acceptance as plain data for its record."""
    by = maintenance_document(acceptance.by)
    return {"digest": acceptance.digest, "after": acceptance.after, "by": by}


def acceptance_from_document(value: object) -> Acceptance:
    """Read back what ``acceptance_document`` made; raises ``DocumentError`` if it is wrong."""
    return Acceptance(**_ACCEPTANCE.read(value))


_ACCEPTANCE = fields_of(Acceptance, by=maintenance_from_document)


def _moved(one: Place, other: Place) -> bool:
    return one.host_id != other.host_id


def _elsewhere(one: Place, other: Place) -> bool:
    return (one.address, one.port) != (other.address, other.port)


def _listed(what: str, names: list[str]) -> str:
    """Return *what* with the first few *names*; empty if there are none."""
    if not names:
        return ""
    more = len(names) - NAMES_SHOWN
    rest = f" and {more} more" if more > 0 else ""
    return f"{what} {', '.join(names[:NAMES_SHOWN])}{rest}"
