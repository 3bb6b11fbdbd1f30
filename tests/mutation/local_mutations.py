# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes in what an LRM acts on and reports, and in what of a record is kept on storage."""

from __future__ import annotations

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm import pausing, step
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm import (
    commands,
    results,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model import (
    report,
    state_codec,
    versions,
)
from ansible_collections.holdfast.ha.tests.mutation.making import Mutation, edited
from ansible_collections.holdfast.ha.tests.simulation import random_scenario

MIXED = random_scenario.MIXED
LEFT = random_scenario.LEFT
OPERATORS = random_scenario.OPERATORS
STALE = random_scenario.STALE

_EDITS = (
    # Floors.
    (
        "raise-no-floor-of-commands",
        commands,
        "_raise_floors",
        "        commands=state.commands,\n",
        "",
        STALE,
    ),
    (
        "raise-no-floor-of-the-epoch",
        commands,
        "_raise_floors",
        "        epoch=state.epoch,\n",
        "",
        STALE,
    ),
    (
        "raise-no-floor-of-the-generation",
        commands,
        "_raise_floors",
        "        generation=state.generation,\n",
        "",
        STALE,
    ),
    (
        "follow-fewer-commands",
        versions,
        "why_not_followed",
        "    if below is None:",
        '    if below is None or below[0] == "command":',
        STALE,
    ),
    # What is reported.
    (
        "forget-which-commands-were-begun",
        commands,
        "prune",
        "accepted = {uid: one for uid, one in report.accepted.items() if uid in current}",
        "accepted = {}",
        MIXED,
    ),
    (
        "clean-up-and-report-it-running",
        results,
        "_end_stop",
        "_set_stopped(round_, local, LocalState.FAILED, end.job.reason)",
        "_set_running(round_, local)",
        MIXED,
    ),
    # What the manager notes.
    (
        "disarm-with-moves-under-way",
        pausing,
        "update_disarm",
        " and not _has_transitions(round_)",
        "",
        OPERATORS,
    ),
    (
        "record-no-version-of-the-configuration",
        step,
        "step",
        "    _note_configuration(round_)\n",
        "",
        OPERATORS,
    ),
    # What is kept on storage.
    (
        "drop-pending-fences-from-the-record",
        state_codec,
        "row_of",
        "row.update(_proof_row(status), **_pending_row(status))",
        "row.update(_proof_row(status))",
        MIXED,
    ),
    (
        "drop-unmanaged-services-from-the-record",
        state_codec,
        "state_from_document",
        "    return ClusterState(**values)",
        '    return ClusterState(**{**values, "ignored": ()})',
        LEFT,
    ),
    (
        "drop-the-state-under-a-freeze-from-the-record",
        state_codec,
        "row_of",
        'row["state"] = row.pop("before", status.state.value)',
        'row.pop("before", None)',
        OPERATORS,
    ),
    (
        "drop-what-was-left-from-the-report",
        report,
        "report_from_document",
        "    return Report(**_REPORT.read(document))",
        '    return Report(**{**_REPORT.read(document), "left": ()})',
        LEFT,
    ),
    (
        "drop-the-generation-from-the-report",
        report,
        "report_document",
        "**values_by_name(report),",
        '**{key: one for key, one in values_by_name(report).items() if key != "generation"},',
        STALE,
    ),
    (
        "drop-what-was-begun-from-the-report",
        report,
        "report_document",
        '"accepted": dict(report.accepted),',
        '"accepted": {},',
        MIXED,
    ),
    (
        "drop-the-floor-of-commands-from-the-report",
        report,
        "report_document",
        "**values_by_name(report),",
        '**{key: one for key, one in values_by_name(report).items() if key != "commands"},',
        STALE,
    ),
)


LOCAL_MUTATIONS = tuple(
    Mutation(name, edited(home, function, old, new), drawing)
    for name, home, function, old, new, drawing in _EDITS
)
"""Each is an edit of the shipped code that the simulator plays."""
