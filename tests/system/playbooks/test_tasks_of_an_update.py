# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tasks that say by default whether a node is updated, with a package manager that is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from cluster import CHECKOUT
from playing import ansible_environment

NEEDED = CHECKOUT / "playbooks" / "tasks" / "rolling_update_needed.yml"

MANAGER = """#!/usr/bin/python
from ansible.module_utils.basic import AnsibleModule

module = AnsibleModule({"name": {"type": "str"}, "state": {}}, supports_check_mode=True)
if not module.check_mode:
    module.fail_json(msg="It was told to update, and not asked.")
module.exit_json(changed=module.params["name"] == "*" and CHANGED)
"""


def see(tmp_path: Path, expected: str, updates: bool, hint: int = 0, **variables: str) -> None:
    """Run the tasks with a package manager that has *updates* or not, and see what is *expected*.

    *hint* is what dnf's own command ends with: 1 is a reboot that is due.
    """
    library = tmp_path / "library"
    library.mkdir()
    (library / "pretended.py").write_text(MANAGER.replace("CHANGED", str(updates)))
    restarting = tmp_path / "bin" / "needs-restarting"
    restarting.parent.mkdir()
    restarting.write_text(f"#!/bin/sh\necho Reboot is required.\nexit {hint}\n")
    restarting.chmod(0o755)
    path = f"{restarting.parent}:{os.environ['PATH']}"
    tasks = [
        {"ansible.builtin.set_fact": {"ansible_pkg_mgr": "pretended", "cacheable": True}},
        {"ansible.builtin.include_tasks": str(NEEDED)},
        {"ansible.builtin.assert": {"that": expected}},
    ]
    play = {
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "vars": {
            "ansible_become": False,
            "ansible_python_interpreter": sys.executable,
            **variables,
        },
        "tasks": tasks,
    }
    book = tmp_path / "book.yml"
    book.write_text(yaml.safe_dump([play]))
    done = subprocess.run(
        [sys.executable, "-m", "ansible.cli.playbook", str(book)],
        env=ansible_environment(tmp_path, ANSIBLE_LIBRARY=str(library), PATH=path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("updates", [True, False], ids=["updates", "no updates"])
def test_a_node_is_updated_if_its_package_manager_has_anything_to_do(
    tmp_path: Path, updates: bool
) -> None:
    # Whether a reboot is due is this computer's own affair.
    see(tmp_path, f"__rolling_update_needed == ({updates} or __rolling_update_reboot_due)", updates)


@pytest.mark.parametrize(("reboot", "needed"), [("needed", True), ("never", False)])
def test_a_reboot_that_is_due_is_a_reason_only_where_it_would_be_made(
    tmp_path: Path, reboot: str, needed: bool
) -> None:
    expected = f"__rolling_update_reboot_due and __rolling_update_needed == {needed}"
    see(tmp_path, expected, updates=False, hint=1, rolling_update_reboot=reboot)


def test_what_apt_knows_is_read_anew_before_it_is_asked() -> None:
    tasks = yaml.safe_load(NEEDED.read_text(encoding="utf-8"))
    named = [key for task in tasks for key in task if key.startswith("ansible.builtin.")]
    assert named.index("ansible.builtin.apt") < named.index("ansible.builtin.package")
    (apt,) = [task for task in tasks if "ansible.builtin.apt" in task]
    assert apt["ansible.builtin.apt"] == {"update_cache": True, "cache_valid_time": 3600}
    assert (apt["check_mode"], apt["become"]) == (False, True)
