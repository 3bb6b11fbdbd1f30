# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manager's decisions about nodes: health, suspicion, fencing, and return to service."""

from __future__ import annotations

import re
from dataclasses import replace

from ..model.maintenance import fenced_by_hand, maintenance_text
from ..model.observed import Answer, ObservedNode
from ..model.report import Mode
from ..model.state import NodeState, NodeStatus, Power, ProofKind
from ..model.states import ServiceState
from .fencing import (
    begin_failover,
    cut_off,
    declare_dead,
    drop_past_fences,
    fence_may_arrive,
    handle_ends,
    order_fences,
    with_own_fence,
)
from .health import Judgement, Verdict, judge
from .probing import services_waiting_for
from .round import Round

GONE_KEPT = 3600.0
"""Seconds for which a node that was removed from the configuration is remembered (as in Proxmox
VE's HA manager)."""

REASON_SHOWN = 160
"""The number of characters of a maintenance's reason that an event shows."""

_SECONDS = re.compile(r"\d+(\.\d+)? s\b")


def update_nodes(round_: Round) -> None:
    """Update every node's status and order the fences that are due."""
    _forget_gone(round_)
    drop_past_fences(round_)
    handle_ends(round_)
    for name in sorted(round_.observed.nodes):
        _record_maintenance(round_, name)
        _update_node(round_, name, round_.observed.nodes[name])
    if not round_.observed.held and round_.state.disarm != "disarmed":
        order_fences(round_)


def _forget_gone(round_: Round) -> None:
    """Remember a removed node for a while, and as long as services may run on it.

    A dead node is forgotten at once.  A node that is added again starts as unknown.
    """
    for name in sorted(round_.state.nodes.keys() - round_.observed.nodes.keys()):
        status = round_.state.nodes[name]
        if round_.state.services_on(name):
            if status.state is NodeState.ONLINE:
                reason = "not in the manager's configuration: nobody watches it"
                round_.set_node(name, replace(status, state=NodeState.UNKNOWN, reason=reason))
            continue
        if status.state in (NodeState.OFF, NodeState.FENCE) or (
            status.state is NodeState.GONE and round_.observed.wall - status.since >= GONE_KEPT
        ):
            nodes = {key: one for key, one in round_.state.nodes.items() if key != name}
            round_.state = replace(round_.state, nodes=nodes)
        elif status.state is not NodeState.GONE:
            reason = "taken out of the configuration with no services on it"
            round_.set_node(name, NodeStatus(NodeState.GONE, reason=reason, boot=status.boot))
            round_.say("gone", reason, node=name)


def _record_maintenance(round_: Round, name: str) -> None:
    """Write an event when a node's maintenance begins or ends.

    The end of an expired maintenance already has an event.
    """
    maintenance, status = round_.observed.desired.maintenance.get(name), round_.node(name)
    kept = maintenance_text(maintenance)[:REASON_SHOWN] if maintenance is not None else ""
    if kept == status.kept:
        return
    # An operator who ends a fence by hand may have powered the node on.
    up_again = status.up_again or (not kept and status.state is NodeState.OFF)
    round_.set_node(name, replace(status, kept=kept, up_again=up_again))
    if kept:
        round_.say("maintenance", f"maintenance begins, {kept}", node=name)
    elif name not in round_.state.ended:
        text = f"maintenance ends; it was {status.kept}"
        round_.say("maintenance_ended", text, node=name)


def _update_node(round_: Round, name: str, observed: ObservedNode) -> None:
    status = round_.node(name)
    if status.state is NodeState.GONE:
        status = replace(status, state=NodeState.UNKNOWN, reason="")
        round_.set_node(name, status)
    judgement = _judgement(round_, name, observed)
    if judgement.verdict is Verdict.WATCH:
        return
    if name == round_.state.manager and judgement.verdict is not Verdict.HEALTHY:
        judgement = Judgement(Verdict.WAIT, f"{judgement.reason}; it is the manager's own node")
    if status.state is NodeState.OFF:
        _update_dead_node(round_, name, observed, status, judgement)
    elif judgement.verdict is Verdict.HEALTHY:
        _handle_healthy(round_, name, observed, status)
    elif status.proved_dead and not round_.state.services_on(name):
        _end_repeated_fence(round_, name, observed, status)
    elif _lease_is_proof(round_, name, observed, judgement) and not _is_paused(round_, status):
        declare_dead(round_, name, ProofKind.LEASE_EXPIRED, judgement.reason)
    elif judgement.verdict is Verdict.LEFT and _may_be_released(round_, name, status):
        _record_shutdown(round_, name, judgement)
    elif status.state is not NodeState.FENCE:
        _handle_silent(round_, name, status, judgement)
    elif _needs_no_fence(round_, name):
        _cancel_needless_fence(round_, name, status)
    elif observed.lease_note and observed.lease_note not in status.reason:
        # The host lease expired after the fence was decided or last tried.
        round_.set_node(name, replace(status, reason=f"{status.reason}; {observed.lease_note}"))


