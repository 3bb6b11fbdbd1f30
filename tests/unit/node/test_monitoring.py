# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports of monitoring daemons that are kept in a file: which count, and what is said."""

from __future__ import annotations

import json

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import ClusterDataError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.htools.mond import (  # noqa: E501
    instance_loads,
    processor_loads,
    read_kept,
)

LOAD = {"cpu_number": 4, "cpus": [0.5, 1], "cpu_total": 1.5}
REPORT = {
    "name": "cpu-avg-load",
    "version": "B",
    "format_version": 1,
    "timestamp": 1,
    "category": None,
    "kind": 0,
    "data": LOAD,
}


def kept(report):
    return read_kept(json.dumps([{"node": "a", "reports": [report]}]))


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"name": 1}, "Can't parse value for 'name': Unable to read String"),
        (
            {"version": 3},
            "Can't parse value for 'version': Invalid JSON value 3 for type DCVersion",
        ),
        ({"format_version": "x"}, "Can't parse value for 'format_version': Unable to read Int"),
        ({"timestamp": None}, "Can't parse value for 'timestamp': Unable to read Integer"),
        ({"category": "x"}, "Invalid category name x for type DCCategory"),
        ({"kind": 2}, "Can't parse value for 'kind': Invalid JSON value 2 for type DCKind"),
        ({"more": 1}, 'Superfluous dictionary keys: ["more"], but only ["category","data",'),
    ],
)
def test_a_report_with_a_wrong_field_is_named_in_hbals_words(changes, error):
    with pytest.raises(ClusterDataError) as caught:
        kept({**REPORT, **changes})
    words = "can't parse MonD data: Parsing node's reports: key 'reports': "
    assert str(caught.value).startswith(words)
    assert error in str(caught.value)


@pytest.mark.parametrize("key", [key for key in REPORT if key != "category"])
def test_a_report_needs_all_fields_but_its_category(key):
    report = {name: value for name, value in REPORT.items() if name != key}
    with pytest.raises(ClusterDataError, match=f"key '{key}' not found, object contains only"):
        kept(report)
    assert kept({name: value for name, value in REPORT.items() if name != "category"})


@pytest.mark.parametrize(
    ("changes", "load"),
    [({}, 1.5), ({"cpu_number": 1.5}, 1.5), ({"cpu_total": -2}, -2.0), ({"cpu_total": 1e20}, 1e20)],
)
def test_the_load_of_a_node_is_what_all_its_processors_have(changes, load):
    report = {**REPORT, "data": {**LOAD, **changes}}
    assert processor_loads(["a"], pytest.fail, kept(report)) == {"a": load}


@pytest.mark.parametrize(
    "changes",
    [{"cpu_number": None}, {"cpus": ["x"]}, {"cpu_total": "1"}, {"more": 1}, {"cpu_total": 1e200}],
)
def test_a_node_that_tells_its_load_in_another_way_tells_none(changes):
    said = []
    report = {**REPORT, "data": {**LOAD, **changes}}
    assert processor_loads(["a"], said.append, kept(report)) is None
    assert said == ["Didn't receive an answer by all MonDs, cpu-avg-load's data will be ignored."]


def test_the_load_of_an_instance_may_be_negative():
    report = {**REPORT, "name": "xen-cpu-avg-load", "data": {"i": -0.5}}
    assert instance_loads(["a"], ["i"], pytest.fail, kept(report)) == {"i": -0.5}
