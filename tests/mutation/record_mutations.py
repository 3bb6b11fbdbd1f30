# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deliberate mistakes about records that went back in time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model import versions
from ansible_collections.holdfast.ha.tests.mutation.making import (
    Mutation,
    changed,
    returns,
)
from ansible_collections.holdfast.ha.tests.simulation import random_scenario

STALE = random_scenario.STALE


def _commands_do_not_count(original: Any, state: Any, floor: Any) -> Any:
    return original(state, replace(floor, commands=0))


def _any_configuration_will_do(
    original: Any, state: Any, desired: Any, *more: Any, **options: Any
) -> Any:
    return original(state, replace(desired, generation=1 << 30), *more, **options)


def _stored_report_alone(original: Any, _number: int, stored: Any, *_kept: Any) -> Any:
    return stored


RECORD_MUTATIONS = (
    Mutation(
        "count-no-commands-as-a-manager",
        changed(versions, "_below", _commands_do_not_count),
        STALE,
    ),
    Mutation("notice-no-older-record", changed(versions, "_below", returns(None)), STALE),
    Mutation(
        "notice-no-older-configuration",
        changed(versions, "regressions", _any_configuration_will_do),
        STALE,
    ),
    Mutation(
        "ignore-the-local-copy", changed(versions, "newer_report", _stored_report_alone), STALE
    ),
)
"""Mistakes that random faults find; ``tested_mutations.py`` has those that they seldom find."""
