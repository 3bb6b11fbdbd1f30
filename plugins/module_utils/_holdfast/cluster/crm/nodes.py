# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manager's view of nodes: health, suspicion, when one is to be fenced, and the way back."""

from __future__ import annotations

import re
from dataclasses import replace

from ..model.maintenance import fenced_by_hand, told
from ..model.observed import Answer, NodeSeen
from ..model.report import Mode
from ..model.state import NodeState, NodeStatus, Power, ProofKind
from ..model.states import ServiceState
from .fencing import begin_failover, declare_dead, order_fences, take_ends
from .health import Judgement, Verdict, judge
from .pending_fences import (
    cut_off,
    fence_may_arrive,
    is_switched_off,
    let_fences_pass,
    restarts,
    with_own_fence,
)
from .probing import awaited_from
from .round import Round

GONE_KEPT = 3600.0
"""Seconds for which a node that was taken out of the configuration is remembered (as in Proxmox
VE's HA manager)."""

TOLD = 160
"""So many characters of a reason stand in the history; all of them in the configuration."""

_SECONDS = re.compile(r"\d+(\.\d+)? s\b")


def look_at_nodes(round_: Round) -> None:
    """Bring every node's status up to date and give the orders that follow from it."""
    _forget_gone(round_)
    let_fences_pass(round_)
    take_ends(round_)
    for name in sorted(round_.seen.nodes):
        _tell_of_maintenance(round_, name)
        _look_at(round_, name, round_.seen.nodes[name])
    if not round_.seen.held and round_.state.disarm != "disarmed":
        order_fences(round_)


def _forget_gone(round_: Round) -> None:
    """Remember for a while what is no longer in the configuration, and for good what runs there.

    Of a dead node there is nothing to remember.  One that is put back begins anew.
    """
    for name in sorted(round_.state.nodes.keys() - round_.seen.nodes.keys()):
        status = round_.state.nodes[name]
        if round_.state.services_on(name):
            if status.state is NodeState.ONLINE:
                reason = "not in the manager's configuration: nobody watches it"
                round_.set_node(name, replace(status, state=NodeState.UNKNOWN, reason=reason))
            continue
        if status.state in (NodeState.OFF, NodeState.FENCE) or (
            status.state is NodeState.GONE and round_.seen.wall - status.since >= GONE_KEPT
        ):
            nodes = {key: one for key, one in round_.state.nodes.items() if key != name}
            round_.state = replace(round_.state, nodes=nodes)
        elif status.state is not NodeState.GONE:
            reason = "taken out of the configuration with no services on it"
            round_.set_node(name, NodeStatus(NodeState.GONE, reason=reason, boot=status.boot))
            round_.say("gone", reason, node=name)


def _tell_of_maintenance(round_: Round, name: str) -> None:
    """Write into the history who wants a node to be empty, why, and that it is over.

    Of one whose time was over that is told already.
    """
    asked, status = round_.seen.wanted.maintenance.get(name), round_.node(name)
    kept = told(asked)[:TOLD] if asked is not None else ""
    if kept == status.kept:
        return
    # Who ends a fence by hand may have switched it on.
    up_again = status.up_again or (not kept and status.state is NodeState.OFF)
    round_.set_node(name, replace(status, kept=kept, up_again=up_again))
    if kept:
        round_.say("maintenance", f"is to be kept empty, {kept}", node=name)
    elif name not in round_.state.ended:
        text = f"is to be used again; it was kept empty, {status.kept}"
        round_.say("maintenance_ended", text, node=name)


def _look_at(round_: Round, name: str, seen: NodeSeen) -> None:
    status = round_.node(name)
    if status.state is NodeState.GONE:
        status = replace(status, state=NodeState.UNKNOWN, reason="")
        round_.set_node(name, status)
    judgement = _judgement(round_, name, seen)
    if judgement.verdict is Verdict.WATCH:
        return
    if name == round_.state.manager and judgement.verdict is not Verdict.HEALTHY:
        judgement = Judgement(Verdict.WAIT, f"{judgement.reason}; it is the manager's own node")
    if status.state is NodeState.OFF:
        _look_at_dead(round_, name, seen, status, judgement)
    elif judgement.verdict is Verdict.HEALTHY:
        _is_healthy(round_, name, seen, status)
    elif status.proved_dead and not round_.state.services_on(name):
        _go_on_proving(round_, name, seen, status)
    elif _lease_is_proof(round_, name, seen, judgement) and not _hands_off(round_, status):
        declare_dead(round_, name, ProofKind.LEASE_EXPIRED, judgement.reason)
    elif judgement.verdict is Verdict.LEFT and _may_be_released(round_, name, status):
        _was_shut_down(round_, name, judgement)
    elif status.state is not NodeState.FENCE:
        _is_silent(round_, name, status, judgement)
    elif _needs_no_fence(round_, name):
        _went_down(round_, name, status)
    elif seen.lease_note and seen.lease_note not in status.reason:
        # It ran out since the fence was decided on, or since its last try failed.
        round_.set_node(name, replace(status, reason=f"{status.reason}; {seen.lease_note}"))


