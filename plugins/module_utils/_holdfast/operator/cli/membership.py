# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``holdfast membership`` and ``records repair``: the accepted nodes, and repair of the records.

Exit status of ``membership``: 0 all nodes agree, or accepted; 1 a node differs; 2 it was refused.
Of ``records repair``: 0 repaired, or nothing to repair; 2 it was refused, or not taken up in time.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

from ...errors import HoldfastError, InputError
from .arguments import (
    add_actions,
    add_commands,
    add_config,
    add_flag,
    add_number,
    add_output,
    confirm,
    load_config,
    write_answer,
)

if TYPE_CHECKING:
    from ...cluster.model.membership import Acceptance, Membership
    from ...cluster.model.state import ClusterState
    from ...node.configuration import NodeConfiguration

AGREED, DIFFERS = 0, 1
REPAIR_WAIT = 60.0
"""Seconds: a manager takes a repair up within a round or two."""


def register(commands: Any) -> None:
    """Add the commands to the subparsers *commands*."""
    (membership,) = add_commands(
        commands,
        (
            "membership",
            lambda options: _accept(options) if options.action else _show(options),
            "show the nodes that the manager manages with, and which node differs",
        ),
    )
    membership.add_argument(
        "action",
        nargs="?",
        choices=("accept",),
        help="let this node's membership replace the recorded one, without the others",
    )
    add_output(membership)
    membership.add_argument(
        "--reason", metavar="TEXT", help="why it is accepted; the cluster keeps it"
    )
    add_flag(membership, "--yes", "accept without asking; required without a terminal")
    add_flag(membership, "--dry-run", "show what accept would do, and change nothing")
    add_config(membership)

    (repair,) = add_commands(
        add_actions(
            commands, "records", "repair the records on storage after they went back in time"
        ),
        (
            "repair",
            _repair,
            "begin a new generation of the records; every service is probed on every node",
        ),
    )
    repair.add_argument(
        "--keep",
        choices=("running", "file"),
        required=True,
        help="running: what runs goes on, also what the configuration on storage lost;"
        " file: what the configuration on storage does not have is stopped",
    )
    repair.add_argument("--reason", metavar="TEXT", default="records repaired", help="why")
    add_flag(repair, "--dry-run", "show the repair; change nothing")
    add_flag(repair, "--yes", "do not ask; needed where there is no terminal")
    text = f"for the manager to take the repair up (default {REPAIR_WAIT:g}; 0: do not wait)"
    add_number(repair, "--timeout", text, default=REPAIR_WAIT, metavar="SECONDS")
    add_config(repair)


def _show(options: argparse.Namespace) -> int:
    from ...text import clean
    from ..report.status import in_time

    configuration = load_config(options)
    shown = in_time(configuration, lambda: read_membership(configuration))
    write_answer(options, shown, lambda: "\n".join(map(clean, _lines(shown))))
    agreed = not shown["this_node"] and all(one["agrees"] for one in shown["nodes"].values())
    return AGREED if agreed and not shown["foreign_hosts"] else DIFFERS


def read_membership(configuration: NodeConfiguration) -> dict[str, Any]:
    """Return the recorded membership, and what each node reports, as plain data.

    *this_node* is how the configuration of this node differs from the record, in words.
    """
    from ...cluster.model.membership import differences
    from ...errors import StorageError
    from ...node.cluster_storage import ClusterStorage
    from ...node.daemon.own_membership import OwnMembership

    with closing(ClusterStorage(configuration)) as storage:
        state = storage.read_manager()
        recorded = state.membership if state is not None else None
        host_ids = configuration.host_ids()
        if recorded is not None:
            host_ids = {**host_ids, **{name: one.host_id for name, one in recorded.members.items()}}
        nodes: dict[str, Any] = {}
        for name, host_id in sorted(host_ids.items()):
            try:
                report = storage.read_sight(host_id)
            except StorageError as error:
                nodes[name] = {"host_id": host_id, "agrees": False, "differs": str(error)}
                continue
            is_member = recorded is not None and name in recorded.members
            differs = "" if is_member else "not a member"
            digest = ""
            if report is not None and report.node == name:
                digest = report.membership
                differs = differs or _difference(report.membership, recorded, report)
            else:
                last = (report.node if report is not None else "") or "none"
                differs = differs or f"no report under this name; last: {last}"
            nodes[name] = {
                "host_id": host_id,
                "agrees": not differs,
                "digest": digest,
                "differs": differs,
            }
    own = OwnMembership(configuration).get()
    return {
        "version": recorded.version if recorded is not None else 0,
        "digest": recorded.digest if recorded is not None else "",
        "own_digest": own.digest,
        "this_node": differences(own, recorded) if recorded is not None else "",
        "foreign_hosts": dict(state.foreign_hosts) if state is not None else {},
        "nodes": nodes,
    }


def _difference(digest: str, recorded: Membership | None, report: Any) -> str:
    if recorded is None or digest == recorded.digest:
        return ""
    if not digest:
        return "its version does not report a membership"
    return str(report.membership_differs) or "it differs"


