# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a reboot is due: by Debian's file, by dnf, and by the kernels that are installed."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.forecast import outages
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.forecast.outages import (  # noqa: E501
    Answer,
    by_dnf,
    by_kernel,
    by_mark,
    kernels,
    reboot_due,
)

BEFORE, BOOTED, SINCE = 100.0, 200.0, 300.0

DEBIAN = "6.12.{}+deb13-amd64"
EL = "5.14.0-427.{}el9.x86_64"


@pytest.fixture
def installed(monkeypatch):
    """Let these kernels be there, each written at its time."""
    return lambda **times: monkeypatch.setattr(
        outages, "kernels", lambda _root: {DEBIAN.format(key[1:]): at for key, at in times.items()}
    )


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Let the node have no programs but these, each a script."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def write(**scripts):
        for name, script in scripts.items():
            path = tmp_path / name.replace("_", "-")
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(0o755)

    return write


def by(running):
    return by_kernel(DEBIAN.format(running), BOOTED)


def test_a_kernel_that_was_installed_since_the_node_booted_is_due(installed):
    installed(_43=BEFORE, _48=SINCE)
    assert by(43) == Answer(
        True, "the kernel 6.12.48+deb13-amd64 was installed, and 6.12.43+deb13-amd64 runs"
    )


def test_a_kernel_is_due_also_below_one_that_the_boot_loader_passed_over(installed):
    installed(_18=BEFORE, _99=BEFORE, _20=SINCE)
    assert by(18).due and "6.12.20+" in by(18).why


def test_what_was_installed_is_due_where_the_running_kernel_is_gone(installed):
    installed(_18=SINCE)
    assert by(43).due


def test_a_kernel_that_was_written_anew_under_its_own_name_is_due(installed):
    installed(_43=SINCE)
    assert by(43).due
    assert "reinstalled" in by(43).why


def test_the_newest_kernel_that_runs_since_it_was_installed_is_not_due(installed):
    installed(_9=BEFORE, _43=BEFORE)
    assert by(43) == Answer(False)


def test_a_kernel_that_the_boot_loader_passed_over_is_told_and_not_rebooted_for_again(installed):
    installed(_43=BEFORE, _48=BEFORE)
    assert by(43).due is False
    assert "6.12.48+deb13-amd64 is installed" in reboot_due([by(43)]).warnings[0]


def test_a_kernel_whose_predecessor_is_not_there_any_more_is_due(installed):
    installed(_48=SINCE)
    assert by(43).due


def test_kernels_of_somebody_else_as_in_a_container_tell_nothing(installed):
    installed(_48=BEFORE)
    assert by(43).due is None


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (DEBIAN.format(9), DEBIAN.format(43)),
        (EL.format(""), EL.format("13.1.")),
        ("6.12-rc1-amd64", "6.12.0-amd64"),
    ],
)
def test_the_newest_kernel_is_so_by_version_and_not_by_letters(monkeypatch, older, newer):
    monkeypatch.setattr(outages, "kernels", lambda _root: {older: BEFORE, newer: SINCE})
    assert by_kernel(older, BOOTED).due
    assert by_kernel(newer, SINCE) == Answer(False)


def test_a_kernel_is_what_has_modules_wherever_its_image_is(tmp_path):
    for version in ("6.1", "6.2", "6.3"):
        (tmp_path / "lib/modules" / version).mkdir(parents=True)
    (tmp_path / "lib/modules/6.2/vmlinuz").write_text("")
    (tmp_path / "boot").mkdir()
    for name in ("vmlinuz-6.1", "vmlinuz-0-rescue-4f1c", "vmlinuz-6.1.old"):
        (tmp_path / "boot" / name).write_text("")
    assert kernels(tmp_path) == {
        "6.1": (tmp_path / "boot/vmlinuz-6.1").stat().st_ctime,
        "6.2": (tmp_path / "lib/modules/6.2/vmlinuz").stat().st_ctime,
    }
    assert by_kernel("6.2", BOOTED, tmp_path / "nowhere") == Answer(None)


def test_the_file_of_debian_is_a_reason_and_none_says_nothing(tmp_path):
    assert by_mark(tmp_path) == Answer(None)
    (tmp_path / "run").mkdir()
    (tmp_path / "run/reboot-required").write_text("")
    assert by_mark(tmp_path).due


@pytest.mark.parametrize(
    ("scripts", "due"),
    [
        ({}, None),
        ({"needs_restarting": "exit 0"}, False),
        ({"needs_restarting": "echo Reboot is required.; exit 1"}, True),
        ({"dnf": "echo Reboot is required.; exit 1"}, True),
        ({"dnf": "exit 0"}, False),
        # Without its plugin, and one that failed.
        ({"dnf": "echo No such command: needs-restarting. >&2; exit 1"}, None),
        ({"needs_restarting": "exit 1", "dnf": "exit 0"}, False),
    ],
)
def test_dnf_is_asked_either_way_and_an_error_is_no_answer(programs, scripts, due):
    programs(**scripts)
    assert by_dnf().due is due


def test_one_reason_is_enough_and_each_is_told():
    done = reboot_due([Answer(True, "one"), Answer(False), Answer(True, "another")])
    assert done.values == {"due": True, "known": True, "reasons": ["one", "another"]}
    assert not done.warnings


def test_a_node_on_which_nothing_can_tell_is_warned_of(tmp_path, programs):
    programs()
    done = reboot_due([by_mark(tmp_path), by_dnf(), by_kernel("6.1", BOOTED, tmp_path)])
    assert done.values == {"due": False, "known": False, "reasons": []}
    assert "Whether a reboot is due is not known" in done.warnings[0]
