# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``holdfast move``, ``drain``, ``pause`` and their like: change a cluster without Ansible.

The commands call the functions that the modules call: they write the desired configuration, and
wait for the manager to carry it out.  They check before a drain, and at its end, what the
playbooks check.  Exit status: 0 done, or requested before; 2 refused, or not done in time.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from ...errors import HoldfastError, InputError
from ...names import require_known
from .arguments import (
    add_actions,
    add_commands,
    add_flag,
    add_number,
    add_reason,
    add_waiting,
    confirm,
    load_config,
    tell,
    waiting,
)

if TYPE_CHECKING:
    from ...node.configuration import NodeConfiguration
    from ...result import Result


DONE = 0
NODE_WAIT = 120.0
CLUSTER_WAIT = 60.0
"""Seconds; as long as the modules wait."""

MODES = ("freeze", "ignore")


def register(commands: Any) -> None:
    """Add the commands to the subparsers *commands*."""
    _register_service(commands)
    _register_maintenance(commands, ("drain", "undrain", "pause", "disarm", "resume"))
    # As they were called before.
    _register_service(add_actions(commands, "service", ""))
    former = ("drain", "return", "hold", "disarm", "end")
    _register_maintenance(add_actions(commands, "maintenance", ""), former)


def _register_maintenance(actions: Any, verbs: tuple[str, str, str, str, str]) -> None:
    """Add the commands by *verbs*: drain a node, use it again, pause, disarm, and end both."""
    acts = (_drain, _return, _hold, _disarm, _hold)
    helps = (
        "move all services off a node, and keep it empty",
        "use a drained node again",
        "pause the whole cluster (global maintenance); watchdogs stay armed",
        "disable HA in the whole cluster, and release all watchdogs cleanly",
        "end a pause, or arm a disarmed cluster again",
    )
    drain, use, hold, disarm, end = add_commands(actions, *zip(verbs, acts, helps))
    for action in (drain, use):
        action.add_argument("node", metavar="NODE")
    add_flag(
        drain, "--yes", "even if the cluster is paused or disarmed, or a service has nowhere to go"
    )
    add_flag(use, "--yes", "also a node that was fenced by hand; the cluster may switch it on")
    add_flag(disarm, "--yes", "do not ask for confirmation; needed without a terminal")
    for action in (drain, hold, disarm):
        add_reason(action, "why; it is shown by status")
    for action in (drain, hold):
        action.add_argument(
            "--for",
            dest="span",
            metavar="SPAN",
            help="end it 90m, 2h, 7d after its beginning: of one in force, after that one's",
        )
    disarm.add_argument(
        "--mode",
        choices=MODES,
        default=MODES[0],
        help="freeze: services stay as they are; ignore: start, stop and move them by hand",
    )
    for action in (drain, use, hold, disarm, end):
        add_waiting(action, NODE_WAIT if action in (drain, use) else CLUSTER_WAIT)
    use.set_defaults(reason=None, span=None)
    hold.set_defaults(state="present", mode="hold")
    disarm.set_defaults(state="present", span=None)
    end.set_defaults(state="absent", mode="hold", reason=None, span=None)


def _register_service(actions: Any) -> None:
    start, stop, clear, move = add_commands(
        actions,
        ("start", _declare, "keep a service running"),
        (
            "stop",
            lambda options: _declare(options, "stopped", stop_within=options.within),
            "stop a service, and keep it stopped",
        ),
        (
            "clear",
            _clear,
            "take a service out of its error, once the cause is fixed, and start it",
        ),
        ("move", _move, "move a service to a node, while it runs if its agent can"),
    )
    for action in (start, stop, clear, move):
        action.add_argument("service", metavar="SERVICE")
    move.add_argument("node", metavar="NODE", nargs="?", help="only --unpin needs none")
    add_flag(move, "--force", "also where a rule would move it away from the node at once")
    pin = move.add_mutually_exclusive_group()
    pin.add_argument(
        "--pin",
        action="store_true",
        default=None,
        help="keep it on the node, whatever other nodes its rules prefer, until it is unpinned",
    )
    pin.add_argument(
        "--unpin",
        dest="pin",
        action="store_false",
        help="let its rules decide again where it runs; without NODE it is not moved",
    )
    text = "stop timeout of each resource, this once"
    add_number(stop, "--within", text, kind="stop_within", metavar="SECONDS")
    for action in (start, stop, clear, move):
        add_waiting(action, NODE_WAIT)


def _drain(options: argparse.Namespace) -> int:
    if not options.yes:
        _refuse_what_cannot_be_emptied(load_config(options), options.node)
    result = _maintain(options, "drained")
    tell(options, result, options.node, "drained")
    for service, node in sorted(result.values.get("moved", {}).items()):
        sys.stdout.write(f"  {service} is on {node or 'no node'}\n")
    return DONE


