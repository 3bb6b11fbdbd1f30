# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The desired configuration as plain data for its record, and back as checked values."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from ... import names
from ...documents import check_keys, fields_of, list_of, mapping_of, optional
from ...errors import InputError
from .author import author_document, author_from_document
from .desired import CLEAR, DISARM_MODES, MOVE, STOP, DesiredState, Request
from .maintenance import maintenance_document, maintenance_from_document
from .membership import acceptance_document, acceptance_from_document
from .policy import Policy, policy_document, policy_from_document
from .resources import properties_document, properties_from_options
from .rules import (
    location_rule_from_options,
    node_rule_from_options,
    rule_document,
    service_rule_from_options,
)
from .service import service_document, service_from_options


def desired_document(desired: DesiredState) -> dict[str, Any]:
    """Return the whole configuration as plain data for its record."""
    document: dict[str, Any] = {
        "version": desired.version,
        "services": [service_document(desired.services[key]) for key in sorted(desired.services)],
        "node_rules": [
            rule_document(desired.node_rules[key]) for key in sorted(desired.node_rules)
        ],
        "service_rules": [
            rule_document(desired.service_rules[key]) for key in sorted(desired.service_rules)
        ],
        "maintenance": {
            node: maintenance_document(one) for node, one in sorted(desired.maintenance.items())
        },
    }
    if desired.global_maintenance is not None:
        document["global_maintenance"] = maintenance_document(desired.global_maintenance)
    if desired.requests:
        document["requests"] = {
            key: request_document(one) for key, one in sorted(desired.requests.items())
        }
    if desired.policy != Policy():
        document["policy"] = policy_document(desired.policy)
    if desired.disarm:
        document["disarm"] = desired.disarm
    if desired.disarmed_by is not None:
        document["disarmed_by"] = maintenance_document(desired.disarmed_by)
    if desired.generation:
        document["generation"] = desired.generation
    if desired.repaired_by is not None:
        document["repaired_by"] = maintenance_document(desired.repaired_by)
    if desired.membership is not None:
        document["membership"] = acceptance_document(desired.membership)
    if desired.location_rules:
        document["location_rules"] = [
            rule_document(rule) for _name, rule in sorted(desired.location_rules.items())
        ]
    if desired.properties:
        document["properties"] = [
            properties_document(one) for _name, one in sorted(desired.properties.items())
        ]
    if desired.pins:
        document["pins"] = dict(sorted(desired.pins.items()))
    if desired.changed_by is not None:
        document["changed_by"] = author_document(desired.changed_by)
    return document


def desired_from_document(document: object) -> DesiredState:
    """Return the configuration of a document.

    Raises ``DocumentError`` or ``InputError`` if it is wrong.
    """
    values = _WANTED.read(document)
    values["services"] = {one.id: one for one in values.get("services", ())}
    for rules in ("node_rules", "service_rules", "location_rules", "properties"):
        values[rules] = {one.name: one for one in values.get(rules, ())}
    check_keys(values.get("maintenance", ()), names.NODE_NAME, "a node name")
    if values.get("disarm", "") not in ("", *DISARM_MODES):
        raise InputError("disarm", values["disarm"], f"one of {', '.join(DISARM_MODES)}, or empty")
    return DesiredState(**values)


def request_document(request: Request) -> dict[str, Any]:
    """Return a request as plain data."""
    return asdict(request)


def request_from_document(value: object) -> Request:
    """Return the request of a document.

    Raises ``DocumentError`` or ``InputError`` if it is wrong.
    """
    values = {"made": 0.0, **_REQUEST.read(value)}
    kind = values["kind"]
    if kind not in (MOVE, STOP, CLEAR):
        raise InputError("kind", kind, "'move', 'stop' or 'clear'")
    values["node"] = names.node_name(values.get("node"), "node") if kind == MOVE else ""
    return Request(**values)


_REQUEST = replace(fields_of(Request), required=frozenset({"kind"}))

_WANTED = fields_of(
    DesiredState,
    services=list_of(service_from_options),
    node_rules=list_of(node_rule_from_options),
    service_rules=list_of(service_rule_from_options),
    location_rules=list_of(location_rule_from_options),
    properties=list_of(properties_from_options),
    maintenance=mapping_of(maintenance_from_document),
    global_maintenance=optional(maintenance_from_document),
    requests=mapping_of(request_from_document),
    policy=policy_from_document,
    disarmed_by=optional(maintenance_from_document),
    repaired_by=optional(maintenance_from_document),
    membership=optional(acceptance_from_document),
    changed_by=optional(author_from_document),
    pins=mapping_of(names.node_name),
)
