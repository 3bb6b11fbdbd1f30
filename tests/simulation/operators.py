# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Acts of operators in a scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.pausing import (
    DISARMED,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.repair_plan import (
    Keep,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    IGNORE,
    MOVE,
    STOP,
    DesiredState,
    Request,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    POWEROFF,
    REBOOT,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    STARTED,
    STOPPED,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    NodeState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import InputError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.machine import (
    EPOCH,
    Machine,
)
from ansible_collections.holdfast.ha.tests.simulation.action import Act, Options, Verb, machines
from ansible_collections.holdfast.ha.tests.simulation.declarations import declare
from ansible_collections.holdfast.ha.tests.simulation.faulty_fleet import FaultyFleet
from ansible_collections.holdfast.ha.tests.simulation.record_repair import repair
from ansible_collections.holdfast.ha.tests.simulation.scenario import Action


def _hold(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    """Somebody sets the whiteboard's global maintenance by hand."""
    fleet.world.say("global maintenance on the whiteboard")
    fleet.set_board("by hand")
    if "for" in options:
        fleet.world.later(float(options["for"]), fleet.set_board, "")


def _unhold(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    fleet.world.say("no global maintenance on the whiteboard")
    fleet.set_board("")


def _wall(fleet: FaultyFleet) -> float:
    """Return the time by a right wall clock: that of who asks for something."""
    return EPOCH + fleet.world.now


def _maintenance(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    wall = _wall(fleet)
    until = wall + float(options["for"]) if "for" in options else 0.0
    one = Maintenance("asked for", "operator", wall, until)
    fleet.world.say("global maintenance is declared")
    fleet.want(fleet.world.storage.desired.with_global_maintenance(one))


def _end_maintenance(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    fleet.world.say("the declared global maintenance is ended")
    fleet.want(fleet.world.storage.desired.without_global_maintenance())


def _drain(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    wall = _wall(fleet)
    until = wall + float(options["for"]) if "for" in options else 0.0
    fleet.world.say(f"{words[0]} is drained")
    one = Maintenance("asked for", "operator", wall, until)
    fleet.want(fleet.world.storage.desired.with_maintenance(words[0], one))


def _undrain(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    fleet.world.say(f"{words[0]} is taken up again")
    fleet.want(fleet.world.storage.desired.without_maintenance(words[0]))


def _disarm(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    desired = fleet.world.storage.desired
    if desired.disarm:
        return
    fleet.world.say(f"the cluster is to be disarmed: {words[0]}")
    fleet.want(desired.with_disarm(words[0]))
    if "for" in options:
        fleet.world.later(float(options["for"]), _arm, fleet, (), {})


def _arm(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    fleet.world.say("the cluster is to be armed")
    fleet.want(fleet.world.storage.desired.with_disarm(""))


def _change(**values: object) -> Act:
    """Return an action that declares a service with other values."""

    def act(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
        desired = fleet.world.storage.desired
        service = desired.services.get(words[0])
        if service is not None:
            said = ", ".join(f"{key} {value}" for key, value in values.items())
            fleet.world.say(f"{words[0]} is declared: {said}")
            fleet.want(desired.with_service(replace(service, **values)))  # type: ignore[arg-type]

    return act


def _redefine(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    """A service gets another definition, so that it is to be restarted."""
    desired = fleet.world.storage.desired
    service = desired.services.get(words[0])
    if service is None:
        return
    first = service.resources[0]
    version = f"{desired.version + 1}"
    resources = (replace(first, parameters={"version": version}), *service.resources[1:])
    fleet.world.say(f"{words[0]} is redefined")
    fleet.want(desired.with_service(replace(service, resources=resources)))


def _remove(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    desired: DesiredState = fleet.world.storage.desired
    for rule in desired.rules():
        if words[0] in rule.services:
            desired = desired.without_rule(rule.name)
    try:
        desired = desired.without_service(words[0])
    except InputError as error:
        fleet.world.say(f"{words[0]} cannot be removed: {error}")
        return
    fleet.world.say(f"{words[0]} is removed")
    fleet.want(desired)


def _unrule(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    fleet.want(fleet.world.storage.desired.without_rule(words[0]))


def _move(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    desired = fleet.world.storage.desired
    if words[0] in desired.services:
        request = Request(MOVE, _wall(fleet), words[1], live=options.get("live") != "no")
        fleet.rules.asked_for.add(words[1])
        fleet.world.say(f"{words[0]} is asked to go to {words[1]}")
        fleet.want(desired.with_request(words[0], request))


def _pin(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    fleet.want(fleet.world.storage.desired.with_pin(words[0], words[1]))


def _unpin(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    fleet.want(fleet.world.storage.desired.without_pin(words[0]))


def _stop_within(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    desired = fleet.world.storage.desired
    service = desired.services.get(words[0])
    if service is not None:
        request = Request(STOP, _wall(fleet), timeout=float(words[1]))
        desired = desired.with_service(replace(service, state=STOPPED))
        fleet.world.say(f"{words[0]} is asked to stop within {words[1]} s")
        fleet.want(desired.with_request(words[0], request))


def _shutdown(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    """A node's operator shuts it down, or restarts its LRM."""
    what = words[1]
    if what not in ("reboot", "poweroff", "restart"):
        raise InputError("shutdown", what, "'reboot', 'poweroff' or 'restart'")
    for machine in machines(fleet, words[0]):
        daemon = fleet.lrms.get(machine.name)
        if daemon is not None and daemon.alive:
            fleet.world.say(f"{machine.name} is to be shut down: {what}")
            fleet.world.before_change(machine)
            daemon.shutdown = what
            fleet.world.after_change(machine)


def _run_by_hand(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    """Somebody starts a service on a node behind the manager's back."""
    machine = machines(fleet, words[1])[0]
    with fleet.world.changing(machine):
        if machine.on:
            machine.active[words[0]] = "running"
    fleet.world.say(f"{words[0]} is started on {words[1]} by hand")
    fleet.rules.activated(words[0])


def _run_first(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    """Somebody runs a service that the cluster knows nothing of, and declares it there later."""
    world, service_id = fleet.world, words[0]
    record, target = world.storage.manager_record(), machines(fleet, words[1])[0]
    known = record is not None and service_id in {*record.services, *record.ignored}
    declared = service_id in world.storage.desired.services
    if known or declared or world.where(service_id) or not target.awake:
        return
    if _is_going_down(fleet, target):
        return
    _run_by_hand(fleet, words, options)
    if "declared" in options:
        fleet.world.later(float(options["declared"]), _declare_on, fleet, service_id, target.name)


def _declare_on(fleet: FaultyFleet, service_id: str, node: str) -> None:
    options = {"node": node, "restarts": "0", "monitor": "2"}
    fleet.world.say(f"{service_id} is declared on {node}")
    action = Action(fleet.world.now, "service", (service_id,), options)
    fleet.want(declare(fleet.world.storage.desired, action))


def _move_by_hand(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    """Somebody moves or starts a service that the cluster leaves to them.

    Nobody does so once they asked for it to be managed again.  What is no service of the cluster is
    not left by it: the cluster asks no node for that, so ``run-first`` starts it only where it is
    declared later.
    """
    world, service_id = fleet.world, words[0]
    target, there = machines(fleet, words[1])[0], world.where(words[0])
    left = service_id in world.storage.desired.services and _is_left_by_disarm(fleet, target)
    if not (left or _is_ignored(fleet, service_id)):
        return
    if not all(one.awake for one in (target, *there)) or _is_going_down(fleet, target):
        return
    for machine in there:
        with world.changing(machine):
            del machine.active[service_id]
    with world.changing(target):
        target.active[service_id] = "running"
    world.say(f"{service_id} is moved to {target.name} by hand")
    fleet.rules.activated(service_id)


def _is_going_down(fleet: FaultyFleet, machine: Machine) -> bool:
    """Return whether a machine is being rebooted or switched off by its operator."""
    daemon = fleet.lrms.get(machine.name)
    return daemon is not None and daemon.shutdown in (REBOOT, POWEROFF)


def _is_left_by_disarm(fleet: FaultyFleet, target: Machine) -> bool:
    """Return whether the cluster is disarmed with its services left, and *target* is well."""
    storage = fleet.world.storage
    record = storage.manager_record()
    if record is None or (record.disarm, record.disarm_mode) != (DISARMED, IGNORE):
        return False
    status = record.nodes.get(target.name)
    online = status is not None and status.state is NodeState.ONLINE
    return online and target.storage and storage.desired.disarm == IGNORE


def _is_ignored(fleet: FaultyFleet, service_id: str) -> bool:
    """Return whether the manager and the nodes that are up have let go of an ignored service.

    It may go to any machine that is up then, whatever the manager takes that for.
    """
    world = fleet.world
    record, service = world.storage.manager_record(), world.storage.desired.services.get(service_id)
    if service is None or not service.ignored or record is None:
        return False
    reports = [world.storage.report(one.name) for one in world.machines.values() if one.on]
    kept = any(one is not None and service_id in one.running() for one in reports)
    return service_id in record.ignored and service_id not in record.services and not kept


def _repair(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    """Somebody repairs the records, if they went back."""
    if words[0] not in [one.value for one in Keep]:
        raise InputError("repair", words[0], "'running' or 'file'")
    repair(fleet, Keep(words[0]))


OPERATIONS: Mapping[str, Verb] = {
    "hold": Verb(_hold, (0, 0), ("for",)),
    "unhold": Verb(_unhold, (0, 0)),
    "maintenance": Verb(_maintenance, (0, 0), ("for",)),
    "end-maintenance": Verb(_end_maintenance, (0, 0)),
    "drain": Verb(_drain, (1, 1), ("for",)),
    "undrain": Verb(_undrain, (1, 1)),
    "disarm": Verb(_disarm, (1, 1), ("for",)),
    "arm": Verb(_arm, (0, 0)),
    "start": Verb(_change(state=STARTED), (1, 1)),
    "stop": Verb(_change(state=STOPPED), (1, 1)),
    "ignore": Verb(_change(ignored=True), (1, 1)),
    "track": Verb(_change(ignored=False), (1, 1)),
    "redefine": Verb(_redefine, (1, 1)),
    "remove": Verb(_remove, (1, 1)),
    "unrule": Verb(_unrule, (1, 1)),
    "move": Verb(_move, (2, 2), ("live",)),
    "pin": Verb(_pin, (2, 2)),
    "unpin": Verb(_unpin, (1, 1)),
    "stop-within": Verb(_stop_within, (2, 2)),
    "shutdown": Verb(_shutdown, (2, 2)),
    "repair": Verb(_repair, (1, 1)),
    "run-by-hand": Verb(_run_by_hand, (2, 2)),
    "run-first": Verb(_run_first, (2, 2), ("declared",)),
    "move-by-hand": Verb(_move_by_hand, (2, 2)),
}