def _return(options: argparse.Namespace) -> int:
    if not options.yes:
        _refuse_fenced_by_hand(load_config(options), options.node)
    tell(options, _maintain(options, "active"), options.node, "in use again")
    return DONE


def _maintain(options: argparse.Namespace, state: str) -> Result:
    from ..operations.maintenance import declare_maintenance

    module_options = {"node": options.node, "state": state, **_why(options), **waiting(options)}
    return declare_maintenance(module_options, options.dry_run)


def _refuse_what_cannot_be_emptied(configuration: NodeConfiguration, node: str) -> None:
    """Raise ``HoldfastError`` with the reason if not all services would leave *node* now.

    A drain that is in force may be waited for, or changed: it moves nothing more.
    """
    from ..forecast.moves import emptied, look

    state, observed = look(configuration)
    if node in observed.desired.maintenance:
        return
    paused = state.why_paused()
    if paused:
        raise HoldfastError(
            f"{node} is not drained: {paused}, so that no service would leave it. End that with"
            " 'holdfast resume', or use --yes."
        )
    blocked = emptied(state, observed, [node])[0].blocked
    if blocked:
        told = "; ".join(f"{service}: {why}" for service, why in blocked.items())
        raise HoldfastError(
            f"{node} is not drained, as not everything can leave: {told}. Fix that, or use --yes."
        )


def _refuse_fenced_by_hand(configuration: NodeConfiguration, node: str) -> None:
    """Raise ``HoldfastError`` for a node that was fenced by hand: the cluster may switch it on."""
    from ...cluster.model.maintenance import fenced_by_hand, maintenance_text
    from ..operations.maintenance import kept_empty

    drained = kept_empty(configuration, node)
    if drained is not None and fenced_by_hand(drained):
        raise HoldfastError(
            f"{node} is not used again: it was fenced by hand ({maintenance_text(drained)})."
            f" Switch it on with 'holdfast unfence {node}', or use --yes."
        )


def _disarm(options: argparse.Namespace) -> int:
    cluster = load_config(options).cluster
    question = (
        f"While cluster {cluster} is disarmed no service is recovered and no node is fenced.\n"
        "Type the cluster's name"
    )
    confirm(options, f"not disarming {cluster}", question, cluster)
    return _hold(options)


def _hold(options: argparse.Namespace) -> int:
    from ..operations.disarm import declare_cluster_maintenance

    module_options = {
        "state": options.state,
        "mode": options.mode,
        **_why(options),
        **waiting(options),
    }
    result = declare_cluster_maintenance(module_options, options.dry_run)
    begun = "paused" if options.mode == "hold" else f"disarmed ({options.mode})"
    tell(options, result, "the cluster", begun if options.state == "present" else "managed again")
    return DONE


def _why(options: argparse.Namespace) -> dict[str, Any]:
    """Return reason and duration as a module's options; the owner is who runs the command."""
    from ..report.history import span_seconds

    seconds = None
    if options.span is not None:
        seconds = span_seconds(options.span)
        if not seconds:
            raise InputError("--for", options.span, "a span such as 90s, 30m, 2h or 7d")
    return {"reason": options.reason, "owner": None, "until": None, "duration": seconds}


def _declare(options: argparse.Namespace, state: str = "started", **wish: Any) -> int:
    from ..operations.change import read_cluster
    from ..operations.service import declare_service

    declared = read_cluster(load_config(options))[0].services
    require_known(options.service, "SERVICE", declared, "the id of a declared service")
    module_options = {
        "name": options.service,
        "resources": None,
        "state": state,
        **wish,
        **waiting(options),
    }
    result = declare_service(module_options, options.dry_run)
    tell(options, result, options.service, state)
    status = result.values.get("status")
    if status:
        from ...text import clean

        where = f" on {status['node']}" if status["node"] else ""
        sys.stdout.write(f"  {status['state']}{where}: {clean(status['reason'])}\n")
    return DONE


def _clear(options: argparse.Namespace) -> int:
    """Start a service that is in error; refuse one that is not."""
    from ...cluster.model.states import ServiceState
    from ..forecast.moves import look

    state, _observed = look(load_config(options))
    status = state.services.get(options.service)
    if status is not None and status.state is not ServiceState.ERROR:
        raise HoldfastError(
            f"{options.service} is in no error, but {status.state.value}: nothing was done."
        )
    return _declare(options, clear_error=True)


def _move(options: argparse.Namespace) -> int:
    from ..operations.move import declare_move

    module_options = {
        "name": options.service,
        "node": options.node,
        "live": True,
        **waiting(options),
    }
    module_options.update(pin=options.pin, force=options.force)
    result = declare_move(module_options, options.dry_run)
    where = f"on {options.node}" if options.node else "no longer pinned"
    if options.pin:
        where += ", pinned there"
    tell(options, result, options.service, where)
    return DONE