def _lines(shown: dict[str, Any]) -> list[str]:
    version = shown["version"]
    lines = [
        f"membership version {version}, digest {shown['digest']}"
        if version
        else "no manager has recorded a membership yet"
    ]
    for name, one in shown["nodes"].items():
        said = "agrees" if one["agrees"] else one["differs"]
        lines.append(f"  {name} (host id {one['host_id']}): {said}")
    lines.extend(
        f"  host id {host_id} ({name}) runs, but is not a member"
        for host_id, name in sorted(shown["foreign_hosts"].items())
    )
    if shown["this_node"]:
        lines.append(f"the configuration of this node differs: {shown['this_node']}")
        lines.append(
            "run the playbook deploy for all nodes; if some cannot be reached, 'holdfast membership"
            " accept' on a node with the right configuration"
        )
    return lines


def _accept(options: argparse.Namespace) -> int:
    from ...cluster.model.maintenance import Maintenance
    from ...cluster.model.membership import Acceptance, differences
    from ...node.daemon.own_membership import OwnMembership
    from ...text import clean
    from ..operations.author import user_name

    if not (options.reason or "").strip():
        raise InputError("--reason", options.reason or "", "the reason, in a few words")
    configuration = load_config(options)
    own = OwnMembership(configuration).get()
    state, running = _state(configuration)
    _refuse_what_no_daemon_has(own, running)
    recorded = state.membership
    if recorded is not None and recorded.digest == own.digest:
        sys.stdout.write(f"already recorded as version {recorded.version}; no change\n")
        return AGREED
    differs = differences(own, recorded) if recorded is not None else "none is recorded"
    _refuse_lost_services(state, own)
    version = recorded.version if recorded is not None else 0
    sys.stdout.write(clean(f"compared with membership version {version}: {differs}\n"))
    node = configuration.node
    question = "The nodes that differ cannot be manager until they are deployed again.\n"
    confirm(options, "not accepted", f"{question}Type the name of this node ({node})", node)
    by = Maintenance(options.reason, user_name(), time.time())
    acceptance = Acceptance(own.digest, version, by)
    if not _write(configuration, acceptance, options.dry_run):
        sys.stdout.write("already requested; no change\n")
    elif options.dry_run:
        sys.stdout.write("would be accepted\n")
    else:
        sys.stdout.write(
            "accepted: a node with this configuration may be manager now, and records it\n"
        )
    return AGREED


def _write(configuration: NodeConfiguration, acceptance: Acceptance, dry_run: bool) -> bool:
    """Write the acceptance into the desired configuration; return whether that changes it."""
    from dataclasses import replace

    from ...cluster.model.desired import DesiredState
    from ..operations.change import change_desired

    def plan(desired: DesiredState) -> DesiredState:
        now = desired.membership
        if now is not None and (now.digest, now.after) == (acceptance.digest, acceptance.after):
            return desired
        return replace(desired, membership=acceptance)

    return change_desired(configuration, plan, check=dry_run).changed


def _state(configuration: NodeConfiguration) -> tuple[ClusterState, str]:
    """Return the manager's record, and the digest that the LRM of this node reports."""
    from ...cluster.model.state import ClusterState
    from ...node.cluster_storage import ClusterStorage

    with closing(ClusterStorage(configuration)) as storage:
        report = storage.read_report(configuration.me.host_id)
        mine = report is not None and report.node == configuration.node
        state = storage.read_manager() or ClusterState()
        return state, report.membership if report is not None and mine else ""


def _refuse_what_no_daemon_has(own: Membership, running: str) -> None:
    """Raise ``HoldfastError`` unless the daemons of this node run with its configuration."""
    from ...node.daemon.own_membership import UNREADABLE

    if own.fence == UNREADABLE:
        raise HoldfastError("not accepted: the fence settings cannot be read; run this as root")
    if own.digest != running:
        raise HoldfastError(
            "not accepted: the daemons of this node run with another configuration; restart"
            " holdfast-lrm and holdfast-crm, and try again"
        )


def _refuse_lost_services(state: ClusterState, own: Membership) -> None:
    """Raise ``HoldfastError`` while a node that would be removed has services."""
    recorded = state.membership
    for name in sorted({*state.nodes, *(recorded.members if recorded is not None else ())}):
        before = recorded.members.get(name) if recorded is not None else None
        after = own.members.get(name)
        kept = after is not None and (before is None or before.host_id == after.host_id)
        services = [] if kept else state.services_naming(name)
        if services:
            raise HoldfastError(
                f"not accepted: {name} has {', '.join(services)} in the manager's record, and this"
                " node's configuration does not have that node; put it back, and remove it once"
                " its services run elsewhere"
            )


def _repair(options: argparse.Namespace) -> int:
    from ...cluster.crm.repair_plan import Keep
    from ...cluster.model.maintenance import Maintenance
    from ...text import clean
    from ..operations.author import user_name
    from ..operations.repair_records import describe, repair_records

    configuration = load_config(options)
    keep = Keep(options.keep)
    by = Maintenance(options.reason, user_name(), time.time())
    question = (
        f"This replaces the records of cluster {configuration.cluster}; see --dry-run first.\n"
        "Type the cluster's name"
    )
    confirm(options, "not repairing the records", question, configuration.cluster)
    repair = repair_records(configuration, keep, by, check=options.dry_run, timeout=options.timeout)
    if not repair.regressions:
        verb = "would be" if options.dry_run else "was"
        again = f"; a copy of the configuration is damaged: it {verb} written again"
        sys.stdout.write(f"the records are current{again if repair.written_again else ''}\n")
        return AGREED
    for line in describe(repair, keep):
        sys.stdout.write(f"{clean(line)}\n")
    if options.dry_run:
        sys.stdout.write("dry run: nothing was changed\n")
    return AGREED
