# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ocf-tester (resource-agents 4.12) checks of a resource agent, through our own library.

It stands with the tests because no module of the collection needs it; it shows that agents
which are sound for ocf-tester are sound when our library calls them.  Two departures: which
actions there are is taken from the metadata, and the actions of which ocf-tester only notes
that they are there (migrate_to, migrate_from, reload) are not called.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Collection
from pathlib import Path

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.call import (
    INSTALLED,
    NOT_RUNNING,
    PROMOTED,
    SUCCESS,
    UNIMPLEMENTED,
    OcfResult,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.resource import (
    Resource,
    perform,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process.run import Outcome, run

SCHEMAS = Path("/usr/share/resource-agents")
"""Where resource-agents has ra-api-1.dtd, which the metadata names."""

PROBE, EARLY, LATER = 0.0, 10.0, 20.0
"""The intervals that ocf-tester tells: a probe's, and a check's before and after the start."""


class _Aborted(Exception):
    """What failed makes every further check meaningless."""


def problems_of(resource: Resource, *, roles: bool = True) -> list[str]:
    """Return what is wrong with the agent of *resource*, one line for each failed check.

    *resource* is started and stopped several times, and stopped at the end.  Without *roles*
    it is neither promoted nor demoted, for an agent that can only do so within a cluster.
    """
    course = _Course(resource)
    try:
        course.check_file()
        course.check_metadata()
        course.begin_stopped()
        course.start()
        if roles:
            course.change_roles()
        course.stop_and_start_again()
    except _Aborted:
        course.problems.append("the further checks were given up")
    finally:
        perform(resource, "stop")
    return course.problems


def without_binaries(argv: list[str], *, environment: dict[str, str], **options: object) -> Outcome:
    """Run an agent for which every program that it looks for is missing (ocf-binaries)."""
    return run(argv, environment={**environment, "OCF_TESTER_FAIL_HAVE_BINARY": "1"}, **options)


class _Course:
    """The checks in their order, and what they found so far."""

    def __init__(self, resource: Resource) -> None:
        self.problems: list[str] = []
        self._resource = resource

    def check_file(self) -> None:
        """Anybody may ask for the metadata; only root can try that."""
        if os.getuid() == 0:
            words = ["su", "nobody", "-s", "/bin/sh", "-c", f"{self._resource.path} meta-data"]
            root = {**os.environ, "OCF_ROOT": self._resource.call.ocf_root}
            if subprocess.run(words, env=root, capture_output=True, check=False).returncode:
                self.problems.append("the agent cannot be run by nobody; its mode should be 755")

    def check_metadata(self) -> None:
        """It is valid, and there without any program that the agent is about."""
        said = perform(self._resource, "meta-data").stdout
        lint = subprocess.run(
            ["xmllint", "--noout", "--valid", "-"],
            input=said,
            cwd=SCHEMAS,
            capture_output=True,
            text=True,
            check=False,
        )
        if lint.returncode:
            self.problems.append(f"the metadata is not valid: {lint.stderr.strip()[:300]}")
        self._expect("meta-data", {SUCCESS}, run=without_binaries)

    def begin_stopped(self) -> None:
        """The parameters are valid, and what runs can be stopped."""
        self._expect("validate-all", {SUCCESS}, vital=True)
        found = perform(self._resource, "monitor", interval=EARLY)
        if found.code == PROMOTED:
            self._expect("demote", {SUCCESS}, vital=True)
        if found.code != NOT_RUNNING:
            self._expect("stop", {SUCCESS}, vital=True)
        self._expect("monitor", {NOT_RUNNING}, interval=EARLY)
        self._expect("monitor", {NOT_RUNNING, INSTALLED}, interval=PROBE, run=without_binaries)

    def start(self) -> None:
        """It starts, and both kinds of monitor say so."""
        self._expect("start", {SUCCESS}, vital=True)
        self._expect("monitor", {SUCCESS}, interval=LATER)
        self._expect("monitor", {SUCCESS}, interval=PROBE)
        if self._resource.metadata.supports("notify"):
            self._expect("notify", {SUCCESS, UNIMPLEMENTED})

    def change_roles(self) -> None:
        """It has both roles or neither, and changing into a role that it has succeeds."""
        has = {role for role in ("demote", "promote") if self._knows(role)}
        if not has:
            return
        if len(has) == 1:
            self.problems.append(f"it can {has.pop()}, but not the reverse")
            return
        for action in ("demote", "promote", "demote", "demote", "promote", "promote", "demote"):
            self._expect(action, {SUCCESS})

    def stop_and_start_again(self) -> None:
        """Start and stop succeed when there is nothing to do, and each monitor agrees."""
        for action, state in (
            ("stop", NOT_RUNNING),
            ("start", SUCCESS),
            ("start", SUCCESS),
            ("stop", NOT_RUNNING),
            ("stop", NOT_RUNNING),
        ):
            self._expect(action, {SUCCESS}, vital=True)
            self._expect("monitor", {state}, interval=LATER)

    def _knows(self, action: str) -> bool:
        """An agent may advertise a role that it does not have with these parameters."""
        if not self._resource.metadata.supports(action):
            return False
        return perform(self._resource, action).code != UNIMPLEMENTED

    def _expect(
        self,
        action: str,
        codes: Collection[int],
        *,
        interval: float = LATER,
        vital: bool = False,
        run: Callable[..., Outcome] = run,
    ) -> OcfResult:
        result = perform(self._resource, action, interval=interval, run=run)
        if result.exit_status not in codes:
            desired = " or ".join(map(str, sorted(codes)))
            when = "" if run is not without_binaries else " without any program"
            self.problems.append(f"expected {desired}{when}, got {result}")
            if vital:
                raise _Aborted
        return result
