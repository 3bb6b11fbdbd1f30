# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wanted configuration as variables, and how it differs from variables that there are.

An export has each service and rule as the options of the modules ``service`` and ``rule``
that declare it again, but for the values of secrets, and the policy as the options of the
module ``cluster_policy``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

from ...cluster.crm.global_maintenance import in_force
from ...cluster.model.desired import Wanted
from ...cluster.model.policy import Policy, policy_document
from ...cluster.model.rules import rule_document
from ...cluster.model.service import Service, service_document
from ...cluster.model.state import ClusterState
from ...errors import FormatError
from ...node.cluster_storage import ClusterStorage
from ...node.configuration import NodeConfiguration
from ...secrets import HIDDEN, without_secrets

ABSENT = "absent"

KINDS = {"services": "service", "rules": "rule"}
"""What is declared by name, and what one of them is called."""

POLICY = "policy"
"""What is declared once; its options are what can differ in it."""

NOWHERE = "declared nowhere in the cluster"
ALONE = "only in the cluster"

_DEFAULTS: dict[str, Any] = {
    **{
        item.name: list(item.default) if isinstance(item.default, tuple) else item.default
        for item in fields(Service)
        if item.default is not MISSING
    },
    "strict": False,
}
"""What an option counts as that an export leaves out."""


@dataclass(frozen=True)
class Drift:
    """One difference: what (``service``, ``rule``, ``policy``), which, and how it differs.

    Of the policy *name* is the option.
    """

    kind: str
    name: str
    how: str


def exported(wanted: Wanted) -> dict[str, Any]:
    """Return services, rules and the policy as options of their modules, without secrets.

    Services and rules are sorted by name; the policy has each of its options.
    """
    services = [service_document(one) for _key, one in sorted(wanted.services.items())]
    rules = sorted((rule_document(one) for one in wanted.rules()), key=lambda row: row["name"])
    return {
        "services": _without_secrets(services),
        "rules": _without_secrets(rules),
        POLICY: policy_document(wanted.policy),
    }


def differences(before: Wanted, after: Wanted) -> list[Drift]:
    """Return where services, rules and policy *before* a change differ from those *after* it.

    That is everything: options at their default, too, and that a secret is another one, without
    saying which.
    """
    asked, live = exported(after), exported(before)
    for kind in KINDS:
        present = {row["name"]: row for row in live[kind]}
        for row in asked[kind]:
            for option in present.get(row["name"], {}):
                row.setdefault(option, _DEFAULTS.get(option))
    found = _compared(asked, live)
    told = {one.name for one in found if one.kind == "service"}
    for name, service in sorted(after.services.items()):
        if name not in told and service != before.services[name]:
            found.append(Drift("service", name, "resources: another secret"))
    return [*found, *policy_differences(before.policy, after.policy)]


def policy_differences(before: Policy, after: Policy) -> list[Drift]:
    """Return which options of a policy *before* a change differ from those *after* it."""
    is_now = policy_document(before)
    return [
        Drift(POLICY, option, f"{is_now[option]!r} instead of {value!r}")
        for option, value in policy_document(after).items()
        if value != is_now[option]
    ]


def read_configuration(configuration: NodeConfiguration) -> Wanted:
    """Return the wanted configuration without the maintenances that the manager has ended.

    Where the manager's record is damaged all of them stand in it: what was declared is wanted
    most just then.
    """
    storage = ClusterStorage(configuration)
    try:
        wanted = storage.read_wanted()[0]
        try:
            state = storage.read_manager() or ClusterState()
        except FormatError:
            state = ClusterState()
        return in_force(wanted, state.ended)
    finally:
        storage.close()


def _compared(asked: Mapping[str, Any], live: Mapping[str, Any]) -> list[Drift]:
    """Return where the export *live* differs from the export *asked* for.

    What a secret is cannot be compared with what is hidden, so that counts as equal.
    """
    found: list[Drift] = []
    for kind, word in KINDS.items():
        wanted = {row["name"]: row for row in asked[kind]}
        present = {row["name"]: row for row in live[kind]}
        for name, row in wanted.items():
            if name not in present:
                found.append(Drift(word, name, NOWHERE))
                continue
            for option, value in row.items():
                is_now = present[name].get(option, _DEFAULTS.get(option))
                if not _equal(value, is_now):
                    found.append(Drift(word, name, f"{option}: {is_now!r} instead of {value!r}"))
        found.extend(Drift(word, name, ALONE) for name in present if name not in wanted)
    return found


def _equal(asked: Any, live: Any) -> bool:
    """Return whether two values are the same, where a hidden one may be any."""
    if live == HIDDEN:
        return True
    if isinstance(asked, Mapping) and isinstance(live, Mapping):
        keys = {*asked, *live}
        return all(_equal(asked.get(key), live.get(key)) for key in sorted(keys))
    if isinstance(asked, (list, tuple)) and isinstance(live, (list, tuple)):
        return len(asked) == len(live) and all(map(_equal, asked, live))
    return bool(asked == live)


def _without_secrets(rows: list[Any]) -> list[Any]:
    shown = without_secrets(rows)
    return shown if isinstance(shown, list) else []
