# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Models and assignments are read as the challenge defines them, and wrong ones are refused."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import ClusterDataError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.reassignment import (
    formats,
)
from ansible_collections.holdfast.ha.tests.unit.placement.reassignment.test_checker import MODEL


def model_of(text):
    return formats.read_model("model", text.splitlines())


def test_every_number_of_a_model_has_its_meaning():
    model = model_of(MODEL)
    assert [tuple(resource) for resource in model.resources] == [(True, 100), (False, 10)]
    machine = model.machines[3]
    assert (machine.neighborhood, machine.location) == (1, 2)
    assert list(machine.capacities) == [10, 100]
    assert list(machine.safety_capacities) == [8, 80]
    assert list(machine.move_costs) == [5, 4, 2, 0]
    assert [tuple(service) for service in model.services] == [(2, ()), (1, (0,)), (0, ())]
    assert model.processes[2].service == 1
    assert list(model.processes[2].needs) == [6, 200]
    assert model.processes[1].move_cost == 100
    assert [tuple(balance) for balance in model.balances] == [(0, 1, 20, 10)]
    assert tuple(model.weights) == (1, 10, 100)


def test_line_breaks_do_not_matter():
    assert str(model_of(MODEL)) == str(model_of(MODEL.replace("\n", " ")))
    assert str(model_of(MODEL)) == str(model_of(MODEL.replace(" ", "\n")))


def test_an_assignment_is_written_as_it_is_read():
    text = formats.write_assignment([0, 2, 0, 3])
    assert text == "0 2 0 3\n"
    assert formats.read_assignment("start", [text], model_of(MODEL)) == [0, 2, 0, 3]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "line 0: the file ends where the number of resources should be"),
        (MODEL[:-10], "the file ends where"),
        (MODEL + "7\n", "there are numbers after the last one"),
        (
            MODEL.replace("1 100", "1 x", 1),
            "line 2: a resource (transient, weight) should be whole",
        ),
        (MODEL.replace("1 100", "1 -1", 1), "line 2: numbers from 0 to"),
        (MODEL.replace("1 100", "1 1_0", 1), "line 2: a resource (transient, weight) should be"),
        (MODEL.replace("1 100", f"1 {2**63}", 1), "line 2: numbers from 0 to"),
        ("65\n", "the number of resources is 65, at most 64 is allowed"),
        (MODEL.replace("1 1 0\n", "1 1 3\n"), "the dependencies of service 1 is 3, at most 2"),
        (MODEL.replace("2 0 90 1", "3 0 90 1"), "the service of process 3 is 3, at most 2"),
        (MODEL.replace("0 1 20\n", "0 2 20\n"), "the resources of balance cost 0 is 2, at most 1"),
    ],
)
def test_a_wrong_model_is_refused_with_its_place(text, part):
    with pytest.raises(ClusterDataError) as caught:
        model_of(text)
    assert part in str(caught.value)
    assert str(caught.value).startswith("model, line ")


@pytest.mark.parametrize("text", ["0 2 0", "0 2 0 4", "0 2 0 3 1", "0 2 0 -1"])
def test_a_wrong_assignment_is_refused(text):
    with pytest.raises(ClusterDataError, match=r"start, line 1: "):
        formats.read_assignment("start", [text], model_of(MODEL))
