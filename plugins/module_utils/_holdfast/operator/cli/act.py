# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``holdfast maintenance`` and ``service``: what an operator does to a cluster without Ansible.

They do what the modules do, by the same functions, and only declare: the manager carries it
out, and the command waits for it.  What the playbooks look at before a drain and at its end is
looked at here too.  Exit status: 0 done, or as it was asked for already; 2 it was refused, or
not done in time.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import HoldfastError, InputError
from ...node.configuration import NodeConfiguration, load
from .arguments import add_config, add_reason, add_waiting, tell, waiting

if TYPE_CHECKING:
    from ...result import Result

DONE = 0
NODE_WAIT = 120.0
CLUSTER_WAIT = 60.0
"""Seconds; as long as the modules wait."""

MODES = ("freeze", "ignore")


def register(commands: Any) -> None:
    """Add the commands to the subparsers *commands*."""
    _register_maintenance(
        commands.add_parser(
            "maintenance", help="drain a node or use it again; hold or disarm the whole cluster"
        )
    )
    _register_service(
        commands.add_parser("service", help="start, stop or move a service; clear its error")
    )


def _register_maintenance(maintenance: argparse.ArgumentParser) -> None:
    actions = maintenance.add_subparsers(required=True, metavar="ACTION")
    drain = actions.add_parser("drain", help="move all services off a node, and keep it empty")
    use = actions.add_parser("return", help="use a node again that was drained")
    hold = actions.add_parser(
        "hold", help="let the manager do nothing; watchdogs stay: a node without storage is reset"
    )
    disarm = actions.add_parser(
        "disarm", help="let the manager do nothing, and all watchdogs go, in an orderly way"
    )
    end = actions.add_parser("end", help="end what hold or disarm began")
    for action in (drain, use):
        action.add_argument("node", metavar="NODE")
    drain.add_argument(
        "--yes",
        action="store_true",
        help="even if the cluster is held or disarmed, or a service has nowhere to go",
    )
    use.add_argument(
        "--yes",
        action="store_true",
        help="also a node that was fenced by hand; the cluster may switch it on",
    )
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
        add_config(action)
    drain.set_defaults(act=_drain)
    use.set_defaults(act=_return, reason=None, span=None)
    hold.set_defaults(act=lambda options: _hold(options, "present"), mode="hold")
    disarm.set_defaults(act=lambda options: _hold(options, "present"), span=None)
    end.set_defaults(
        act=lambda options: _hold(options, "absent"), mode="hold", reason=None, span=None
    )


def _register_service(service: argparse.ArgumentParser) -> None:
    actions = service.add_subparsers(required=True, metavar="ACTION")
    for name, what, act in (
        ("start", "keep a service running", lambda options: _declare(options, state="started")),
        ("stop", "stop a service, and keep it stopped", _stop),
        (
            "clear",
            "take a service out of its error, once what was wrong is mended, and start it",
            _clear,
        ),
        ("move", "move a service to a node, while it runs if its agent can", _move),
    ):
        action = actions.add_parser(name, help=what)
        action.add_argument("service", metavar="SERVICE")
        if name == "move":
            action.add_argument("node", metavar="NODE")
        if name == "stop":
            action.add_argument(
                "--within", type=float, metavar="SECONDS", help="for each resource of it, this once"
            )
        add_waiting(action, NODE_WAIT)
        add_config(action)
        action.set_defaults(act=act)


def _drain(options: argparse.Namespace) -> int:
    if not options.yes:
        _refuse_what_cannot_be_emptied(load(Path(options.config)), options.node)
    result = _maintain(options, "drained")
    tell(options, result, options.node, "drained")
    for service, node in sorted(result.values.get("moved", {}).items()):
        sys.stdout.write(f"  {service} is on {node or 'no node'}\n")
    return DONE


def _return(options: argparse.Namespace) -> int:
    if not options.yes:
        _refuse_fenced_by_hand(load(Path(options.config)), options.node)
    tell(options, _maintain(options, "active"), options.node, "in use again")
    return DONE


def _maintain(options: argparse.Namespace, state: str) -> Result:
    from ..operations.maintenance import declare_maintenance

    asked = {"node": options.node, "state": state, **_why(options), **waiting(options)}
    return declare_maintenance(asked, options.dry_run)


