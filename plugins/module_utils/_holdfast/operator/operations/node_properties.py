# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Declaring resources and attributes of a node, for the module ``node_properties``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ... import names
from ...cluster.model.desired import Wanted
from ...cluster.model.resources import (
    PROPERTY_KEYS,
    NodeProperties,
    properties_document,
    properties_from_options,
)
from ...node.configuration import NodeConfiguration, load
from ...result import Result
from .change import change_and_wait


def declare_properties(options: Mapping[str, Any], check: bool) -> Result:
    """Declare or remove the properties of a node; the operation of ``node_properties``.

    With ``wait`` the manager has taken them up at the end.
    """
    configuration = load(Path(options["config"]))
    name = names.node_name(options["name"], "name")

    def plan(wanted: Wanted) -> Wanted:
        return with_properties_of(wanted, options, configuration)

    change, _state = change_and_wait(configuration, options, plan, check, lambda _state: "")
    before, after = _document(change.before, name), _document(change.after, name)
    return Result(change.changed, {"node": after, "version": change.after.version}, before, after)


def with_properties_of(
    wanted: Wanted, options: Mapping[str, Any], configuration: NodeConfiguration
) -> Wanted:
    """Return *wanted* with the properties of one node as its options say."""
    name = names.node_name(options["name"], "name")
    if options["state"] == "absent":
        # Also those of a node that was removed.
        return wanted.without_properties(name)
    configuration.require_member(name, "name")
    return wanted.with_properties(merged_properties(wanted, options))


def merged_properties(wanted: Wanted, options: Mapping[str, Any]) -> NodeProperties:
    """Return the given options of a node, the others as they are declared."""
    present = wanted.properties.get(options["name"], NodeProperties(options["name"]))
    given = {key: options[key] for key in PROPERTY_KEYS if options.get(key) is not None}
    return properties_from_options({**properties_document(present), **given})


def _document(wanted: Wanted, name: str) -> dict[str, Any] | None:
    properties = wanted.properties.get(name)
    return properties_document(properties) if properties is not None else None
