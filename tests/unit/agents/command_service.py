# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service of the resource agent ``command``, called by our own library as any agent is."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from pathlib import Path

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.agent import (
    AgentCall,
    parse_agent,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.call import call
from ansible_collections.holdfast.ha.tests.unit.agents.installed_agents import install_command

INSTALLED = Path(tempfile.mkdtemp(prefix="holdfast-agent-"))
atexit.register(shutil.rmtree, INSTALLED, ignore_errors=True)
AGENT = install_command(INSTALLED)
"""Installed once for all tests."""

NAME = parse_agent("ocf:holdfast:command")
SERVE = f"{sys.executable} -S -u -m http.server --bind 127.0.0.1"
"""A command line that serves on the port that is put behind it."""


class Service:
    """One resource of the agent, in a run directory of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.parameters = {}

    def __call__(self, action, timeout=60.0, interval=0.0, check_level=None, **parameters):
        """Call an action; *parameters* are kept for the calls after it."""
        self.parameters.update(parameters)
        request = AgentCall(
            NAME,
            action,
            instance="web:0",
            parameters={name: str(value) for name, value in self.parameters.items()},
            timeout=timeout,
            interval=interval,
            check_level=check_level,
            run_directory=str(self.folder),
        )
        return call(str(AGENT), request)

    @property
    def state_file(self):
        """The file in which the agent notes what it started."""
        return self.folder / "holdfast-command-web:0.state"

    @property
    def pid(self):
        """The number of the command's main process."""
        return int(self.state_file.read_text().split()[0])


def agent_environment(folder, command, instance="web:0", **more):
    """Return what the agent needs to be called without our library."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HA_RSCTMP": str(folder),
        "OCF_RESOURCE_INSTANCE": instance,
        "OCF_RESKEY_command": command,
        **more,
    }
