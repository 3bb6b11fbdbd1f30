# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes can be out of service together and in which order, and whether a reboot is due.

A group of nodes may be out if every service on them has a place by the manager's own choice, and
if any other node could still be lost (N+1) as far as it could before.  Groups are filled node by
node, the manager's own node last, so that the manager lease moves once.

Each distribution reports a due reboot in its own way, a plain installation often in none.  So the
installed kernels are compared as well, which needs only files.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ...cluster.crm.load import Load, largest_first
from ...cluster.crm.selection import choose, unusable
from ...cluster.model.observed import ObservedState
from ...cluster.model.state import ClusterState, NodeState, NodeStatus
from ...cluster.model.states import ServiceState
from ...errors import AgentError
from ...node.configuration_file import load
from ...process.run import run
from ...result import Result
from .moves import Carried, Move, checked_nodes, emptied, look, short_of_room


@dataclass(frozen=True)
class Group:
    """Nodes that can be out of service together, the moves before, and the others' loads then."""

    nodes: tuple[str, ...]
    moves: tuple[Move, ...] = ()
    then: Mapping[str, Carried] = field(default_factory=dict)


@dataclass(frozen=True)
class Outages:
    """The groups in order, and why each other node cannot be out at all."""

    groups: tuple[Group, ...] = ()
    blocked: Mapping[str, str] = field(default_factory=dict)


def plan_outages(
    state: ClusterState,
    observed: ObservedState,
    nodes: Sequence[str],
    *,
    at_once: int = 1,
    redundant: bool = True,
    owner: str = "",
) -> Outages:
    """Return groups of at most *at_once* of *nodes* that can be out, each judged by the state now.

    With *redundant* a node that could be lost now must stay so.  Nodes that *owner* has drained
    already come first and count as in use for the later groups.  Each group is to be judged again
    before its turn: by then services are elsewhere.
    """
    drained = observed.desired.maintenance
    out = [one for one in nodes if owner and one in drained and drained[one].owner == owner]
    if out:
        first = plan_outages(state, observed, out, at_once=at_once, redundant=False)
        rest = [one for one in nodes if one not in set(out)]
        state, observed = _back(state, observed, out)
        then = plan_outages(state, observed, rest, at_once=at_once, redundant=redundant)
        return Outages((*first.groups, *then.groups), {**first.blocked, **then.blocked})
    now = lost_by_node(state, observed) if redundant else {}
    open_groups: list[Group] = []
    blocked: dict[str, str] = {}
    for node in sorted(nodes, key=lambda one: (one == state.manager, one)):
        status = state.nodes.get(node)
        if status is None or status.state is not NodeState.ONLINE:
            blocked[node] = f"it is {status.state.value if status else 'unknown'}"
            continue
        for index, group in enumerate(open_groups):
            if len(group.nodes) < at_once:
                joined, why = _judge(state, observed, (*group.nodes, node), now, redundant)
                if not why:
                    open_groups[index] = joined
                    break
        else:
            alone, why = _judge(state, observed, (node,), now, redundant)
            if why:
                blocked[node] = why
            else:
                open_groups.append(alone)
    return Outages(tuple(open_groups), blocked)


def _back(
    state: ClusterState, observed: ObservedState, nodes: Sequence[str]
) -> tuple[ClusterState, ObservedState]:
    """Return the cluster with *nodes* out of maintenance."""
    desired = observed.desired
    for node in nodes:
        desired = desired.without_maintenance(node)
        state = state.with_node(node, replace(state.nodes[node], mode=""))
    return state, replace(observed, desired=desired)


def _judge(
    state: ClusterState,
    observed: ObservedState,
    nodes: tuple[str, ...],
    now: Mapping[str, Mapping[str, str]],
    redundant: bool,
) -> tuple[Group, str]:
    """Return the group of *nodes*, and why they cannot be out together, or ""."""
    plan, after, then = emptied(state, observed, nodes)
    group = Group(nodes, plan.moves, plan.then)
    if plan.blocked:
        told = "; ".join(f"{service}: {why}" for service, why in plan.blocked.items())
        return group, f"not everything can leave: {told}"
    if redundant:
        for node, lost in lost_by_node(after, then).items():
            new = [one for one in lost if one not in now.get(node, {})]
            if new:
                return group, (
                    f"{node} could not be lost meanwhile, as nothing could take over"
                    f" {', '.join(new)} ({lost[new[0]]})"
                )
    return group, ""


def lost_by_node(state: ClusterState, observed: ObservedState) -> dict[str, dict[str, str]]:
    """Return for each node in use the services that no node could take over from it, and why."""
    return {
        node: _lost(node, state, observed)
        for node in sorted(observed.nodes)
        if not unusable(node, state, observed)
    }


def _lost(node: str, state: ClusterState, observed: ObservedState) -> dict[str, str]:
    state = state.with_node(node, NodeStatus(NodeState.OFF))
    load = Load.of(state.services, observed)
    on_it = largest_first(state.services_on(node), load)
    lost: dict[str, str] = {}
    for service_id in on_it:
        status = state.services[service_id]
        gone = replace(status, state=ServiceState.RECOVERY)
        load.change(service_id, status, gone)
        state = state.with_service(service_id, gone)
    for service_id in on_it:
        gone = state.services[service_id]
        choice = choose(service_id, state, observed, load)
        if not choice.node:
            lost[service_id] = choice.reason
            continue
        started = replace(gone, state=ServiceState.STARTED, node=choice.node, target="")
        load.change(service_id, gone, started)
        state = state.with_service(service_id, started)
    return lost