def _was_shut_down(round_: Round, name: str, judgement: Judgement) -> None:
    """Record that a node left in order; it waits for its operator."""
    kind, power = ProofKind.CLEAN_SHUTDOWN, Power.LEFT_OFF
    declare_dead(round_, name, kind, judgement.reason, power=power)


def _judgement(round_: Round, name: str, seen: NodeSeen) -> Judgement:
    """Return the verdict on a node; only a fence tells of a service that waits for its word."""
    judgement = judge(seen, round_.seen.storage_trouble, round_.timing)
    if judgement.verdict not in (Verdict.DEAD, Verdict.LEFT):
        return judgement
    awaited = awaited_from(round_, name, left=judgement.verdict is Verdict.LEFT)
    if not awaited:
        return judgement
    why = f"{judgement.reason}, but that says nothing of {', '.join(awaited)}, which may run there"
    return Judgement(Verdict.FENCE, why)


def _lease_is_proof(round_: Round, name: str, seen: NodeSeen, judgement: Judgement) -> bool:
    """Return whether a host lease that ran out proves the node dead.

    That of one which was disarmed when it was last heard does not, whether a manager noted
    it or it stands in its own record alone: it has let go of its watchdog.
    """
    said = seen.report.mode if seen.report is not None else Mode.ACTIVE
    disarmed = said is Mode.DISARM or round_.node(name).mode == Mode.DISARM.value
    return judgement.verdict is Verdict.DEAD and not disarmed


def _look_at_dead(
    round_: Round, name: str, seen: NodeSeen, status: NodeStatus, judgement: Judgement
) -> None:
    """A dead node is back only with another boot: a late write of the old one proves nothing.

    One that lost its host lease lives on if it had stopped its services and disarmed its
    watchdog by then.  It is back once it has a host lease again and says that nothing runs.
    """
    if judgement.verdict is not Verdict.HEALTHY or seen.report is None:
        if seen.answer is Answer.YES and not status.up_again:
            status = replace(status, up_again=True)
            round_.set_node(name, status)
        _prove_anew(round_, name, seen, status, judgement)
        return
    back = "back after a new start"
    if seen.report.boot == status.boot and not status.shut_down:
        if not status.expired or seen.report.running() or seen.report.lease_lost:
            _contradicts(round_, name, status)
            return
        back = "back with a new host lease; it had stopped all when it lost the last one"
    round_.set_node(
        name,
        replace(
            status,
            state=NodeState.ONLINE,
            boot=seen.report.boot,
            reason=back,
            proof=None,
            power=Power.NONE,
            attempt=0,
            mode=_mode(seen, status),
            up_again=False,
        ),
    )
    round_.say("online", back, node=name)


def _prove_anew(
    round_: Round, name: str, seen: NodeSeen, status: NodeStatus, judgement: Judgement
) -> None:
    """Prove a dead node dead once more for what may have come there since.

    It may have been switched on, and a service have gone over before its source died.
    """
    services = round_.state.services_on(name)
    awaited = _awaited_from_dead(round_, name, seen, status)
    if not (services or awaited) or _hands_off(round_, status):
        return
    if judgement.verdict is Verdict.LEFT and not awaited:
        _was_shut_down(round_, name, judgement)
    elif judgement.verdict is Verdict.DEAD and not awaited:
        declare_dead(round_, name, ProofKind.LEASE_EXPIRED, judgement.reason)
    elif judgement.verdict in (Verdict.FENCE, Verdict.DEAD, Verdict.LEFT):
        reason = f"{', '.join(services)} may have come there since it was proved dead"
        if awaited:
            reason = f"{', '.join(awaited)} may run there, and its proof says nothing of that"
        round_.set_node(name, status.to_be_fenced(reason))
        round_.say("fence", f"{reason}; to be fenced to be sure", node=name)


def _go_on_proving(round_: Round, name: str, seen: NodeSeen, status: NodeStatus) -> None:
    """A dead node is fenced to be sure: no host lease helps, that was of an earlier start.

    What it was for may be declared elsewhere meanwhile, or be found.
    """
    if name in round_.seen.fencing or _awaited_from_dead(round_, name, seen, status):
        return
    if fence_may_arrive(round_, status):
        power = Power.LEFT_OFF if status.power is Power.LEFT_OFF else Power.NONE
        status = replace(with_own_fence(status, round_.seen.wall), power=power)
    round_.set_node(name, replace(status, state=NodeState.OFF, reason=status.proved_by, attempt=0))
    text = "nothing may run there any more of which its proof says nothing"
    _close_failover(round_, name, text)
    round_.say("fence_cancelled", text, node=name)


