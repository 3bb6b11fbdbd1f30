# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The maintenance that the module ``metadata`` declares beside its work on the cluster's files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...node.configuration import load
from ...result import Result
from .maintenance import declare_global_maintenance, declare_maintenance

NEEDS_CONFIG = ("node", "reason", "owner", "until", "duration")
"""What the whiteboard has no place for."""


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse what would be overlooked, and a node of another cluster, before anything is done."""
    declares = options["config"] is not None and options["maintenance"] is not None
    for option in NEEDS_CONFIG:
        if options[option] is not None and not declares:
            raise InputError(option, options[option], "it only beside config and maintenance")
    if not declares:
        return
    if options["state"] != "present":
        raise InputError("maintenance", options["maintenance"], "it only with state=present")
    configuration = load(Path(options["config"]))
    if (configuration.cluster, configuration.storage) != (options["name"], Path(options["path"])):
        raise InputError(
            "config",
            options["config"],
            f"the configuration of a node of cluster {options['name']} in {options['path']}; it is"
            f" of {configuration.cluster} in {configuration.storage}",
        )


def with_maintenance(files: Result, options: Mapping[str, Any], check: bool) -> Result:
    """Declare the maintenance that *options* ask for, and return it together with *files*."""
    begin = options["maintenance"]
    more: dict[str, Any] = {"wait": False, "timeout": 0.0}
    if options["node"] is not None:
        more["state"] = "drained" if begin else "active"
        declared = declare_maintenance({**options, **more}, check)
    else:
        more["state"] = "present" if begin else "absent"
        declared = declare_global_maintenance({**options, **more}, check)
    before, after = files.before, files.after
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        before = {**before, "declared": declared.before}
        after = {**after, "declared": declared.after}
    return replace(
        files,
        changed=files.changed or declared.changed,
        values={**files.values, "declared": declared.values["maintenance"]},
        before=before,
        after=after,
    )