def outage_info(options: Mapping[str, Any], check: bool) -> Result:
    """Return groups of nodes that can be out together, for the module ``outage_info``.

    Raises ``InputError`` for an unknown node and for groups of no node.
    """
    configuration = load(Path(options["config"]))
    nodes = checked_nodes(options["nodes"], configuration, sorted(configuration.members))
    state, observed = look(configuration)
    plan = plan_outages(
        state,
        observed,
        nodes,
        at_once=options["at_once"],
        redundant=options["redundant"],
        owner=options["owner"] or "",
    )
    warnings = [
        f"While {', '.join(group.nodes)} cannot be used, {sentence}"
        for group in plan.groups
        for sentence in short_of_room(
            group.then, [move.target for move in group.moves], observed.desired.policy
        )
    ]
    return Result(values=_document(plan), warnings=warnings)


def _document(plan: Outages) -> dict[str, Any]:
    return {
        "groups": [
            {"nodes": list(group.nodes), "moves": [asdict(move) for move in group.moves]}
            for group in plan.groups
        ],
        "nodes": [node for group in plan.groups for node in group.nodes],
        "sizes": [len(group.nodes) for group in plan.groups],
        "blocked": dict(plan.blocked),
    }


MARK = Path("run/reboot-required")
"""The mark of Debian's packages, if what writes it is installed; its absence proves nothing."""

TOOLS = (("needs-restarting", "-r"), ("dnf", "needs-restarting", "-r"))
"""The command of yum-utils, and the plugin of dnf."""

DEADLINE = 120.0
"""Seconds for a command, which may download the package lists."""

_IMAGES = ("boot/vmlinuz-{}", "boot/vmlinux-{}", "lib/modules/{}/vmlinuz")
_PART = re.compile(r"\d+|[A-Za-z]+")


@dataclass(frozen=True)
class Answer:
    """One check's answer: whether a reboot is due, None if unknown, and why."""

    due: bool | None
    why: str = ""


def reboot_info(options: Mapping[str, Any], check: bool) -> Result:
    """Return whether a reboot of this node is due, for the module ``reboot_info``."""
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return reboot_due([by_mark(), by_dnf(), by_kernel(os.uname().release, booted)])


def reboot_due(answers: list[Answer]) -> Result:
    """Return the result of all *answers*: one reason is enough."""
    told = [one for one in answers if one.due is not None]
    due = any(one.due for one in told)
    warnings = [one.why for one in answers if one.why and not one.due]
    if not told:
        warnings.append(
            "Whether a reboot is due is not known: there is no /run/reboot-required, neither"
            " needs-restarting nor dnf needs-restarting gave an answer, and the running kernel"
            " is none of those that are installed. It has to be found out by other means."
        )
    values = {"due": due, "known": bool(told), "reasons": [one.why for one in told if one.due]}
    return Result(values=values, warnings=warnings)


def by_mark(root: Path = Path("/")) -> Answer:
    """Return the answer of the file of Debian's packages; unknown without it."""
    if (root / MARK).exists():
        return Answer(True, f"/{MARK} is there")
    return Answer(None)


def by_dnf() -> Answer:
    """Return the answer of dnf's commands; unknown without one.

    Status 1 is also that of dnf without the plugin and of a failed command, so it counts only with
    the sentence.
    """
    for argv in TOOLS:
        if shutil.which(argv[0]) is None:
            continue
        try:
            done = run(argv, deadline=DEADLINE, environment={**os.environ, "LC_ALL": "C"})
        except AgentError:
            continue
        if done.exit_status == 0:
            return Answer(False)
        if done.exit_status == 1 and "reboot" in done.stdout.lower():
            return Answer(True, f"{' '.join(argv)} says so")
    return Answer(None)


def by_kernel(running: str, booted: float, root: Path = Path("/")) -> Answer:
    """Return whether a kernel was installed since the node *booted* (seconds, wall clock).

    The boot loader does not start a kernel that was there before the boot: another reboot would
    change nothing, and each run of a playbook would cause one.
    """
    written = kernels(root)
    if not written:
        return Answer(None)
    newest = max(written, key=_by_version)
    newer = [one for one in written if _by_version(one) > _by_version(running)]
    came = [one for one in (newer if running in written else written) if written[one] > booted]
    if came:
        # The boot loader does not start an older one.
        best = max(came, key=_by_version)
        return Answer(True, f"the kernel {best} was installed, and {running} runs")
    if running not in written:
        return Answer(None)
    if written[running] > booted:
        return Answer(True, f"the kernel {running} was reinstalled since the node booted")
    if newest != running:
        return Answer(
            False,
            f"The kernel {newest} is installed, and {running} was booted all the same: a reboot is"
            " not taken for due, as it would change nothing. Look at what the boot loader starts.",
        )
    return Answer(False)


def kernels(root: Path = Path("/")) -> dict[str, float]:
    """Return when each kernel that has modules was written (seconds, wall clock), by version.

    That is the inode's time, as packages set the file's.  Rescue images and what removed packages
    left in /boot have no modules.
    """
    found: dict[str, float] = {}
    for folder in (root / "lib/modules").glob("*"):
        for image in _IMAGES:
            with suppress(OSError):
                written = (root / image.format(folder.name)).stat().st_ctime
                found[folder.name] = max(written, found.get(folder.name, 0.0))
    return found


def _by_version(version: str) -> list[tuple[int, int, str]]:
    """Return a sort key for kernel versions; a number is newer than a word, as in rpm."""
    return [
        (1, int(part), "") if part.isdigit() else (0, 0, part) for part in _PART.findall(version)
    ]
