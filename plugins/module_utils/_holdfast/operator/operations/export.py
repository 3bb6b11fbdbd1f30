# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Export, backup and restore of the desired configuration, and the differences between two.

An export has each service, rule, node and the policy as the options of the modules ``service``,
``rule``, ``node_properties`` and ``cluster_policy``, without the values of secrets.  A backup has
everything, so its file is for its owner only; results, diffs and logs show it as an export.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import MISSING, asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from ...cluster.model.desired import DesiredState
from ...cluster.model.desired_codec import desired_document, desired_from_document
from ...cluster.model.policy import Policy, policy_document
from ...cluster.model.resources import PROPERTY_KEYS, properties_document
from ...cluster.model.rules import rule_document
from ...cluster.model.service import Service, service_document
from ...cluster.model.state import ClusterState
from ...documents import read_document_file
from ...errors import DocumentError, FormatError, HoldfastError, InputError, StorageError
from ...names import absolute_path
from ...node.cluster_storage import ClusterStorage
from ...node.configuration import NodeConfiguration
from ...node.configuration_file import load
from ...result import Result
from ...secrets import HIDDEN, without_secrets
from ...storage.whole_file import write_text
from .change import change_desired

ABSENT = "absent"

KINDS = {"services": "service", "rules": "rule", "node_properties": "node"}
"""What is declared by name, with its singular."""

POLICY = "policy"
"""What is declared once; its options can differ."""

NOWHERE = "declared nowhere in the cluster"
ALONE = "only in the cluster"

_DEFAULTS: dict[str, Any] = {
    **{
        item.name: list(item.default) if isinstance(item.default, tuple) else item.default
        for item in fields(Service)
        if item.default is not MISSING
    },
    "utilization": {},
    "strict": False,
    **{key: {} for key in PROPERTY_KEYS},
}
"""The values of options that an export leaves out."""


@dataclass(frozen=True)
class Drift:
    """One difference: *kind* (``service``, ``rule``, ``node``, ``policy``), *name*, and how.

    For the policy *name* is the option.
    """

    kind: str
    name: str
    how: str


def exported(desired: DesiredState) -> dict[str, Any]:
    """Return services, rules, nodes and the policy as options of their modules, without secrets.

    All but the policy are sorted by name; the policy has each of its options.
    """
    services = [_as_options(one) for _key, one in sorted(desired.services.items())]
    rules = sorted((rule_document(one) for one in desired.rules()), key=lambda row: row["name"])
    return {
        "services": _without_secrets(services),
        "rules": _without_secrets(rules),
        "node_properties": [
            properties_document(one) for _name, one in sorted(desired.properties.items())
        ],
        POLICY: policy_document(desired.policy),
    }


def _as_options(service: Service) -> dict[str, Any]:
    """Return a service as the options of its module: the digests of secrets are computed again."""
    document = service_document(service)
    for row in document["resources"]:
        row.pop("sources", None)
    return document


def differences(before: DesiredState, after: DesiredState) -> list[Drift]:
    """Return where services, rules, nodes and policy *before* a change differ from those *after*.

    Options at their default are compared too.  For another secret the result names no value.
    """
    found = _compared(exported(after), exported(before))
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


def read_configuration(configuration: NodeConfiguration) -> DesiredState:
    """Return the desired configuration without the maintenances that the manager has ended.

    While the manager's record is damaged it has all of them.
    """
    with closing(ClusterStorage(configuration)) as storage:
        desired = storage.read_desired()[0]
        try:
            state = storage.read_manager() or ClusterState()
        except FormatError:
            state = ClusterState()
        return desired.in_force(state.ended)


def _compared(declared: Mapping[str, Any], live: Mapping[str, Any]) -> list[Drift]:
    """Return where the exports *live* and *declared* differ; hidden secrets are equal."""
    found: list[Drift] = []
    for kind, word in KINDS.items():
        desired = {row["name"]: row for row in declared[kind]}
        present = {row["name"]: row for row in live[kind]}
        for name, row in desired.items():
            if name not in present:
                found.append(Drift(word, name, NOWHERE))
                continue
            for option in {**row, **present[name]}:
                default = _DEFAULTS.get(option)
                value, is_now = row.get(option, default), present[name].get(option, default)
                if not _equal(value, is_now):
                    found.append(Drift(word, name, f"{option}: {is_now!r} instead of {value!r}"))
        found.extend(Drift(word, name, ALONE) for name in present if name not in desired)
    return found


def _equal(declared: Any, live: Any) -> bool:
    """Return whether two values are the same; a hidden one equals any."""
    if live == HIDDEN:
        return True
    if isinstance(declared, Mapping) and isinstance(live, Mapping):
        keys = {*declared, *live}
        return all(_equal(declared.get(key), live.get(key)) for key in sorted(keys))
    if isinstance(declared, (list, tuple)) and isinstance(live, (list, tuple)):
        return len(declared) == len(live) and all(map(_equal, declared, live))
    return bool(declared == live)


