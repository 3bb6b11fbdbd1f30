# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``holdfast fence``, ``unfence`` and ``rehearse``: switch a node off or on, or test its fencing.

Exit status: 0 done; 1 a fence or its rehearsal failed; 2 refused, or the cluster did not recover in
time.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import HoldfastError, InputError
from .arguments import (
    add_commands,
    add_config,
    add_flag,
    add_reason,
    add_waiting,
    confirm,
    how,
    load_config,
    waiting,
)

if TYPE_CHECKING:
    # The package fence takes longer to load than most commands take.
    from ...fence.topology import FenceConfiguration
    from ...node.configuration import NodeConfiguration
    from ...result import Result

DONE, FAILED = 0, 1
RECOVERY_WAIT = 180.0
BOOT_WAIT = 600.0
"""Seconds: as long as the playbooks ``fence`` and ``unfence`` wait."""


def register(commands: Any) -> None:
    """Add the commands to the subparsers *commands*."""
    fence, unfence, rehearse = add_commands(
        commands,
        ("fence", _fence, "cut the power of a node, prove it, and see its services run elsewhere"),
        ("unfence", _unfence, "switch a node on that was fenced by hand, and use it again"),
        (
            "rehearse",
            _rehearse,
            "ask the fence devices whether they would do it; nothing is switched",
        ),
    )
    fence.add_argument("node", metavar="NODE")
    add_reason(fence, "why; the cluster keeps it")
    add_flag(
        fence,
        "--while-paused",
        "even if the cluster is paused or disarmed, so that nothing will be recovered",
    )
    add_flag(fence, "--yes", "do not ask for confirmation; needed without a terminal")
    add_waiting(fence, RECOVERY_WAIT)

    unfence.add_argument("node", metavar="NODE")
    add_flag(unfence, "--yes", "also a node that was drained for something else")
    add_waiting(unfence, BOOT_WAIT)

    rehearse.add_argument("nodes", metavar="NODE", nargs="*", help="all nodes, if none is named")
    rehearse.add_argument("--report", metavar="FILE", help="where it is kept, if not as usual")
    add_config(rehearse)


def _fence(options: argparse.Namespace) -> int:
    from ...cluster.model.maintenance import FENCE_REASON, NOT_PROVED

    configuration = load_config(options)
    node = _other_member(configuration, options.node)
    paused = _why_paused(configuration)
    if paused and not options.while_paused:
        raise HoldfastError(
            f"The power of {node} is not cut: {paused}, so that nothing would be recovered."
            " End that with 'holdfast resume', or use --while-paused."
        )
    # Before it is drained: no service is to be moved for a fence that cannot be.
    devices = _devices(configuration, node)
    question = f"This cuts the power of {node}, with all that runs there.\nType the node's name"
    cut_only = _cuts_access_only(devices, node)
    if cut_only:
        question = (
            f"No device of {node} switches its power ({cut_only}). This cuts its access, and it"
            " runs on.\nType the node's name"
        )
    confirm(options, f"not fencing {node}", question, node)
    # Drained, so that the cluster does not switch it on again by itself.
    _use(options, node, "drained", f"{FENCE_REASON}{options.reason}")
    proved = False
    try:
        proved = _switch(devices, node, "off", options.dry_run)
    finally:
        if not proved and not options.dry_run:
            # The reason alone says that the node was fenced.
            with suppress(HoldfastError):
                _declare(options, node, "drained", f"{FENCE_REASON}{options.reason}{NOT_PROVED}")
            sys.stderr.write(
                f"holdfast: {node} stays drained; 'holdfast undrain {node} --yes' ends that\n"
            )
    if not proved:
        return FAILED
    if paused:
        sys.stdout.write(f"nothing is recovered: {paused}\n")
    elif not options.dry_run and not options.no_wait:
        _wait_until_recovered(options)
        sys.stdout.write("recovered: no service waits for that node\n")
    return DONE


def _unfence(options: argparse.Namespace) -> int:
    configuration = load_config(options)
    node = _other_member(configuration, options.node)
    if not options.yes:
        _refuse_drained_by_others(configuration, node)
    devices = _devices(configuration, node)
    cut_only = _cuts_access_only(devices, node)
    if cut_only:
        raise HoldfastError(
            f"No device of {node} switches its power ({cut_only}). Switch it on by hand, if it is"
            " off: it gets its access back when it joins. Then use it again with"
            f" 'holdfast undrain {node} --yes'."
        )
    if not _switch(devices, node, "on", options.dry_run):
        return FAILED
    _use(options, node, "active", None)
    return DONE


