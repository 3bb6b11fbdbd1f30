# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the fencing of each node will work, judged from the answers of its devices.

Wrong fencing shows on the day it is needed: a password that changed, an outlet that was moved.
The worst is the plug of something else that is off already: a fence by it would be confirmed
while the node lives.  So a plug has to be listed by its device, be on while its node is on, and
belong to one node only, under whatever name.

Nothing here asks a device: ``ask.py`` does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from ...errors import FenceError
from ..metadata import ASSUMED, FABRIC, GATE, NONE, PROOF_RULES, VERIFIED, wait_for_proof, weakest
from ..plugs import ListedPlug, find_plug, shown
from ..topology import FenceConfiguration, FenceDevice, FenceStep

WORKS = "works"
DEGRADED = "degraded"
FAILS = "fails"

SHARE_OF_TIMEOUT = 0.5
"""The share of its timeout that an off with its verification may take without a remark."""

CALLS_OF_A_FENCE = 2
"""The calls within one timeout: the off, and the status that proves it."""

_NO_PROBLEM = ""
_TOLD = ("level", "evidence", "power", "timeout")
"""What a result has of the verdict on a plug as it is."""


@dataclass(frozen=True)
class DeviceFindings:
    """The answers of one device about itself.

    ``kind`` is a key of ``PROOF_RULES`` and ``evidence`` what its "off" is worth.  ``problem``
    is why it cannot be used at all: no agent, wrong parameters, no answer.  ``unhealthy`` is
    its answer to ``monitor`` when that failed.  ``plugs`` is None when it has no list; with
    ``has_to_list`` an "off" of a plug counts only if it is listed.  ``seconds`` is for its
    slowest answer.
    """

    device: str
    kind: str
    evidence: str
    problem: str = _NO_PROBLEM
    unhealthy: str = _NO_PROBLEM
    plugs: tuple[ListedPlug, ...] | None = None
    has_to_list: bool = False
    seconds: float = 0.0


@dataclass(frozen=True)
class PlugFindings:
    """The power of one plug by its device: on, off or unknown; the last with a ``problem``.

    ``asked`` is False when its agent has no status.
    """

    power: str
    asked: bool = True
    problem: str = _NO_PROBLEM
    seconds: float = 0.0


@dataclass(frozen=True)
class Findings:
    """All answers: of each device by name, of each plug by its step."""

    devices: Mapping[str, DeviceFindings]
    plugs: Mapping[FenceStep, PlugFindings]


@dataclass(frozen=True)
class StepVerdict:
    """The verdict on one plug of a node.

    ``shown`` is the evidence that the plug is this node's: ``listed`` by the device, ``named``
    like the node there, ``on`` like the node.  ``proves``: its off is proof, at once or after a
    wait.  With ``false_proof`` it could be confirmed while the node lives.
    """

    level: int
    step: FenceStep
    evidence: str
    power: str
    shown: tuple[str, ...]
    seconds: float
    timeout: float
    proves: bool = True
    problems: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    false_proof: bool = False


@dataclass(frozen=True)
class NodeVerdict:
    """Whether the fencing of one node will work.

    ``works``: every level does.  ``degraded``: one does, while another has a problem, or none
    is proof.  ``fails``: none does, or a plug could give a false proof.  ``evidence`` is the
    best of the levels that work.  Problems and remarks are sentences.
    """

    node: str
    verdict: str
    evidence: str
    steps: tuple[StepVerdict, ...]
    problems: tuple[str, ...]
    remarks: tuple[str, ...]


def judge(
    configuration: FenceConfiguration,
    findings: Findings,
    nodes: Sequence[str],
    known_on: Collection[str],
) -> tuple[NodeVerdict, ...]:
    """Return the verdict on each of *nodes*.

    *known_on* are nodes that are on for sure, by other means than their devices.
    """
    owners = _owners(configuration, findings)
    return tuple(
        _judge_node(configuration, findings, node, node in known_on, owners) for node in nodes
    )


