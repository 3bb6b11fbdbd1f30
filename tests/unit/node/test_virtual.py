# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node makes of systemd-detect-virt."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import AgentError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import (
    EMBEDDED,
    SANLOCK,
    SanlockSettings,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.system import (
    virtual_machine,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process.run import Outcome
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import configuration


def ended(status, text, timed_out=False):
    return Outcome(("systemd-detect-virt",), status, None, timed_out, 0.01, text, "")


@pytest.mark.parametrize(
    ("outcome", "virtual"),
    [
        (ended(0, "kvm\n"), "kvm"),
        (ended(0, "vmware\n"), "vmware"),
        (ended(0, "vm-other\n"), "vm-other"),
        (ended(1, "none\n"), ""),
        (ended(0, "none\n"), ""),
        (ended(1, ""), None),
        (ended(1, "kvm\n"), None),
        (ended(0, ""), None),
        (ended(0, "something went wrong: sorry\n"), None),
        (ended(None, "kvm\n", timed_out=True), None),
        (ended(None, "", timed_out=True), None),
    ],
)
def test_only_a_clear_answer_counts(tmp_path, outcome, virtual):
    node = replace(configuration(tmp_path), backend=SANLOCK)
    assert virtual_machine(node, lambda: outcome) == virtual


def test_without_the_program_nobody_knows(tmp_path):
    def missing():
        raise AgentError("systemd-detect-virt is missing")

    node = replace(configuration(tmp_path), backend=SANLOCK)
    assert virtual_machine(node, missing) is None


@pytest.mark.parametrize(
    "kind",
    [
        {"backend": EMBEDDED},
        {"backend": SANLOCK, "sanlock": SanlockSettings(2, 0, "/run/n1")},
    ],
    ids=["embedded", "sanlock"],
)
def test_the_machines_of_a_cluster_on_one_computer_are_no_virtual_machines(tmp_path, kind):
    node = replace(configuration(tmp_path), **kind)
    assert virtual_machine(node, lambda: ended(0, "kvm\n")) == ""