def _without_secrets(rows: list[Any]) -> list[Any]:
    shown = without_secrets(rows)
    return shown if isinstance(shown, list) else []


FORMAT = "holdfast wanted configuration"
VERSION = 1
REMOVED = "removed, as the backup does not have it"
_MODE = 0o600


def back_up(options: Mapping[str, Any], check: bool) -> Result:
    """Write the configuration into a file; the operation of the module ``configuration_backup``."""
    configuration = load(Path(options["config"]))
    path = absolute_path(options["path"], "path")
    desired = read_configuration(configuration)
    document = backup_document(configuration, desired)
    counts = {"services": len(desired.services), "rules": len(desired.rules())}
    present = None
    with suppress(HoldfastError):
        present = _document(path)
    changed = _without_version(present) != _without_version(document)
    if changed and not check:
        write_text(path, json.dumps(document, indent=2, sort_keys=True) + "\n", _MODE)
    return Result(
        changed,
        {"path": str(path), "version": desired.version, **counts},
        _backup_content(present),
        _backup_content(document),
    )


def restore(options: Mapping[str, Any], check: bool) -> Result:
    """Declare the content of a backup; the operation of the module ``configuration_restore``.

    What the backup does not have stays, unless ``exact`` is set.
    """
    configuration = load(Path(options["config"]))
    path = absolute_path(options["path"], "path")
    kept = read_backup(path, configuration)

    def plan(desired: DesiredState) -> DesiredState:
        return restored(desired, kept, exact=options["exact"])

    change = change_desired(configuration, plan, check=check)
    before, after = exported(change.before), exported(change.after)
    told = [
        asdict(replace(one, how=REMOVED) if one.how == ALONE else one)
        for one in differences(change.before, change.after)
    ]
    return Result(
        change.changed, {"version": change.after.version, "differences": told}, before, after
    )


def backup_document(configuration: NodeConfiguration, desired: DesiredState) -> dict[str, Any]:
    """Return a backup as plain data."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "cluster": configuration.cluster,
        "wanted": desired_document(replace(desired, requests={})),
    }


def read_backup(path: Path, configuration: NodeConfiguration) -> DesiredState:
    """Return the configuration in a backup.

    Raises ``InputError`` when the file is no backup, is of another cluster, or is writable for
    other users.
    """
    document = _document(path)
    if document.get("format") != FORMAT or document.get("version") != VERSION:
        raise InputError("path", str(path), f"a backup of version {VERSION} of this format")
    if document.get("cluster") != configuration.cluster:
        of = document.get("cluster")
        raise InputError(
            "path", str(path), f"a backup of cluster {configuration.cluster!r}, not {of!r}"
        )
    try:
        return desired_from_document(document.get("wanted"))
    except DocumentError as error:
        raise InputError("path", str(path), f"a whole backup ({str(error).rstrip('.')})") from error


def restored(desired: DesiredState, kept: DesiredState, *, exact: bool) -> DesiredState:
    """Return *desired* with the content of *kept*; with *exact* without anything else.

    Maintenance, requests and disarming stay as they are.  Rules are checked as when they are
    declared.
    """
    result = desired
    for rule in desired.rules():
        if exact or any(rule.name == other.name for other in kept.rules()):
            result = result.without_rule(rule.name)
    for service_id in desired.services:
        if exact and service_id not in kept.services:
            result = result.without_service(service_id)
    result = result.with_services(kept.services.values())
    for one in kept.rules():
        result = result.with_rule(one)
    properties = {**({} if exact else result.properties), **kept.properties}
    result = replace(result, properties=properties)
    if exact or kept.policy != Policy():
        result = replace(result, policy=kept.policy)
    return result


def _document(path: Path) -> dict[str, Any]:
    try:
        found = path.stat()
    except OSError as error:
        raise StorageError(f"The backup {path} cannot be read: {error.strerror}.") from error
    if stat.S_IMODE(found.st_mode) & 0o022 or found.st_uid not in (0, os.geteuid()):
        raise InputError("path", str(path), "a file that nobody else can write")
    try:
        document = read_document_file(path, "it", unique=True)
    except OSError as error:
        raise StorageError(f"The backup {path} cannot be read: {error.strerror}.") from error
    except DocumentError as error:
        text = f"a backup, which is JSON ({str(error).rstrip('.')})"
        raise InputError("path", str(path), text) from error
    return document if isinstance(document, dict) else {}


def _without_version(document: dict[str, Any] | None) -> Any:
    if document is None:
        return None
    desired = document.get("wanted")
    return {**document, "wanted": {**(desired if isinstance(desired, dict) else {}), "version": 0}}


def _backup_content(document: dict[str, Any] | None) -> object:
    """Return the content of a backup without secrets."""
    if document is None:
        return None
    try:
        return exported(desired_from_document(document.get("wanted")))
    except HoldfastError:
        return "not a backup of this format"