def _record_shutdown(round_: Round, name: str, judgement: Judgement) -> None:
    """Record that a node was shut down cleanly and waits for its operator."""
    kind, power = ProofKind.CLEAN_SHUTDOWN, Power.LEFT_OFF
    declare_dead(round_, name, kind, judgement.reason, power=power)


def _judgement(round_: Round, name: str, observed: ObservedNode) -> Judgement:
    """Return the verdict on a node; fence it if only that answers an open probe.

    A host lease says nothing of an unmanaged service.
    """
    judgement = judge(
        observed, round_.observed.storage_trouble, round_.timing, round_.observed.joined_for
    )
    if judgement.verdict not in (Verdict.DEAD, Verdict.LEFT):
        return judgement
    awaited = services_waiting_for(round_, name, left=judgement.verdict is Verdict.LEFT)
    if not awaited:
        return judgement
    why = f"{judgement.reason}, but that is no proof for {', '.join(awaited)}, which may run there"
    return Judgement(Verdict.FENCE, why)


def _lease_is_proof(round_: Round, name: str, observed: ObservedNode, judgement: Judgement) -> bool:
    """Return whether an expired host lease proves the node dead.

    It does not if the node was disarmed when it last reported, because its watchdog is disarmed,
    too.
    """
    said = observed.report.mode if observed.report is not None else Mode.ACTIVE
    disarmed = said is Mode.DISARM or round_.node(name).mode == Mode.DISARM.value
    return judgement.verdict is Verdict.DEAD and not disarmed


def _update_dead_node(
    round_: Round, name: str, observed: ObservedNode, status: NodeStatus, judgement: Judgement
) -> None:
    """Bring a dead node back if it reports another boot.

    The same boot may be a late write.  While a fence of an earlier boot is under way, a node that
    restarted stays off: the fence may still power it off.  A node that lost its host lease may
    still run if it had stopped its services and disarmed its watchdog.  It is back once it has a
    new host lease and reports that nothing runs.
    """
    if judgement.verdict is not Verdict.HEALTHY or observed.report is None:
        if observed.answer is Answer.YES and not status.up_again:
            status = replace(status, up_again=True)
            round_.set_node(name, status)
        _prove_again(round_, name, observed, status, judgement)
        return
    if status.restarted and name in round_.observed.fencing:
        return
    back = "back after a new start"
    if observed.report.boot == status.boot and not status.shut_down:
        if not status.expired or observed.report.running() or observed.report.lease_lost:
            _record_contradiction(round_, name, status)
            return
        back = "back with a new host lease; it had stopped all when it lost the last one"
    round_.set_node(
        name,
        replace(
            status,
            state=NodeState.ONLINE,
            boot=observed.report.boot,
            reason=back,
            proof=None,
            power=Power.NONE,
            attempt=0,
            mode=_mode(observed, status),
            up_again=False,
        ),
    )
    round_.say("online", back, node=name)


def _prove_again(
    round_: Round, name: str, observed: ObservedNode, status: NodeStatus, judgement: Judgement
) -> None:
    """Prove a dead node dead again for services that may have come there since.

    It may have been powered on, and a live migration may have ended there before the source died.
    """
    services = round_.state.services_on(name)
    awaited = _services_waiting_for_dead_node(round_, name, observed, status)
    if not (services or awaited) or _is_paused(round_, status):
        return
    if judgement.verdict is Verdict.LEFT and not awaited:
        _record_shutdown(round_, name, judgement)
    elif judgement.verdict is Verdict.DEAD and not awaited:
        declare_dead(round_, name, ProofKind.LEASE_EXPIRED, judgement.reason)
    elif judgement.verdict in (Verdict.FENCE, Verdict.DEAD, Verdict.LEFT):
        reason = f"{', '.join(services)} may have come there since it was confirmed dead"
        if awaited:
            reason = f"{', '.join(awaited)} may run there, and its proof does not cover that"
        round_.set_node(name, status.to_be_fenced(reason))
        round_.say("fence", f"{reason}; to be fenced to be sure", node=name)