def check_consent(
    nodes: Sequence[str],
    own_names: Collection[str],
    services: Mapping[str, Sequence[str]] | None,
    with_services: bool,
    manager: str = "",
) -> str:
    """Return the one node that may be switched off and on for real, else raise FenceError.

    *services* are the services of each node, None if unknown; *with_services* allows to lose
    them, and to have the node fenced by the cluster as well.  *own_names* are the names of this
    machine; *manager* is the manager's node if known, the only node without services that the
    cluster fences when it falls silent.
    """
    if len(nodes) != 1:
        raise FenceError(
            f"One node at a time is switched off for real, and {len(nodes)} are meant"
            f" ({', '.join(nodes) or 'none'}). Name one."
        )
    node = nodes[0]
    if node in own_names:
        raise FenceError(
            f"{node} is the machine that this runs on and cannot rehearse its own end."
            " Run it on another node."
        )
    if with_services:
        return node
    if services is None:
        raise FenceError(
            f"Whether {node} runs services is not known without a node's configuration, so it is"
            " not switched off. Name that file, or allow it with services."
        )
    if services.get(node):
        raise FenceError(
            f"{node} runs {', '.join(services[node])} and is not switched off. Drain it first,"
            " or allow it with services."
        )
    if node == manager:
        raise FenceError(
            f"{node} is the manager and is not switched off: the other nodes would fence it in"
            " the middle of the rehearsal. Let one of them be manager first (systemctl restart"
            f" holdfast-crm on {node}), or allow it with services."
        )
    return node


def described(verdict: NodeVerdict) -> dict[str, object]:
    """Return *verdict* as plain data for a module's result."""
    return {
        "verdict": verdict.verdict,
        "evidence": verdict.evidence,
        "problems": list(verdict.problems),
        "remarks": list(verdict.remarks),
        "steps": [
            {
                **{name: getattr(one, name) for name in _TOLD},
                **asdict(one.step),
                "shown": list(one.shown),
                "seconds": round(one.seconds, 3),
                "problems": list(one.problems),
            }
            for one in verdict.steps
        ],
    }


def _owners(configuration: FenceConfiguration, findings: Findings) -> dict[object, set[str]]:
    """Return the nodes on each outlet, whichever of its names they use."""
    owners: dict[object, set[str]] = {}
    for node in configuration.levels:
        for _number, step in configuration.steps_of(node):
            key = _outlet_key(configuration.devices[step.device], step, findings)
            owners.setdefault(key, set()).add(node)
    return owners


def _outlet_key(device: FenceDevice, step: FenceStep, findings: Findings) -> object:
    found = findings.devices.get(step.device)
    listed = _listed(found, step)
    return device.switch(step.plug if listed is None else listed.plug)


def _listed(found: DeviceFindings | None, step: FenceStep) -> ListedPlug | None:
    """Return what the device lists as the plug of *step*."""
    if found is None or found.plugs is None or step.plug is None:
        return None
    return find_plug(found.plugs, step.plug)


def _judge_node(
    configuration: FenceConfiguration,
    findings: Findings,
    node: str,
    known_on: bool,
    owners: Mapping[object, set[str]],
) -> NodeVerdict:
    others = frozenset(configuration.levels) - {node}
    steps = []
    for number, level in enumerate(configuration.levels_of(node), 1):
        for step in level:
            device = configuration.devices[step.device]
            found = findings.devices[step.device]
            plug = findings.plugs.get(step, PlugFindings("unknown", asked=False))
            sharing = owners[_outlet_key(device, step, findings)] - {node}
            listed = _listed(found, step)
            case = _Case(node, known_on, others, sharing, step, device, found, plug, listed)
            steps.append(_judge_step(number, case))
    good = _good_levels(steps)
    worth = {weakest([one.evidence for one in level]) for level in good}
    evidence = VERIFIED if VERIFIED in worth else ASSUMED if ASSUMED in worth else NONE
    problems = [
        f"{node}: level {one.level}, {one.step}: {text}." for one in steps for text in one.problems
    ]
    if evidence == NONE and not problems:
        problems.append(f"{node}: all of its devices are gates, which prove nothing.")
    if good and not any(all(one.proves for one in level) for level in good):
        problems.append(
            f"{node}: no level will ever be proof that it is off; what it runs is recovered only"
            " once its host lease has run out."
        )
    verdict = DEGRADED if problems else WORKS
    if evidence == NONE or any(one.false_proof for one in steps):
        verdict = FAILS
    remarks = [
        f"{node}: level {one.level}, {one.step}: {text}." for one in steps for text in one.remarks
    ]
    return NodeVerdict(node, verdict, evidence, tuple(steps), tuple(problems), tuple(remarks))


@dataclass(frozen=True)
class _Case:
    """One plug of a node, with the other nodes, those ``sharing`` the plug, and the answers."""

    node: str
    known_on: bool
    others: frozenset[str]
    sharing: set[str]
    step: FenceStep
    device: FenceDevice
    found: DeviceFindings
    plug: PlugFindings
    listed: ListedPlug | None


