# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A daemon goes on with the library that it began with, also while another takes its place."""

from __future__ import annotations

import json
import subprocess
import sys

LIBRARY = "ansible_collections.holdfast.ha.plugins.module_utils._holdfast"
LOADED_LATER = "placement.services"
"""What ``cluster/crm/load.py`` imports only when it is first asked for a score."""


def test_a_manager_has_loaded_all_that_it_decides_with_before_its_first_round():
    program = (
        f"import json, sys; sys.path[:] = json.loads({json.dumps(json.dumps(sys.path))})\n"
        f"import {LIBRARY}.node.daemon.crm\n"
        f"print('{LIBRARY}.{LOADED_LATER}' in sys.modules)"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60.0
    )
    assert said.stdout == "True\n"