def _end_repeated_fence(
    round_: Round, name: str, observed: ObservedNode, status: NodeStatus
) -> None:
    """End the second fence of a dead node if no service needs it any more.

    The service may have been declared elsewhere or found.  The host lease is no proof here, because
    it is from an earlier boot.
    """
    if name in round_.observed.fencing or _services_waiting_for_dead_node(
        round_, name, observed, status
    ):
        return
    if fence_may_arrive(round_, status):
        power = Power.LEFT_OFF if status.power is Power.LEFT_OFF else Power.NONE
        status = replace(with_own_fence(status, round_.observed.wall), power=power)
    round_.set_node(name, replace(status, state=NodeState.OFF, reason=status.proved_by, attempt=0))
    text = "nothing may run there any more that its proof does not cover"
    _close_failover(round_, name, text)
    round_.say("fence_cancelled", text, node=name)


def _services_waiting_for_dead_node(
    round_: Round, name: str, observed: ObservedNode, status: NodeStatus
) -> list[str]:
    """Return the services that need a second fence of a dead node.

    A node that answers or was fenced boots and answers the probe itself, unless its operator fences
    it by hand.
    """
    by_hand = _is_fenced_by_hand(round_, name)
    comes_up = observed.answer is not Answer.NO or (
        status.proof is not None and status.proof.is_of_power
    )
    left = status.shut_down and not by_hand
    return services_waiting_for(round_, name, left=left) if by_hand or not comes_up else []


def _record_contradiction(round_: Round, name: str, status: NodeStatus) -> None:
    culprit = "watchdog" if status.expired else "fence device"
    warning = f"it was confirmed dead, yet the same boot still writes: check its {culprit}"
    if status.reason != warning:
        round_.set_node(name, replace(status, reason=warning))
        round_.say("contradiction", warning, node=name)


def _handle_healthy(round_: Round, name: str, observed: ObservedNode, status: NodeStatus) -> None:
    boot = observed.report.boot if observed.report is not None else status.boot
    mode = _mode(observed, status)
    if status.state is NodeState.FENCE:
        if _has_restarted(status, boot):
            _handle_restart(round_, name, status, boot)
            return
        if name in round_.observed.fencing:
            # The fence may still power the node off.  It is powered on after the fence has ended.
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
        round_.say("online", "its heartbeat was observed for the first time", node=name)
    if status.state is NodeState.ONLINE and boot == status.boot and mode == status.mode:
        return
    if mode != status.mode:
        round_.say("mode", f"LRM entered {mode or Mode.ACTIVE.value} mode", node=name)
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
    """End the failover of a node that was not confirmed dead and need not be any more."""
    failover = round_.state.open_failover(name)
    if failover is not None and not failover.confirmed:
        ended = replace(failover, finished=round_.observed.wall, proof=f"none: {why}")
        round_.state = round_.state.with_failover(ended)


def _has_restarted(status: NodeStatus, boot: str) -> bool:
    return bool(status.boot and boot) and boot != status.boot


def _handle_restart(round_: Round, name: str, status: NodeStatus, boot: str) -> None:
    """Recover the services of a node that was to be fenced and reports another boot.

    A fence that is under way need not end first: it would prove no more of the earlier boot, as
    after a takeover, when the last manager's fence may be under way as well.  What ran before the
    boot is gone.  Only services in ``fence`` are recovered.  Others are started there again once
    the LRM reports them stopped.  A service in ``request_start`` is not recovered: the new boot may
    have read that command.
    """
    proof = "it was restarted, so what ran on it before is gone"
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


def _mode(observed: ObservedNode, status: NodeStatus) -> str:
    """Return the mode of a node's LRM, empty for ``active``."""
    if observed.report is None:
        return status.mode
    return "" if observed.report.mode is Mode.ACTIVE else observed.report.mode.value