def _rehearse(options: argparse.Namespace) -> int:
    from ...text import clean
    from ..report.readiness import rehearsal_path
    from .rehearse_fence import rehearse_fence

    configuration = load_config(options)
    if options.report and not Path(options.report).parent.is_dir():
        raise InputError("--report", options.report, "a file in a folder that exists")
    module_options = {
        "config": str(configuration.fence_configuration),
        "nodes": options.nodes or None,
        "running": [],
        "node_config": options.config,
        "report": options.report or str(rehearsal_path(configuration)),
        "max_age": None,
        "consent": False,
        "with_services": False,
        "address": None,
        "port": 22,
        "boot_timeout": BOOT_WAIT,
    }
    result = rehearse_fence(module_options, False)
    for node, one in result.values["nodes"].items():
        sys.stdout.write(f"{node}: {one['verdict']}\n")
        for text in (*one["problems"], *one["remarks"]):
            sys.stdout.write(f"    {clean(text)}\n")
    return FAILED if result.failure else DONE


def _other_member(configuration: NodeConfiguration, node: str) -> str:
    """Return *node* if it can be switched from here; raises ``InputError`` if not."""
    configuration.require_member(node, "NODE")
    if node == configuration.node:
        raise InputError("NODE", node, "another node than this one; run it there")
    return node


def _why_paused(configuration: NodeConfiguration) -> str:
    """Return why the manager would recover nothing now; empty if it would."""
    from ..report.status import read_status

    status = read_status(configuration)
    if status["global_maintenance"]:
        return "the cluster is in global maintenance"
    disarm = status["disarm"]
    return f"the cluster is {disarm['state']} ({disarm['mode']})" if disarm else ""


def _refuse_drained_by_others(configuration: NodeConfiguration, node: str) -> None:
    """Raise ``HoldfastError`` for a node that is drained for another reason than a fence by hand.

    Somebody may be working on the machine.
    """
    from ...cluster.model.maintenance import fenced_by_hand, maintenance_text
    from ..operations.maintenance import kept_empty

    drained = kept_empty(configuration, node)
    if drained is not None and not fenced_by_hand(drained):
        raise HoldfastError(
            f"{node} is not switched on: it was not drained by a fence, but"
            f" {maintenance_text(drained)}; use --yes once that reason no longer applies."
        )


def _use(options: argparse.Namespace, node: str, state: str, reason: str | None) -> None:
    """Drain a node, or end that, and print the outcome."""
    result = _declare(options, node, state, reason)
    what = "in use again" if state == "active" else "kept empty until 'holdfast unfence'"
    told = how(options) if result.changed else "is already"
    sys.stdout.write(f"{node} {told} {what}\n")


def _declare(options: argparse.Namespace, node: str, state: str, reason: str | None) -> Result:
    """Drain a node, or end that and wait for the node.

    The drain has no expiry: at the expiry of an earlier one the node would be switched on.
    """
    from ..operations.maintenance import declare_maintenance

    module_options: dict[str, Any] = {"node": node, "state": state, "reason": reason, "owner": None}
    module_options.update(waiting(options), until=None, duration=0.0)
    module_options["wait"] = module_options["wait"] and state == "active"
    return declare_maintenance(module_options, options.dry_run)


def _devices(configuration: NodeConfiguration, node: str) -> FenceConfiguration:
    """Return the fence devices; raises ``HoldfastError`` if *node* cannot be switched by them."""
    from ...fence.topology import load_fence_configuration

    devices = load_fence_configuration(str(configuration.fence_configuration))
    devices.levels_of(node)
    return devices


def _cuts_access_only(devices: FenceConfiguration, node: str) -> str:
    """Return why no device of *node* switches its power; empty if one does."""
    from ...fence.reboot import plugs_without_power

    problems = plugs_without_power(devices, node)
    if not all(problems.values()):
        return ""
    return "; ".join(f"{step}: {why}" for step, why in problems.items()) or "it has gates alone"


def _switch(devices: FenceConfiguration, node: str, power: str, dry_run: bool) -> bool:
    """Switch a node off or on by its fence devices; return whether they confirm its power."""
    from ...fence.apply import operate
    from ...text import clean

    result = operate(devices, [node], power, dry_run)
    end = result.values["nodes"][node]
    if result.failure:
        sys.stderr.write(f"holdfast: {clean(result.failure)}\n")
        return False
    is_ = "would be switched" if dry_run and result.changed else "is"
    why = f": {clean(end['reason'])}" if end["reason"] else ""
    sys.stdout.write(f"{node} {is_} {end['after']}{why}\n")
    return True


def _wait_until_recovered(options: argparse.Namespace) -> None:
    from ..cluster_info import inform

    module_options: dict[str, Any] = {
        "until": "recovered",
        "timeout": options.timeout,
        "failover_of": None,
        "since": 0.0,
    }
    module_options.update(
        config=options.config, recovered_from=options.node, probe=False, page=None
    )
    inform(module_options, False)
