# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of metrics, read back by Prometheus' own parser."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.exposition import (  # noqa: E501
    Kind,
    Metric,
    Sample,
    render_metrics,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.text import printable
from hypothesis import given
from hypothesis import strategies as st

parser = pytest.importorskip(
    "prometheus_client.parser", reason="prometheus_client is not installed"
)

AGE = Metric("age_seconds", Kind.GAUGE, "How old.")
TOOK = Metric("took_seconds", Kind.SUMMARY, "How long \\ it took.\nReally.")


def read(text):
    return {family.name: family for family in parser.text_string_to_metric_families(text)}


@given(
    labels=st.dictionaries(
        st.from_regex("[a-z][a-z_]{0,8}", fullmatch=True), st.text(max_size=20), max_size=3
    ),
    value=st.floats(allow_nan=False, allow_infinity=False),
)
def test_any_label_is_read_back_without_control_characters_and_any_number_as_it_was(labels, value):
    text = render_metrics("t_", [AGE], [Sample(AGE, value, labels)], {})
    (sample,) = read(text)["t_age_seconds"].samples
    assert sample.labels == {name: printable(one) for name, one in labels.items()}
    assert sample.value == value


def test_a_summary_has_its_sum_and_count_under_one_head():
    rows = [Sample(TOOK, 1.5, {"kind": "a"}, "_sum"), Sample(TOOK, 3, {"kind": "a"}, "_count")]
    text = render_metrics("t_", [AGE, TOOK], rows, {"cluster": "c"})
    family = read(text)["t_took_seconds"]
    assert family.type == "summary"
    assert family.documentation == "How long \\ it took.\nReally."
    assert {(one.name, one.value, one.labels["cluster"]) for one in family.samples} == {
        ("t_took_seconds_sum", 1.5, "c"),
        ("t_took_seconds_count", 3.0, "c"),
    }
    assert "age" not in text


def test_nothing_is_nothing():
    assert render_metrics("t_", [AGE], [], {}) == ""