def _refuse_what_cannot_be_emptied(configuration: NodeConfiguration, node: str) -> None:
    """Raise ``HoldfastError`` with the reason if not all services would leave *node* now.

    A drain that is there already may be waited for, and told otherwise: it moves nothing more.
    """
    from ...cluster.crm.global_maintenance import why_held
    from ..forecast.moves import emptied, look

    state, seen = look(configuration)
    if node in seen.wanted.maintenance:
        return
    held = why_held(state)
    if held:
        raise HoldfastError(
            f"{node} is not drained: {held}, so that no service would leave it. End that with"
            " 'holdfast maintenance end', or say --yes."
        )
    blocked = emptied(state, seen, [node])[0].blocked
    if blocked:
        told = "; ".join(f"{service}: {why}" for service, why in blocked.items())
        raise HoldfastError(
            f"{node} is not drained, as not everything can leave: {told}. Mend that, or say --yes."
        )


def _refuse_fenced_by_hand(configuration: NodeConfiguration, node: str) -> None:
    """Raise ``HoldfastError`` for a node that was fenced by hand: it may be switched on then."""
    from ...cluster.model.maintenance import fenced_by_hand, told
    from ..operations.maintenance import kept_empty

    drained = kept_empty(configuration, node)
    if drained is not None and fenced_by_hand(drained):
        raise HoldfastError(
            f"{node} is not used again: it was fenced by hand ({told(drained)}). Switch it on with"
            f" 'holdfast unfence {node}', or say --yes."
        )


def _hold(options: argparse.Namespace, state: str) -> int:
    from ..operations.disarm import declare_cluster_maintenance

    asked = {"state": state, "mode": options.mode, **_why(options), **waiting(options)}
    result = declare_cluster_maintenance(asked, options.dry_run)
    begun = "held" if options.mode == "hold" else f"disarmed ({options.mode})"
    tell(options, result, "the cluster", begun if state == "present" else "managed again")
    return DONE


def _why(options: argparse.Namespace) -> dict[str, Any]:
    """Return what is told of a maintenance; its owner is who runs the command."""
    from ..report.history import span_seconds

    seconds = None
    if options.span is not None:
        seconds = span_seconds(options.span)
        if not seconds:
            raise InputError("--for", options.span, "a span such as 90s, 30m, 2h or 7d")
    return {"reason": options.reason, "owner": None, "until": None, "duration": seconds}


def _declare(options: argparse.Namespace, **wish: Any) -> int:
    from ..operations.service import declare_service

    _refuse_unknown(options)
    asked = {"name": options.service, "resources": None, **wish, **waiting(options)}
    result = declare_service(asked, options.dry_run)
    tell(options, result, options.service, wish["state"])
    status = result.values.get("status")
    if status:
        from ...text import clean

        where = f" on {status['node']}" if status["node"] else ""
        sys.stdout.write(f"  {status['state']}{where}: {clean(status['reason'])}\n")
    return DONE


def _clear(options: argparse.Namespace) -> int:
    """Take a service out of its error; one that is in none is not started by that."""
    from ...cluster.model.states import (
        ServiceState,
    )
    from ..forecast.moves import look

    state, _seen = look(load(Path(options.config)))
    status = state.services.get(options.service)
    if status is not None and status.state is not ServiceState.ERROR:
        raise HoldfastError(
            f"{options.service} is in no error, but {status.state.value}: nothing was done."
        )
    return _declare(options, state="started", clear_error=True)


def _refuse_unknown(options: argparse.Namespace) -> None:
    """Raise ``InputError`` for a service that nobody declared: a name alone declares none."""
    from ..operations.change import read_cluster

    declared = sorted(read_cluster(load(Path(options.config)))[0].services)
    if options.service not in declared:
        known = ", ".join(declared) or "there are none yet"
        raise InputError("SERVICE", options.service, f"the id of a declared service ({known})")


def _stop(options: argparse.Namespace) -> int:
    return _declare(options, state="stopped", stop_within=options.within)


def _move(options: argparse.Namespace) -> int:
    from ..operations.move import declare_move

    asked = {"name": options.service, "node": options.node, "live": True, **waiting(options)}
    result = declare_move(asked, options.dry_run)
    tell(options, result, options.service, f"on {options.node}")
    return DONE