def _awaited_from_dead(round_: Round, name: str, seen: NodeSeen, status: NodeStatus) -> list[str]:
    """Return the services for which a dead node is fenced to be sure: they wait for its word.

    One that answers, or was fenced, comes up again and says it then, unless its operator has it
    fenced by hand.
    """
    by_hand = _is_fenced_by_hand(round_, name)
    comes_up = seen.answer is not Answer.NO or (
        status.proof is not None and status.proof.is_of_power
    )
    left = status.shut_down and not by_hand
    return awaited_from(round_, name, left=left) if by_hand or not comes_up else []


def _contradicts(round_: Round, name: str, status: NodeStatus) -> None:
    doubtful = "watchdog" if status.expired else "fence device"
    warning = f"it was proved dead, yet the same boot still writes: check its {doubtful}"
    if status.reason != warning:
        round_.set_node(name, replace(status, reason=warning))
        round_.say("contradiction", warning, node=name)


def _is_healthy(round_: Round, name: str, seen: NodeSeen, status: NodeStatus) -> None:
    boot = seen.report.boot if seen.report is not None else status.boot
    mode = _mode(seen, status)
    if status.state is NodeState.FENCE:
        if name in round_.seen.fencing:
            # The fence may still switch it off; it is switched on again after its end.
            return
        if _was_started_anew(status, boot):
            _came_back_anew(round_, name, status, boot)
            return
        why = "its heartbeat is back before it was fenced"
        if status.demanded:
            if name != round_.state.manager:
                return
            why = "it is the manager's own node now, which is never fenced by itself"
        round_.say("fence_cancelled", why, node=name)
    elif status.state in (NodeState.SUSPECT, NodeState.OFFLINE):
        round_.say("online", f"its heartbeat is back; it was {status.state.value}", node=name)
    elif status.state is NodeState.UNKNOWN:
        round_.say("online", "its heartbeat was seen for the first time", node=name)
    if status.state is NodeState.ONLINE and boot == status.boot and mode == status.mode:
        return
    if mode != status.mode:
        round_.say("mode", f"its LRM does: {mode or Mode.ACTIVE.value}", node=name)
    _close_failover(round_, name, "its heartbeat came back")
    round_.set_node(
        name,
        replace(
            status,
            state=NodeState.ONLINE,
            reason="",
            boot=boot,
            power=Power.NONE,
            attempt=0,
            retry_after=0.0,
            mode=mode,
            demanded=False,
            proof=None,
            up_again=False,
        ),
    )


def _close_failover(round_: Round, name: str, why: str) -> None:
    """End the timeline of a node that was not proved dead, and need not be any more."""
    failover = round_.state.open_failover(name)
    if failover is not None and not failover.confirmed:
        ended = replace(failover, finished=round_.seen.wall, proof=f"none: {why}")
        round_.state = round_.state.with_failover(ended)


def _was_started_anew(status: NodeStatus, boot: str) -> bool:
    return bool(status.boot and boot) and boot != status.boot


def _came_back_anew(round_: Round, name: str, status: NodeStatus, boot: str) -> None:
    """A node that was to be fenced writes from another start: what ran before is gone.

    The services for which it was to be fenced are recovered before it is online again.
    Any other that it had is started there again, once its LRM says that it does not run.
    So is one whose start was asked of it: this start may have read that before it was to be
    fenced, and have begun it, or be about to.
    """
    proof = "it was started anew, so what ran on it before is gone"
    services = round_.state.services
    held = [
        one
        for one in round_.state.services_on(name)
        if services[one].state is ServiceState.FENCE
        and services[one].underlying is not ServiceState.REQUEST_START
    ]
    declare_dead(round_, name, ProofKind.RESTARTED, proof, held)
    dead = round_.node(name)
    round_.set_node(name, replace(dead, boot=status.boot or boot, up_again=True))


def _mode(seen: NodeSeen, status: NodeStatus) -> str:
    """Return what a node's LRM says that it does, empty for its usual work."""
    if seen.report is None:
        return status.mode
    return "" if seen.report.mode is Mode.ACTIVE else seen.report.mode.value


def _hands_off(round_: Round, status: NodeStatus) -> bool:
    """Return whether nobody is to be fenced or taken for dead now.

    A fence that was begun before the cluster was to be disarmed is still ended.
    """
    if round_.seen.held:
        return True
    return bool(round_.state.disarm) and status.state is not NodeState.FENCE


