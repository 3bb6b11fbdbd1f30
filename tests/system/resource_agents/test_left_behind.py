# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stop that the distribution's agent calls a success, though the service still answers."""

from __future__ import annotations

import contextlib
import os
import signal
import urllib.request
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import AgentError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.remains import Traces
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.resource import (
    bring_to_state,
    perform,
    prepare,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process.family import (
    process_table,
)
from ansible_collections.holdfast.ha.tests.system.resource_agents import agent_rigs

if not Path("/usr/lib/ocf/resource.d/heartbeat/nginx").exists():
    pytest.skip("resource-agents is not installed", allow_module_level=True)


def test_a_worker_that_outlives_its_master_is_found_where_the_agent_says_stopped(tmp_path):
    with agent_rigs.nginx() as parameters, contextlib.ExitStack() as at_the_end:
        web = prepare("ocf:heartbeat:nginx", "web", parameters, run_directory=str(tmp_path))
        traces = Traces(ports=(parameters["port"],))
        bring_to_state(web, "started", traces=traces)
        master = int(Path(parameters["configfile"]).with_name("nginx.pid").read_text())
        workers = [pid for pid, one in process_table().items() if one.parent == master]
        for worker in workers:
            at_the_end.callback(os.kill, worker, signal.SIGKILL)
        os.kill(master, signal.SIGKILL)
        bring_to_state(web, "stopped")
        assert perform(web, "monitor").stopped
        with urllib.request.urlopen(parameters["status10url"], timeout=10.0) as answer:
            assert answer.status == 200
        with pytest.raises(AgentError, match=f"web .* left: TCP port {parameters['port']} in use"):
            bring_to_state(web, "stopped", traces=traces)
    bring_to_state(web, "stopped", traces=traces)
