# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wanted configuration as variables or kept in a file, and how two of them differ.

An export has each service and rule as the options of the modules ``service`` and ``rule``
that declare it again, but for the values of secrets, and the policy as the options of the
module ``cluster_policy``.  A backup has everything, so it is a file for its owner alone; what is
in it is shown in no result, diff or log but as an export shows it.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from contextlib import closing
from dataclasses import MISSING, asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from ...cluster.crm.global_maintenance import in_force
from ...cluster.model.desired import Wanted, wanted_document, wanted_from_document
from ...cluster.model.policy import Policy, policy_document
from ...cluster.model.rules import rule_document
from ...cluster.model.service import Service, service_document
from ...cluster.model.state import ClusterState
from ...errors import FormatError, HoldfastError, InputError, StorageError
from ...names import absolute_path
from ...node.cluster_storage import ClusterStorage
from ...node.configuration import NodeConfiguration, load
from ...result import Result
from ...secrets import HIDDEN, without_secrets
from ...storage.whole_file import write_text
from .change import change_wanted

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
    with closing(ClusterStorage(configuration)) as storage:
        wanted = storage.read_wanted()[0]
        try:
            state = storage.read_manager() or ClusterState()
        except FormatError:
            state = ClusterState()
        return in_force(wanted, state.ended)


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


FORMAT = "holdfast wanted configuration"
VERSION = 1
REMOVED = "removed, as the backup does not have it"
_MODE = 0o600


def back_up(options: Mapping[str, Any], check: bool) -> Result:
    """Write the configuration into a file, as the module ``configuration_backup`` was told to."""
    configuration = load(Path(options["config"]))
    path = absolute_path(options["path"], "path")
    document = backup_document(configuration, read_configuration(configuration))
    present = _present(path)
    changed = _without_version(present) != _without_version(document)
    if changed and not check:
        write_text(path, json.dumps(document, indent=2, sort_keys=True) + "\n", _MODE)
    return Result(
        changed,
        {"path": str(path), "version": document["wanted"]["version"], **_counts(document)},
        _told(present),
        _told(document),
    )


def restore(options: Mapping[str, Any], check: bool) -> Result:
    """Declare what a backup has, as the module ``configuration_restore`` was told to.

    What the backup does not have stays, unless the restore is to be exact.
    """
    configuration = load(Path(options["config"]))
    path = absolute_path(options["path"], "path")
    kept = read_backup(path, configuration)

    def plan(wanted: Wanted) -> Wanted:
        return restored(wanted, kept, exact=options["exact"])

    change = change_wanted(configuration, plan, check=check)
    before, after = exported(change.before), exported(change.after)
    told = [
        asdict(replace(one, how=REMOVED) if one.how == ALONE else one)
        for one in differences(change.before, change.after)
    ]
    return Result(
        change.changed, {"version": change.after.version, "differences": told}, before, after
    )


def backup_document(configuration: NodeConfiguration, wanted: Wanted) -> dict[str, Any]:
    """Return a backup as plain data."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "cluster": configuration.cluster,
        "wanted": wanted_document(replace(wanted, requests={})),
    }


def read_backup(path: Path, configuration: NodeConfiguration) -> Wanted:
    """Return the configuration in a backup.

    Raises ``InputError`` when the file is none, is of another cluster, or can be written by
    somebody else.
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
        return wanted_from_document(document["wanted"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError("path", str(path), f"a whole backup ({error!r})") from error


def restored(wanted: Wanted, kept: Wanted, *, exact: bool) -> Wanted:
    """Return *wanted* with what *kept* has; with *exact* without what it does not have.

    Maintenance, requests and disarming are of their moment: they stay as they are.  Rules
    are checked as when they are declared.
    """
    result = wanted
    for rule in wanted.rules():
        if exact or any(rule.name == other.name for other in kept.rules()):
            result = result.without_rule(rule.name)
    for service_id in wanted.services:
        if exact and service_id not in kept.services:
            result = result.without_service(service_id)
    result = result.with_services(kept.services.values())
    for one in kept.rules():
        result = result.with_rule(one)
    if exact or kept.policy != Policy():
        result = replace(result, policy=kept.policy)
    return result


def _document(path: Path) -> dict[str, Any]:
    try:
        found = path.stat()
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise StorageError(f"The backup {path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise InputError("path", str(path), "a backup, which is text") from error
    if stat.S_IMODE(found.st_mode) & 0o022 or found.st_uid not in (0, os.geteuid()):
        raise InputError("path", str(path), "a file that nobody else can write")
    try:
        document = json.loads(text)
    except ValueError as error:
        raise InputError("path", str(path), "a backup, which is JSON") from error
    return document if isinstance(document, dict) else {}


def _present(path: Path) -> dict[str, Any] | None:
    try:
        return _document(path)
    except HoldfastError:
        return None


def _without_version(document: dict[str, Any] | None) -> Any:
    if document is None:
        return None
    return {**document, "wanted": {**document.get("wanted", {}), "version": 0}}


def _counts(document: Mapping[str, Any]) -> dict[str, int]:
    wanted = wanted_from_document(document["wanted"])
    return {"services": len(wanted.services), "rules": len(wanted.rules())}


def _told(document: dict[str, Any] | None) -> object:
    """Return what may be shown of a backup: what is in it, without secrets."""
    if document is None:
        return None
    try:
        return exported(wanted_from_document(document["wanted"]))
    except (HoldfastError, KeyError, TypeError, ValueError, AttributeError):
        return "not a backup of this format"
