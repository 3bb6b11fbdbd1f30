# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Declaring resources and attributes of a node, for the module ``node_properties``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ... import names
from ...cluster.model.desired import DesiredState
from ...cluster.model.resources import (
    PROPERTY_KEYS,
    NodeProperties,
    properties_document,
    properties_from_options,
)
from ...node.configuration import NodeConfiguration
from ...node.configuration_file import load
from ...result import Result
from .change import change_and_wait


def declare_properties(options: Mapping[str, Any], check: bool) -> Result:
    """Declare or remove the properties of a node; the operation of ``node_properties``.

    With ``wait`` the manager has taken them up at the end.
    """
    configuration = load(Path(options["config"]))
    name = names.node_name(options["name"], "name")

    def plan(desired: DesiredState) -> DesiredState:
        return with_properties_of(desired, options, configuration)

    change, _state = change_and_wait(configuration, options, plan, check, lambda _state: "")
    before, after = _document(change.before, name), _document(change.after, name)
    return Result(change.changed, {"node": after, "version": change.after.version}, before, after)


def with_properties_of(
    desired: DesiredState, options: Mapping[str, Any], configuration: NodeConfiguration
) -> DesiredState:
    """Return *desired* with the properties of one node as its options say."""
    name = names.node_name(options["name"], "name")
    if options["state"] == "absent":
        # Also those of a node that was removed.
        return desired.without_properties(name)
    configuration.require_member(name, "name")
    return desired.with_properties(merged_properties(desired, options))


def merged_properties(desired: DesiredState, options: Mapping[str, Any]) -> NodeProperties:
    """Return the given options of a node, the others as they are declared."""
    present = desired.properties.get(options["name"], NodeProperties(options["name"]))
    given = {key: options[key] for key in PROPERTY_KEYS if options.get(key) is not None}
    return properties_from_options({**properties_document(present), **given})


def _document(desired: DesiredState, name: str) -> dict[str, Any] | None:
    properties = desired.properties.get(name)
    return properties_document(properties) if properties is not None else None
