# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a node waits for a write that may free an earlier host lease of it."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.lease_freeing import (  # noqa: E501
    Freeing,
    awaited_writers,
    freeing,
    freeing_document,
    freeing_from_document,
    why_awaited,
)

NOT_JOINED = 0
EARLIER, PRESENT = 5, 6


def frees(generation: int, node: str = "n3") -> Freeing:
    return freeing(2, {node: generation})


@pytest.mark.parametrize(
    ("records", "generation", "ended", "awaited"),
    [
        pytest.param({}, NOT_JOINED, (), [], id="nobody frees anything"),
        pytest.param({"n1": frees(EARLIER)}, NOT_JOINED, (), ["n1"], id="before the join"),
        pytest.param({"n1": frees(EARLIER)}, PRESENT, (), ["n1"], id="after the join"),
        pytest.param({"n1": frees(PRESENT)}, PRESENT, (), [], id="its present host lease"),
        pytest.param({"n1": frees(EARLIER, "n2")}, PRESENT, (), [], id="another's host lease"),
        pytest.param({"n3": frees(EARLIER)}, PRESENT, (), [], id="no node frees its own"),
        pytest.param(
            {"n1": frees(EARLIER)}, PRESENT, [("n1", 2)], [], id="the writer's host lease ended"
        ),
        pytest.param(
            {"n1": frees(EARLIER)}, PRESENT, [("n1", 1)], ["n1"], id="an earlier one of it ended"
        ),
        pytest.param(
            {"n2": frees(EARLIER), "n1": frees(EARLIER)},
            PRESENT,
            [("n2", 2)],
            ["n1"],
            id="one of two writers is gone",
        ),
        pytest.param(
            {"n2": frees(EARLIER), "n1": frees(4)}, PRESENT, (), ["n1", "n2"], id="two writers"
        ),
    ],
)
def test_a_node_waits_for_each_write_against_another_of_its_host_leases(
    records, generation, ended, awaited
):
    found = awaited_writers("n3", generation, records, lambda *lease: lease in ended)
    assert found == awaited


def test_the_reason_names_the_writers_and_what_to_do():
    said = why_awaited("n3", ["n1", "n2"])
    assert said.startswith("n1 and n2 may still be freeing an earlier host lease of n3")
    assert "fence it or restore its storage" in said


def test_a_record_is_read_as_it_was_written():
    record = freeing(2, {"n3": 5, "n4": 1})
    assert freeing_from_document(freeing_document(record)) == record


def test_who_frees_nothing_has_the_same_record_under_each_generation():
    assert freeing(2, {}) == freeing(3, {}) == Freeing()
