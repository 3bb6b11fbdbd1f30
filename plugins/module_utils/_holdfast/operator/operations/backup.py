# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wanted configuration kept in a file, and declared again from it.

A backup has everything, so it is a file for its owner alone; what is in it is shown in no
result, diff or log but as an export shows it.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ...cluster.model.desired import Wanted, wanted_document, wanted_from_document
from ...cluster.model.policy import Policy
from ...errors import HoldfastError, InputError, StorageError
from ...names import absolute_path
from ...node.configuration import NodeConfiguration, load
from ...result import Result
from ...storage.whole_file import write_text
from .change import change_wanted
from .export import ALONE, differences, exported, read_configuration

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
