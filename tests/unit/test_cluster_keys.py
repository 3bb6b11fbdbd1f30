# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps to another cluster key: at each moment every node believes what any node signs."""

from __future__ import annotations

import itertools

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.holdfast.ha.plugins.plugin_utils._cluster_keys import (
    cluster_key_steps,
    cluster_keys,
)

OLD, NEW, NEXT = "a" * 64, "b" * 64, "c" * 64


def text(*keys: str) -> str:
    return "# comment\n" + "".join(f"{key}\n" for key in keys)


def test_given_keys_come_first_then_those_of_the_nodes_then_a_new_one() -> None:
    assert cluster_keys([text(OLD)], [NEW], NEXT) == [NEW]
    assert cluster_keys([text(OLD), text(OLD)], [], NEXT) == [OLD]
    assert cluster_keys([], [], NEXT) == [NEXT]


@pytest.mark.parametrize(
    ("files", "given", "said"),
    [
        ([text(OLD), text(NEW)], [], "different cluster keys"),
        ([text(OLD, NEW), text(OLD)], [], "run the playbook cluster_key again"),
        (["nonsense"], [], "holds no cluster key"),
        ([], ["secret"], "holdfast_cluster_keys holds no cluster key"),
    ],
)
def test_keys_that_cannot_be_chosen_are_refused_without_telling_them(
    files: list[str], given: list[str], said: str
) -> None:
    with pytest.raises(AnsibleFilterError) as caught:
        cluster_keys(files, given, NEXT)
    assert said in str(caught.value)
    assert not {OLD, NEW, "secret"} & set(str(caught.value).split())


def test_the_new_key_is_accepted_then_signs_then_is_the_only_one() -> None:
    assert cluster_key_steps([text(OLD)] * 3, NEW) == [[OLD, NEW], [NEW, OLD], [NEW]]


def test_the_key_that_all_have_needs_no_step() -> None:
    assert cluster_key_steps([text(OLD)] * 3, OLD) == []


PLAN = [[OLD], [OLD, NEW], [NEW, OLD], [NEW]]


@pytest.mark.parametrize("step", range(3))
@pytest.mark.parametrize("done", range(4))
def test_an_exchange_that_was_interrupted_anywhere_is_gone_on_with(step: int, done: int) -> None:
    """*done* of three nodes had taken the step when it was interrupted."""
    files = [PLAN[step + 1] if number < done else PLAN[step] for number in range(3)]
    steps = cluster_key_steps([text(*keys) for keys in files], NEXT)
    signed = {keys[0] for keys in files}
    if step == 2:
        # All is signed with the new key before the first node takes the last step.
        signed = {NEW}
    states = [files]
    for keys in steps:
        before = states[-1]
        states.extend([keys if n < m else before[n] for n in range(3)] for m in (1, 2, 3))
    for nodes in states:
        signed |= {keys[0] for keys in nodes}
        for reader in nodes:
            assert signed <= set(reader), (nodes, signed)
        if all(keys == nodes[0] for keys in nodes):
            # Before the next step all is signed again.
            signed = {nodes[0][0]}
    assert len({tuple(keys) for keys in states[-1]}) == 1
    assert len(states[-1][0]) == 1


def test_nodes_without_a_common_key_are_refused() -> None:
    for files in itertools.permutations([text(OLD), text(NEW)]):
        with pytest.raises(AnsibleFilterError, match="no cluster key in common"):
            cluster_key_steps(list(files), NEXT)
    with pytest.raises(AnsibleFilterError):
        cluster_key_steps([], NEXT)
    with pytest.raises(AnsibleFilterError, match="holdfast_next_cluster_key"):
        cluster_key_steps([text(OLD)], "short")