def _may_be_released(round_: Round, name: str, status: NodeStatus) -> bool:
    """Return whether a node that left in order lets its services be recovered without a fence.

    One to which a fence was sent is proved dead by that: it may have come while it was rebooted.
    """
    if _hands_off(round_, status):
        return False
    if fence_may_arrive(round_, status) and not is_switched_off(round_, name):
        return False
    return bool(_at_stake(round_, name))


def _needs_no_fence(round_: Round, name: str) -> bool:
    """Return whether a node that is to be fenced went down by its operator's will, and idle.

    A candidate may have meant to fence it long ago, while it was the manager and did not die.
    """
    if name in round_.seen.fencing or _at_stake(round_, name):
        return False
    return is_switched_off(round_, name) or restarts(round_, name)


def _went_down(round_: Round, name: str, status: NodeStatus) -> None:
    reason = "it went down as its operator wanted, with nothing to recover: not fenced"
    _close_failover(round_, name, reason)
    offline = replace(status, state=NodeState.OFFLINE, reason=reason, attempt=0, retry_after=0.0)
    round_.set_node(name, offline)
    round_.say("fence_cancelled", reason, node=name)


def _at_stake(round_: Round, name: str) -> list[str]:
    """Return the services for which a silent node is fenced; frozen ones can wait for it.

    One that is looked for may be there while the node does not say otherwise.  Frozen
    ones wait for their node, but not for one that was to be switched off by hand meanwhile.
    """
    services, by_hand = round_.state.services, _is_fenced_by_hand(round_, name)
    here = [
        one
        for one in round_.state.services_on(name)
        if services[one].state is not ServiceState.FREEZE or by_hand
    ]
    return [*here, *awaited_from(round_, name)]


def _is_fenced_by_hand(round_: Round, name: str) -> bool:
    """Return whether the node is in the maintenance that a fence by hand begins."""
    maintenance = round_.seen.wanted.maintenance.get(name)
    return maintenance is not None and fenced_by_hand(maintenance)


def _is_silent(round_: Round, name: str, status: NodeStatus, judgement: Judgement) -> None:
    """A node without a fresh heartbeat: what is done depends on whether anything is at stake."""
    services = _at_stake(round_, name)
    if not services and not cut_off(round_, name):
        if status.state not in (NodeState.UNKNOWN, NodeState.OFFLINE):
            reason = _why_left_alone(round_, name)
            frozen = round_.state.services_on(name)
            if frozen:
                reason = f"silent; {', '.join(frozen)} wait frozen until it is back: not fenced"
            round_.set_node(name, replace(status, state=NodeState.OFFLINE, reason=reason))
            round_.say("offline", f"{judgement.reason}; {reason}", node=name)
        return
    if status.state is not NodeState.SUSPECT:
        round_.say("suspected", judgement.reason, node=name)
        status = replace(status, since=round_.seen.wall)
    if judgement.verdict is Verdict.WAIT or _hands_off(round_, status):
        reason = judgement.reason
        if round_.state.disarm:
            reason = f"{reason}; not fenced: the cluster is {round_.state.disarm}"
        if round_.seen.held:
            reason = f"{reason}; not fenced: global maintenance ({round_.seen.held})"
        if not _same_but_for_numbers(status, reason):
            round_.set_node(name, replace(status, state=NodeState.SUSPECT, reason=reason))
        return
    failover = begin_failover(round_, name, judgement.reason)
    round_.state = round_.state.with_failover(failover)
    round_.set_node(name, status.to_be_fenced(judgement.reason))
    cause = ", ".join(services) or "certainty: an earlier fence may have switched it off"
    round_.say("fence", f"{judgement.reason}; to be fenced for {cause}", node=name)


def _why_left_alone(round_: Round, name: str) -> str:
    """Return why nothing is done about a silent node that has no services."""
    if _is_fenced_by_hand(round_, name):
        asked = told(round_.seen.wanted.maintenance[name])
        return f"was to be switched off by hand ({asked}): nothing to recover, not fenced"
    if is_switched_off(round_, name):
        return "switched off in order by its operator, with nothing to recover"
    return "silent with no services on it: nothing to recover, not fenced"


def _same_but_for_numbers(status: NodeStatus, reason: str) -> bool:
    """Return whether a suspect's reason is the one recorded, apart from times in seconds.

    Without this every round of a long wait would write the whole record anew.
    """
    if status.state is not NodeState.SUSPECT:
        return False
    return _SECONDS.sub("", status.reason) == _SECONDS.sub("", reason)