def _good_levels(steps: Sequence[StepVerdict]) -> list[list[StepVerdict]]:
    """Return the devices of each level that has some and no problem; gates are left out."""
    good = []
    for number in sorted({one.level for one in steps}):
        level = [one for one in steps if one.level == number]
        real = [one for one in level if one.evidence != GATE]
        if real and not any(one.problems for one in level):
            good.append(real)
    return good


def _judge_step(level: int, case: _Case) -> StepVerdict:
    found, plug, listed = case.found, case.plug, case.listed
    wrong = list(_problems_of_plug(case))
    shown = []
    if listed is not None:
        shown.append("listed")
        if case.node in (listed.plug, listed.alias):
            shown.append("named")
    if plug.power == "on" and case.known_on:
        shown.append("on")
    return StepVerdict(
        level=level,
        step=case.step,
        evidence=found.evidence,
        power=plug.power,
        shown=tuple(shown),
        seconds=max(found.seconds, plug.seconds),
        timeout=case.device.timeout,
        proves=found.evidence != NONE
        and wait_for_proof(found.kind, case.device.assumed_after) is not None,
        problems=(*_problems_of_use(case), *_problems_of_list(case), *wrong),
        remarks=tuple(_remarks(case)),
        false_proof=bool(wrong),
    )


def _problems_of_use(case: _Case) -> Iterator[str]:
    """Yield why a fence by this plug would not be confirmed."""
    device, found, plug = case.device, case.found, case.plug
    if found.problem:
        yield found.problem
        return
    if found.evidence == NONE:
        yield "its agent has no status or no off, so nothing proves that the node is off"
    if plug.problem:
        yield plug.problem
    elif found.unhealthy and plug.power == "unknown":
        yield found.unhealthy
    own_wait = sum(_number(device.parameters.get(name)) for name in ("delay", "power_wait"))
    timeout = device.timeout_of("off")
    if own_wait >= timeout:
        yield (
            f"its agent waits {own_wait:g} seconds by its own parameters, and the timeout is"
            f" {timeout:g} seconds"
        )
        return
    slowest = max(found.seconds, plug.seconds)
    least = own_wait + CALLS_OF_A_FENCE * slowest
    if least > timeout:
        yield (
            f"an answer took {slowest:.1f} seconds, so an off with its verification takes at least"
            f" {least:.1f} seconds, and the timeout is {timeout:g} seconds"
        )


def _problems_of_list(case: _Case) -> Iterator[str]:
    """Yield that an off would not be confirmed for lack of this plug in the device's list."""
    found = case.found
    unseen = found.plugs is None or case.plug.power == "on"
    if found.has_to_list and case.listed is None and unseen:
        yield "an off would not be confirmed, as the device does not list this plug"


def _problems_of_plug(case: _Case) -> Iterator[str]:
    """Yield why this may be the plug of something else, so that its off is a false proof."""
    found, plug, listed = case.found, case.plug, case.listed
    if case.sharing:
        yield f"it is the plug of {' and '.join(sorted(case.sharing))} too"
    if plug.power == "off" and case.known_on:
        yield "the device reports off while the node is on, so it is the plug of something else"
    if listed is not None:
        called = {listed.plug, listed.alias} & case.others - case.sharing
        if called:
            yield f"the device calls it {called.pop()}, which is another node"
    elif found.plugs is not None and case.step.plug is not None and plug.power != "on":
        # Some agents take whatever is not on for off, and so a plug that is not there.
        yield f"the device has no such plug; it lists {shown(found.plugs)}"


def _remarks(case: _Case) -> Iterator[str]:
    """Yield what is not shown, and what is a bad sign but no failure."""
    found, plug = case.found, case.plug
    if found.problem:
        return
    rule = PROOF_RULES[found.kind]
    if found.evidence in (ASSUMED, GATE):
        yield f"its word is worth nothing unless {rule.needs}; that cannot be shown from here"
    if found.kind == FABRIC:
        yield "it cuts access and does not switch power, so it cannot reboot the node"
    if plug.asked and not case.known_on:
        yield "whether it is the node's own plug is not shown, as the node is not known to be on"
    unlisted = found.plugs is not None and case.listed is None
    if unlisted and plug.power == "on" and not found.has_to_list:
        yield "the device does not list it, though it has a state"
    if found.unhealthy and plug.power != "unknown":
        yield f"it answers for the plug, but {found.unhealthy}"
    slowest, timeout = max(found.seconds, plug.seconds), case.device.timeout_of("off")
    if SHARE_OF_TIMEOUT * timeout < CALLS_OF_A_FENCE * slowest <= timeout:
        yield (
            f"an answer took {slowest:.1f} seconds; an off with its verification takes two, and the"
            f" timeout is {timeout:g} seconds"
        )


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return 0.0