def _is_paused(round_: Round, status: NodeStatus) -> bool:
    """Return whether no node may be fenced or declared dead now.

    A fence that began before the cluster was to be disarmed continues.
    """
    if round_.observed.held:
        return True
    return bool(round_.state.disarm) and status.state is not NodeState.FENCE


def _may_be_released(round_: Round, name: str, status: NodeStatus) -> bool:
    """Return whether the services of a node that left cleanly are recovered without a fence.

    A node to which a fence was sent is confirmed dead by it: it may have come during a reboot.
    """
    if _is_paused(round_, status):
        return False
    if fence_may_arrive(round_, status) and not round_.is_switched_off(name):
        return False
    return bool(_services_at_stake(round_, name))


def _needs_no_fence(round_: Round, name: str) -> bool:
    """Return whether a node that is to be fenced was shut down by its operator and is idle.

    A candidate may have announced the fence long ago, while the node was manager and did not die.
    """
    if name in round_.observed.fencing or _services_at_stake(round_, name):
        return False
    return round_.is_switched_off(name) or round_.restarts(name)


def _cancel_needless_fence(round_: Round, name: str, status: NodeStatus) -> None:
    reason = "its operator shut it down, with nothing to recover: not fenced"
    _close_failover(round_, name, reason)
    offline = replace(status, state=NodeState.OFFLINE, reason=reason, attempt=0, retry_after=0.0)
    round_.set_node(name, offline)
    round_.say("fence_cancelled", reason, node=name)


def _services_at_stake(round_: Round, name: str) -> list[str]:
    """Return the services for which a silent node is fenced.

    A service that is being probed may run there until the node answers.  Frozen services wait for
    their node, but not if it is being fenced by hand.
    """
    services, by_hand = round_.state.services, _is_fenced_by_hand(round_, name)
    here = [
        one
        for one in round_.state.services_on(name)
        if services[one].state is not ServiceState.FREEZE or by_hand
    ]
    return [*here, *services_waiting_for(round_, name)]


def _is_fenced_by_hand(round_: Round, name: str) -> bool:
    """Return whether the node is in the maintenance that a fence by hand begins."""
    maintenance = round_.observed.desired.maintenance.get(name)
    return maintenance is not None and fenced_by_hand(maintenance)


def _handle_silent(round_: Round, name: str, status: NodeStatus, judgement: Judgement) -> None:
    """Suspect or fence a silent node if services are at stake; otherwise mark it offline."""
    services = _services_at_stake(round_, name)
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
        status = replace(status, since=round_.observed.wall)
    if judgement.verdict is Verdict.WAIT or _is_paused(round_, status):
        reason = judgement.reason
        if round_.state.disarm:
            reason = f"{reason}; not fenced: the cluster is {round_.state.disarm}"
        if round_.observed.held:
            reason = f"{reason}; not fenced: global maintenance ({round_.observed.held})"
        if not _same_but_for_numbers(status, reason):
            round_.set_node(name, replace(status, state=NodeState.SUSPECT, reason=reason))
        return
    failover = begin_failover(round_, name, judgement.reason)
    round_.state = round_.state.with_failover(failover)
    round_.set_node(name, status.to_be_fenced(judgement.reason))
    cause = ", ".join(services) or "certainty: an earlier fence may have switched it off"
    round_.say("fence", f"{judgement.reason}; to be fenced for {cause}", node=name)


def _why_left_alone(round_: Round, name: str) -> str:
    """Return why a silent node without services is not fenced."""
    if _is_fenced_by_hand(round_, name):
        maintenance = maintenance_text(round_.observed.desired.maintenance[name])
        return (
            f"its operator switches it off by hand ({maintenance}): nothing to recover, not fenced"
        )
    if round_.is_switched_off(name):
        return "shut down cleanly by its operator, with nothing to recover"
    return "silent with no services on it: nothing to recover, not fenced"


def _same_but_for_numbers(status: NodeStatus, reason: str) -> bool:
    """Return whether a suspect's recorded reason differs only in times.

    Otherwise every turn of a long wait would write the whole record.
    """
    if status.state is not NodeState.SUSPECT:
        return False
    return _SECONDS.sub("", status.reason) == _SECONDS.sub("", reason)
