# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a module's ``main`` in this process, as Ansible would, and returns what it reports."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
from collections.abc import Mapping
from typing import Any
from unittest import mock

from ansible import module_utils
from ansible.module_utils import basic

PACKAGE = "ansible_collections.holdfast.ha.plugins.modules"


def run_module(
    module_name: str, options: Mapping[str, Any], check: bool = False, diff: bool = False
) -> dict[str, Any]:
    """Run the module with *options*; a failed task is returned with ``failed`` true.

    The options pass through JSON and the module's own argument spec, so that wrong
    types and missing options fail as they do in a playbook.
    """
    arguments = {
        **options,
        "_ansible_check_mode": check,
        "_ansible_diff": diff,
        "_ansible_remote_tmp": "/tmp",
        "_ansible_keep_remote_files": False,
    }
    encoded = json.dumps({"ANSIBLE_MODULE_ARGS": arguments}).encode()
    module = importlib.import_module(f"{PACKAGE}.{module_name}")
    output = io.StringIO()
    with (
        mock.patch.object(basic, "_ANSIBLE_ARGS", encoded),
        # ansible-core 2.19 and later want to know how the arguments are encoded.
        mock.patch.object(basic, "_ANSIBLE_PROFILE", "legacy", create=True),
        _on_a_target(),
        contextlib.redirect_stdout(output),
        contextlib.suppress(SystemExit),
    ):
        module.main()
    lines = output.getvalue().strip().splitlines()
    if not lines:
        raise RuntimeError(f"module {module_name} reported nothing")
    result: dict[str, Any] = json.loads(lines[-1])
    return result


def run_ok(
    module_name: str, options: Mapping[str, Any], check: bool = False, diff: bool = False
) -> dict[str, Any]:
    """Run the module and return its result; raise ``RuntimeError`` if it failed."""
    result = run_module(module_name, options, check, diff)
    if result.get("failed"):
        raise RuntimeError(f"module {module_name} failed: {result.get('msg')}")
    return result


def run_failing(module_name: str, options: Mapping[str, Any], check: bool = False) -> str:
    """Run a module that has to fail; return its message."""
    result = run_module(module_name, options, check)
    if not result.get("failed"):
        raise RuntimeError(f"module {module_name} did not fail: {result}")
    return str(result["msg"])


def _on_a_target() -> contextlib.AbstractContextManager[Any]:
    """Let warnings go into the result, even where another test has loaded an action plugin.

    ansible-core 2.19 and later take the process for a controller then, and display them.
    """
    internal = getattr(module_utils, "_internal", None)
    if internal is None:
        return contextlib.nullcontext()
    return mock.patch.object(internal, "is_controller", False)
