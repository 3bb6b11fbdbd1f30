# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays a scenario from its beginning to its end, and keeps its trace.

Rounds last 20 s, or 2 s for each node where that is more.  In each round the nodes come
by name: the CRM, then the LRM, each a second later.  A batch of commands is played every
five rounds, beginning with the second; a ``delay`` longer than a round puts the next off.
The play ends 500 s after its last command.
"""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    MOVE,
    STOP,
    Request,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    POWEROFF,
    REBOOT,
    RESTART,
    Mode,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    STARTED,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import InputError
from ansible_collections.holdfast.ha.tests.conformance import scenario as scenarios
from ansible_collections.holdfast.ha.tests.conformance.beginning import begin
from ansible_collections.holdfast.ha.tests.conformance.cluster_daemon import (
    MOST_TURNS,
    ClusterDaemon,
)
from ansible_collections.holdfast.ha.tests.conformance.local_daemon import LocalDaemon
from ansible_collections.holdfast.ha.tests.conformance.scenario import Scenario
from ansible_collections.holdfast.ha.tests.conformance.storage import Storage
from ansible_collections.holdfast.ha.tests.conformance.words import Words
from ansible_collections.holdfast.ha.tests.conformance.world import WATCHDOG_TIMEOUT, Machine, World

ROUND = 20
BATCH_ROUNDS = 5
REST = 500
LONGEST = 10_000

ENDS = {"reboot": REBOOT, "shutdown": POWEROFF, "restart-lrm": RESTART}
"""The commands that end an LRM, and why it ends."""


class Play:
    """A scenario under way."""

    def __init__(self, scenario: Scenario) -> None:
        """Set everything up as the scenario's files have it."""
        self.scenario = scenario
        self.world = World(scenario.nodes)
        self.words = Words(self.world)
        self.storage = Storage(self.world, scenarios.desired(scenario))
        self.crms: dict[str, ClusterDaemon] = {}
        self.lrms: dict[str, LocalDaemon] = {}
        self.skips: dict[str, int] = {}
        self.requests = 0
        self.round = max(ROUND, 2 * len(scenario.nodes))
        begin(scenario, self.storage, self.words)
        for name, row in sorted(scenario.hardware.items()):
            if row.get("power") == "on":
                self._was_on(self.world.machines[name], network=row.get("network") == "on")

    def run(self) -> list[tuple[int, str, str, str]]:
        """Play to the end; return the trace."""
        world = self.world
        commands = list(self.scenario.commands)
        next_batch = self.round
        last = 0
        while world.now < LONGEST:
            begun = world.now
            if begun >= next_batch:
                if commands:
                    delay = self._batch(commands.pop(0))
                    last = begun
                    next_batch = begun + self._pause(delay)
                elif begun - last > REST:
                    break
                else:
                    next_batch = begun + BATCH_ROUNDS * self.round
            for name in sorted(world.machines):
                self._node(name)
            world.now = begun + self.round
        return world.trace

    def _pause(self, delay: int) -> int:
        usual = BATCH_ROUNDS * self.round
        longer = -(-delay // self.round) * self.round + (BATCH_ROUNDS - 1) * self.round
        return max(usual, longer if delay else usual)

    def _was_on(self, machine: Machine, *, network: bool) -> None:
        """Let a machine be on at the beginning.

        The peer's simulator starts daemons only when it switches a machine on.  But it counts this
        one as a member, and for that a node of ours needs an LRM: its trace has no lines.
        """
        machine.power, machine.network = True, network
        self.lrms[machine.name] = self._new_lrm(machine, traced=False)

    def _node(self, name: str) -> None:
        machine = self.world.machines[name]
        if name in self.crms:
            if not self._skips("crm"):
                self._play_crm(machine)
            self.world.now += 1
        if name in self.lrms:
            if not self._skips("lrm"):
                self.lrms[name].begin_round()
                self.lrms[name].play_turns()
                if self.lrms[name].has_ended:
                    self._lrm_ended(machine)
            self.world.now += 1
        for other in sorted(self.world.machines):
            self._watch(self.world.machines[other])
        self._follow_places()

    def _play_crm(self, machine: Machine) -> None:
        """Play the turns of a CRM; the manager and all LRMs go on until nothing changes.

        Ours play many turns in the time of one round of the peer.
        """
        crm = self.crms[machine.name]
        crm.begin_round()
        if crm.shutdown:
            crm.end()
            del self.crms[machine.name]
            self._ended(machine)
            return
        if not crm.is_manager and self._stays_idle(machine.name):
            return
        crm.play_turns()
        for _turn in range(MOST_TURNS):
            if not crm.is_manager or self.skips.get("lrm"):
                break
            changes = [self.lrms[name].play_turns() for name in sorted(self.lrms)]
            if not any(changes):
                break
            crm.play_turns()

    def _stays_idle(self, name: str) -> bool:
        """Return whether a CRM does nothing there: no service is declared, or its own are fenced.

        It begins as soon as there is something to do.
        """
        desired, state = self.storage.desired, self.storage.state
        drained = {one for one, node in state.nodes.items() if node.mode == Mode.MAINTENANCE.value}
        if not (desired.services or state.services) and drained == set(desired.maintenance):
            return bool(desired.disarm) == bool(state.disarm)
        return any(
            one.node == name and one.state is ServiceState.FENCE for one in state.services.values()
        )

    def _skips(self, kind: str) -> bool:
        left = self.skips.get(kind, 0)
        if left:
            self.skips[kind] = left - 1
        return bool(left)

    def _watch(self, machine: Machine) -> None:
        if any(self.world.now - pet >= WATCHDOG_TIMEOUT for pet in machine.watchdogs.values()):
            self.world.say("off", machine.name, "watchdog")
            self._power_off(machine.name)

    def _lrm_ended(self, machine: Machine) -> None:
        restart = self.lrms[machine.name].shutdown == RESTART
        del self.lrms[machine.name]
        if restart:
            self.lrms[machine.name] = self._new_lrm(machine)
        elif machine.name in self.crms:
            self.crms[machine.name].shutdown = True
        else:
            self._ended(machine)

    def _ended(self, machine: Machine) -> None:
        """Both daemons of a machine that shuts down have ended."""
        shutdown = machine.shutdown
        if not shutdown or machine.name in self.lrms:
            return
        self.world.say("off", machine.name, shutdown)
        self._power_off(machine.name)
        if shutdown == "reboot":
            self.world.say("on", machine.name, shutdown)
            self._power_on(machine.name)

    def _power_on(self, name: str) -> None:
        machine = self.world.machines[name]
        if machine.power:
            return
        machine.power = machine.network = True
        machine.boot += 1
        self.crms[name] = ClusterDaemon(self.storage, self.words, machine)
        self.lrms[name] = self._new_lrm(machine)

    def _new_lrm(self, machine: Machine, *, traced: bool = True) -> LocalDaemon:
        room = scenarios.room(self.scenario, machine.name)
        return LocalDaemon(self.storage, machine, room, traced=traced)

    def _power_off(self, name: str) -> None:
        self.world.cut_power(self.world.machines[name])
        self.crms.pop(name, None)
        self.lrms.pop(name, None)

    def _follow_places(self) -> None:
        """Keep in the configuration where each service is, as the peer does."""
        for service_id, place in self.words.places.items():
            row = self.scenario.services.get(service_id)
            if row is not None and service_id in self.words.services and row.get("node") != place:
                row["node"] = place
                self._change_service(service_id)

    def _batch(self, commands: list[str]) -> int:
        delay = 0
        for command in commands:
            self.world.say("in", "-", command)
            words = command.split()
            if len(words) < 2:
                continue
            if words[0] == "delay":
                delay = int(words[1])
            elif words[0] == "skip-round":
                self.skips[words[1]] = int(words[2]) if len(words) > 2 else 1
                self.skips[words[1]] *= len(self.crms)
            elif words[0] == "service":
                self._service(words[1], words[2], words[3:])
            elif words[0] == "crm":
                self._crm(words[1], words[2], words[3:])
            elif words[1] in self.world.machines:
                self._machine(words[0], words[1], words[2:])
        return delay

    def _machine(self, what: str, name: str, more: list[str]) -> None:
        machine = self.world.machines[name]
        if what == "power":
            if more[0] == "on":
                self._power_on(name)
            else:
                self._power_off(name)
        elif what == "network":
            machine.network = more[0] == "on" and machine.power
        elif what == "cfs":
            works = more[1] == "work"
            if more[0] == "rw":
                machine.reads = works
            else:
                machine.updates = works
        elif what in ENDS and name in self.lrms and self.lrms[name].traced:
            machine.shutdown = what if what != "restart-lrm" else ""
            self.lrms[name].shutdown = ENDS[what]
            # The peer's LRM says so at once; it begins with it in its turn.
            self.lrms[name].play_turn()

    def _crm(self, name: str, what: str, more: list[str]) -> None:
        desired = self.storage.desired
        if what == "stop" and name in self.crms:
            self.crms[name].shutdown = True
        elif what == "start" and name not in self.crms and self.world.machines[name].power:
            machine = self.world.machines[name]
            self.crms[name] = ClusterDaemon(self.storage, self.words, machine)
        elif what == "enable-node-maintenance":
            maintenance = Maintenance("asked for", "operator", float(self.world.now))
            self.storage.change(desired.with_maintenance(name, maintenance))
        elif what == "disable-node-maintenance":
            self.storage.change(desired.without_maintenance(name))
        elif what in ("disarm-ha", "arm-ha"):
            try:
                changed = desired.with_disarm(more[0] if what == "disarm-ha" else "")
            except InputError:
                self.world.say("reject", "-", what)
                return
            if changed == desired:
                self.world.say("reject", "-", what)
            self.storage.change(changed)

    def _service(self, service_id: str, what: str, more: list[str]) -> None:
        rows = self.scenario.services
        if what == "add":
            state = more[1] if len(more) > 1 else "started"
            rows[service_id] = {"node": more[0], "state": state}
            if len(more) > 2 and more[2] != "0":
                machine = self.world.machines[more[0]]
                machine.running.add(service_id)
                self.world.shown[service_id] = machine.name
            self.storage.removed.discard(service_id)
            self._change_service(service_id)
        elif service_id not in rows:
            return
        elif what in ("started", "enabled", "stopped", "disabled", "ignored"):
            rows[service_id]["state"] = what
            self._change_service(service_id)
        elif what == "delete":
            # There a service that is removed goes on running; here it is stopped, unless it
            # is to be ignored first.
            self.storage.removed.add(service_id)
            rows[service_id]["state"] = "ignored"
            self._change_service(service_id)
        elif what in ("migrate", "relocate", "stop"):
            self._ask(service_id, what, more[0])
        elif what == "manual-migrate":
            self._move_by_hand(service_id, more[0])
        elif what in ("set-static-stats", "set-dynamic-stats"):
            scenarios.take_up_stats(self.scenario, service_id, what, more)
            self._change_service(service_id)

    def _ask(self, service_id: str, what: str, argument: str) -> None:
        self.requests += 1
        made = float(self.requests)
        if what == "stop":
            request = Request(STOP, made, timeout=float(argument))
            self.scenario.services[service_id]["state"] = "stopped"
            self._change_service(service_id)
        else:
            request = Request(MOVE, made, node=argument, live=what == "migrate")
            group = self.storage.desired.partners(service_id, "together")
            self.words.asked.update(dict.fromkeys({service_id, *group}, what))
        self.storage.change(self.storage.desired.with_request(service_id, request))

    def _move_by_hand(self, service_id: str, node: str) -> None:
        """A guest is moved behind the manager's back, while it runs."""
        for machine in self.world.machines.values():
            if service_id in machine.running:
                machine.running.discard(service_id)
                self.world.machines[node].running.add(service_id)
        self.world.shown.pop(service_id, None)
        self.scenario.services[service_id]["node"] = node
        self.words.places.setdefault(service_id, node)
        self._change_service(service_id)

    def _change_service(self, service_id: str) -> None:
        before = self.storage.desired.services.get(service_id)
        last = before.state if before is not None else STARTED
        service = scenarios.service(self.scenario, service_id, last)
        if before is not None and not before.failback:
            service = replace(service, failback=False)
        desired = self.storage.desired.with_service(service)
        if before is None:
            node_rules, service_rules = scenarios.rules(self.scenario, desired.services)
            desired = replace(desired, node_rules=node_rules, service_rules=service_rules)
        self.storage.change(desired)
