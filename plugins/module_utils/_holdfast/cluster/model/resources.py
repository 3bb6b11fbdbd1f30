# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is declared of nodes: capacities of named resources, and attributes such as a location.

Names and units are the operator's: a number of GPUs or licences, Mbit/s, GiB of a local disk.  Only
``cpus`` and ``memory`` (MiB) have a meaning of their own, because nodes report them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ... import names
from ...errors import InputError
from ...placement.resources import CPUS, MEMORY, REPORTED

if TYPE_CHECKING:
    from .service import Service

MOST_NAMES = 32
"""The number of resources, and of attributes, that a node or a service may have."""

MOST = 10**12
"""The largest amount of a resource."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,62}")
_NAME_TEXT = (
    "a name of letters, digits, '_', '.' and '-' that starts with a letter and is at most 63"
    " characters long"
)

_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}")
_VALUE_TEXT = (
    "a value of letters, digits, '_', '.', ':' and '-' that starts with a letter or digit and is at"
    " most 64 characters long"
)


@dataclass(frozen=True)
class NodeProperties:
    """The declared capacities, safety capacities and attributes of one node."""

    name: str
    capacity: Mapping[str, int] = field(default_factory=dict)
    safety_capacity: Mapping[str, int] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)


def properties_from_options(options: object) -> NodeProperties:
    """Return the checked properties of a document or of module options.

    Raises ``InputError`` naming the wrong option.
    """
    if not isinstance(options, Mapping):
        raise InputError("nodes", options, "a dictionary with name and capacity or attributes")
    capacity = amounts(options.get("capacity"), "capacity")
    safety = amounts(options.get("safety_capacity"), "safety_capacity")
    for name, amount in safety.items():
        if name not in capacity:
            raise InputError("safety_capacity", name, "a resource that capacity has too")
        if amount > capacity[name]:
            expected = f"at most the capacity, which is {capacity[name]}"
            raise InputError(f"safety_capacity.{name}", amount, expected)
    return NodeProperties(
        name=names.node_name(options.get("name"), "name"),
        capacity=capacity,
        safety_capacity=safety,
        attributes=_attributes(options.get("attributes")),
    )


def properties_document(properties: NodeProperties) -> dict[str, Any]:
    """Return the properties of a node as plain data; what is empty is left out."""
    rows = {key: dict(getattr(properties, key)) for key in PROPERTY_KEYS}
    return {"name": properties.name, **{key: row for key, row in rows.items() if row}}


PROPERTY_KEYS = ("capacity", "safety_capacity", "attributes")
"""The options of a node; one that is not given stays as it is declared."""


def utilization_from_options(value: object) -> dict[str, int]:
    """Return what a service takes of named resources, checked."""
    found = amounts(value, "utilization")
    for name in REPORTED:
        if name in found:
            raise InputError("utilization", name, f"the option {name} of the service for that")
    return {name: amount for name, amount in found.items() if amount}


def needs_of(service: Service) -> dict[str, float]:
    """Return what a service takes of each resource of its node, CPUs and memory included."""
    measured = {CPUS: service.cpus, MEMORY: service.memory}
    return {**{key: value for key, value in measured.items() if value}, **service.utilization}


def amounts(value: object, option: str) -> dict[str, int]:
    """Return a whole amount for each resource name, checked.

    Ansible may pass a number as text.
    """
    found: dict[str, int] = {}
    for name, amount in _rows(value, option, "amounts").items():
        number = int(amount) if isinstance(amount, str) and _is_whole(amount) else amount
        found[name] = names.whole_number(number, f"{option}.{name}", 0, MOST)
    return found


def attribute_name(value: object, option: str = "attribute") -> str:
    """Return *value* as the name of a node attribute."""
    if isinstance(value, str) and _NAME.fullmatch(value):
        return value
    raise InputError(option, value, _NAME_TEXT)


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= len(str(MOST))


def _attributes(value: object) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, text in _rows(value, "attributes", "values").items():
        word = str(text) if isinstance(text, int) and not isinstance(text, bool) else text
        if not isinstance(word, str) or not _VALUE.fullmatch(word):
            raise InputError(f"attributes.{name}", text, _VALUE_TEXT)
        found[name] = word
    return found


def _rows(value: object, option: str, what: str) -> dict[str, Any]:
    """Return *value* as a dictionary by resource or attribute name, sorted."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputError(option, value, f"a dictionary of names with their {what}")
    if len(value) > MOST_NAMES:
        raise InputError(option, len(value), f"at most {MOST_NAMES} names")
    for name in value:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InputError(option, name, _NAME_TEXT)
    return {name: value[name] for name in sorted(value)}
