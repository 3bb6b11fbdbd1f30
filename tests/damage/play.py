# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Play rounds of damage to records on a cluster of real daemons, and judge what it did."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import HoldfastError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.machine import power
from cluster import NODES, EmbeddedCluster
from damage import draw, records_file
from damage.draw import Action, Damage, Round
from damage.records_file import COPIES, Content, Place
from damage.regression import names_regression, recorded_regressions, repair
from damage.versions import CONFIGURATION, MANAGER, Numbers, Versions, highest, older, read_versions

POLL = 0.15

SETTLED = {"embedded": 75.0, "sanlock": 180.0}
"""Seconds within which everything has to run again, on a busy machine: a node that was off
joins again, too."""

STAYS = 2.0
"""Seconds that a regression has to be named before the repair is run: shorter than that, the
daemons made it good by themselves."""

NAMED = 90.0
"""Seconds within which a regression has to be gone or named.  A node writes its report again
every 60 s, so that one that nobody needs may stay older for so long."""

STILL_NAMED = 20.0
"""Seconds after a repair that was done within which nothing may be named any more."""

AGES = 4
"""How many rounds back records are rolled back."""


class Violation(Exception):
    """Something happened that must never happen."""


@dataclass
class Outcome:
    """What a round did: the damages with an effect, what was named, and for how long it took."""

    effects: int = 0
    named: list[str] = field(default_factory=list)
    recorded: list[str] = field(default_factory=list)
    repairs: int = 0
    refused: list[str] = field(default_factory=list)
    older: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def __str__(self) -> str:
        """Return the outcome in a few words."""
        words = ["no effect"] if not self.effects else []
        if self.older:
            words.append(f"{len(self.older)} older")
        if self.named:
            words.append("named")
        elif self.recorded:
            words.append("in the history")
        if self.repairs:
            words.append("repaired" + (f" {self.repairs} times" if self.repairs > 1 else ""))
        return ", ".join([*(words or ["harmless"]), f"{self.seconds:.1f} s"])


class Player:
    """Plays rounds on one cluster that is on; not for several threads."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        """Nothing is declared yet."""
        self._cluster = cluster
        self._path: Path = cluster.state_file
        self._deadline = SETTLED[cluster.backend]
        self._declared: set[str] = set()
        self._uncertain: set[str] = set()
        self._known = Versions({})
        self._older_since: dict[str, float] = {}
        self._snapshots: deque[Content] = deque(maxlen=AGES)
        self._begin = 0.0
        self._outcome = Outcome()

    def prepare(self) -> None:
        """Declare the services and wait until they run."""
        self._try(lambda: self._wait(self._is_whole, "a cluster of three members"))
        for name, stop in draw.SERVICES.items():
            self._cluster.declare_witness(name, stop)
            self._declared.add(name)
        self._wait(self._is_settled, "the services of the rounds")

    def play(self, one: Round) -> Outcome:
        """Play a round until everything runs again; raises ``Violation``."""
        self._outcome = Outcome()
        self._begin = time.time()
        begin = time.monotonic()
        self._snapshots.appendleft(records_file.take(self._path, self._places()))
        self._act(one.change)
        self._watch(one.change_seconds)
        self._end(one.change)
        if one.moment == draw.DURING:
            self._act(one.event)
            time.sleep(one.event_seconds)
            self._damage(one.damages)
        else:
            self._damage(one.damages)
            self._watch(one.event_seconds)
            self._act(one.event)
        if one.event.what == draw.FREEZE:
            self._watch(one.event.seconds)
        self._end(one.event)
        self._settle()
        self._outcome.seconds = time.monotonic() - begin
        return self._outcome

    def finish(self) -> None:
        """Wait until what was older at the end of a round is whole again, or named."""
        until = time.monotonic() + NAMED + 10.0
        while self._older_since and time.monotonic() < until:
            self._look()
            time.sleep(POLL)

    def _places(self) -> list[Place]:
        return records_file.places(self._path, hosts=draw.HOSTS)

    # What happens to the cluster.

    def _act(self, action: Action) -> None:
        """Begin an action; what the cluster refuses is no violation."""
        cluster, node = self._cluster, action.node
        acts: dict[str, Callable[[], Any]] = {
            draw.KILL_MANAGER: lambda: self._kill(self._manager(), "crm"),
            draw.KILL_LRM: lambda: self._kill(node, "lrm"),
            draw.KILL_DAEMONS: lambda: (self._kill(node, "lrm"), self._kill(node, "crm")),
            draw.MOVE: lambda: cluster.move(action.service, node, wait=False),
            draw.CUT: lambda: cluster.cut(node),
            draw.FREEZE: lambda: cluster.freeze(node),
            draw.DRAIN: lambda: cluster.maintenance(node, "drained", on=_other(node), wait=False),
            draw.DECLARE: lambda: self._declare(action),
            draw.REMOVE: lambda: self._remove(action),
            draw.NOTHING: lambda: None,
        }
        self._try(acts[action.what])

    def _end(self, action: Action) -> None:
        """End an action that lasts."""
        cluster, node = self._cluster, action.node
        if action.what == draw.CUT:
            self._try(lambda: cluster.switch_on(node))
        elif action.what == draw.FREEZE:
            cluster.thaw(node)
        elif action.what == draw.DRAIN:
            self._return(node)

    def _return(self, node: str) -> None:
        """Use a node again that was drained, or that is so in records that came back."""
        self._try(lambda: self._cluster.maintenance(node, "active", on=_other(node), wait=False))

    def _declare(self, action: Action) -> None:
        """Declare a further service, or change it."""
        name = action.service
        config = str(self._cluster.config(action.source))
        fresh = name not in self._declared
        if fresh:
            self._uncertain.add(name)
        self._cluster.declare_witness(name, action.seconds / 10, config=config)
        if fresh:
            self._declared.add(name)

    def _remove(self, action: Action) -> None:
        """Remove a further service; it may come back with older records."""
        name = action.service
        if name in self._declared:
            self._declared.discard(name)
            self._uncertain.add(name)
            config = str(self._cluster.config(action.source))
            self._cluster.declare_resources(name, None, state="absent", config=config)

    def _kill(self, node: str, daemon: str) -> None:
        """Kill a daemon; one that does not run just now is not waited for."""
        if power.is_on(self._cluster.nodes, node):
            self._cluster.kill_daemon(node, daemon)

    def _manager(self) -> str:
        """Return the node that holds the manager lease, or one if none does."""
        try:
            return str(self._cluster.status()["manager"]["node"]) or NODES[0]
        except HoldfastError:
            return NODES[0]

    def _try(self, act: Callable[[], Any]) -> None:
        try:
            act()
        except (HoldfastError, OSError, AssertionError) as error:
            self._outcome.refused.append(str(error))

    # The damage.

    def _damage(self, damages: tuple[Damage, ...]) -> None:
        """Do the damages; what stood in the file before them is known from now on."""
        self._look()
        alive = {name for name, nodes in self._cluster.witnesses().items() if nodes}
        host_ids = {draw.MANAGER: NODES.index(self._manager()) + 1}
        for damage in damages:
            self._outcome.effects += self._do(damage, host_ids.get(damage.host_id, damage.host_id))
        now = read_versions(self._path, draw.HOSTS)
        self._outcome.older = older(now, self._known)
        if CONFIGURATION in self._outcome.older:
            # Nobody but the file knew of a service that did not run yet.
            self._uncertain |= self._declared - alive - set(draw.SERVICES)

    def _do(self, damage: Damage, host_id: int) -> bool:
        """Do one damage; return whether it changed the file."""
        path, kind, what = self._path, damage.kind, damage.what
        age = min(damage.age, len(self._snapshots) - 1)
        taken = self._snapshots[age]
        slot = [Place(kind, host_id, copy) for copy in COPIES]
        newest = records_file.newest(path, kind, host_id)
        drawn = Place(kind, host_id, max(damage.copy, 0))
        place = newest if damage.copy == draw.NEWEST and newest is not None else drawn
        rolled_back = {
            draw.ROLL_BACK_ALL: lambda _place: True,
            draw.ROLL_BACK_NODE: lambda one: one.host_id == host_id,
            draw.ROLL_BACK_KIND: lambda one: one.kind is kind,
            draw.ROLL_BACK_COPY: lambda one: one == place,
        }
        before = records_file.take(path, self._places())
        if what in rolled_back:
            chosen = {one: data for one, data in taken.items() if rolled_back[what](one)}
            records_file.restore(path, chosen)
        elif what in (draw.FLIP_HEADER, draw.FLIP_PAYLOAD):
            records_file.flip_bit(path, place, damage.bit, payload=what == draw.FLIP_PAYLOAD)
        elif what == draw.ZERO_COPY:
            records_file.zero(path, place)
        elif what == draw.ZERO_SLOT:
            for one in slot:
                records_file.zero(path, one)
        elif what == draw.SWAP and damage.other != host_id:
            records_file.swap(path, kind, host_id, damage.other)
        elif what == draw.MISDIRECT and damage.other != host_id:
            target = records_file.newest(path, kind, damage.other)
            records_file.misdirect(path, place, target or place._replace(host_id=damage.other))
        elif what == draw.LATE:
            records_file.write_late(path, taken, kind, host_id)
        return records_file.take(path, self._places()) != before

    # The judge.

    def _settle(self) -> None:
        """Wait until everything runs again; repair what the status names as a regression."""
        until = time.monotonic() + self._deadline
        named_since = repaired = 0.0
        tidied = 0.0
        while True:
            status, problems = self._look()
            now = time.monotonic()
            if any(map(names_regression, problems)):
                named_since = named_since or now
                if repaired and now - max(repaired, named_since) > STILL_NAMED:
                    raise Violation(f"still named after a repair: {problems}")
                if now - named_since >= STAYS and not repaired:
                    repaired = time.monotonic() if self._repair() else 0.0
                    named_since = 0.0
            else:
                named_since = repaired = 0.0
                if status is not None and self._is_settled(status):
                    break
            if now > until:
                raise Violation(self._why_not_settled(status, problems))
            if now - tidied > 1.0:
                tidied = now
                self._tidy(status)
            time.sleep(POLL)
        self._judge_services(status)
        if status is not None:
            self._outcome.recorded += recorded_regressions(status, self._begin)
        self._forgive()

    def _repair(self) -> bool:
        """Repair the records; return whether that was done, or is said to be needless."""
        done = repair(self._cluster, "running", "--yes")
        self._outcome.repairs += 1
        if done.returncode != 0:
            text = (done.stderr or done.stdout).strip()
            self._outcome.refused.append(f"repair: exit status {done.returncode}: {text[-300:]}")
        return done.returncode == 0

    def _tidy(self, status: dict[str, Any] | None) -> None:
        """Do again what may have failed, or what older records undid."""
        for node in NODES:
            if not power.is_on(self._cluster.nodes, node):
                self._try(lambda node=node: self._cluster.switch_on(node))
        if status is None or any(map(names_regression, status["problems"])):
            return
        for node, observed in status["nodes"].items():
            if observed["maintenance"] is not None:
                self._return(node)

    def _look(self) -> tuple[dict[str, Any] | None, list[str]]:
        """Look once at everything that must never happen; return the status and its problems."""
        violations = self._cluster.violations()
        if violations:
            raise Violation("; ".join(violations))
        try:
            status: dict[str, Any] | None = self._cluster.status()
            problems = list(status["problems"]) if status is not None else []
        except HoldfastError as error:
            status, problems = None, [str(error)]
        self._outcome.named += [
            one for one in problems if names_regression(one) and one not in self._outcome.named
        ]
        self._look_at_versions()
        return status, problems

    def _look_at_versions(self) -> None:
        """Note what is older than it was, and what is whole again."""
        now = read_versions(self._path, draw.HOSTS)
        late = time.monotonic()
        behind = older(now, self._known)
        for subject in self._older_since.keys() - behind.keys():
            del self._older_since[subject]
        for subject, numbers in behind.items():
            since = self._older_since.setdefault(subject, late)
            if late - since > NAMED and not self._is_told():
                raise Violation(f"{subject}: {numbers}, and nothing says so after {NAMED:.0f} s")
        # A new manager that decides from an older record.
        before, here = self._known.numbers.get(MANAGER), now.manager
        if before is not None and _goes_on_from_older(here, before):
            self._acted = f"{MANAGER}: {here} after {before}"
        self._known = highest(self._known, now)

    _acted = ""
    """How a manager went on from a record that is older than one that was known."""

    def _is_told(self) -> bool:
        return bool(self._outcome.named or self._outcome.recorded)

    def _forgive(self) -> None:
        """Judge what a manager went on from; a regression that was named counts as known."""
        acted, self._acted = self._acted, ""
        if acted and not self._is_told():
            raise Violation(f"a manager decided from older records and nothing says so: {acted}")
        if self._is_told():
            # What the repair kept is what counts.
            self._known = read_versions(self._path, draw.HOSTS)
            self._older_since.clear()

    def _judge_services(self, status: dict[str, Any] | None) -> None:
        """Look whether a declared service was forgotten, once all that is known of runs."""
        there = set(status["services"]) if status is not None else set()
        forgotten = self._declared - self._uncertain - there
        if forgotten:
            raise Violation(f"forgotten: {', '.join(sorted(forgotten))}")
        self._declared = there
        self._uncertain.clear()

    def _is_whole(self, status: dict[str, Any]) -> bool:
        return bool(
            status["manager"]["active"]
            and all(
                one["state"] == "online" and not one["lease_lost"]
                for one in status["nodes"].values()
            )
        )

    def _is_settled(self, status: dict[str, Any]) -> bool:
        """Return whether all runs, once and where the status has it."""
        if status["problems"] or status["under_way"] or not self._is_whole(status):
            return False
        if any(one["maintenance"] is not None for one in status["nodes"].values()):
            return False
        alive = {name: nodes for name, nodes in self._cluster.witnesses().items() if nodes}
        return all(one["state"] == "started" for one in status["services"].values()) and alive == {
            name: [one["node"]] for name, one in status["services"].items()
        }

    def _why_not_settled(self, status: dict[str, Any] | None, problems: list[str]) -> str:
        services = status["services"] if status is not None else {}
        there = {name: f"{one['state']} on {one['node']}" for name, one in services.items()}
        return (
            f"not settled after {self._deadline:.0f} s: problems {problems}; services {there};"
            f" alive {self._cluster.witnesses()}; refused {self._outcome.refused[-3:]}"
        )

    def _wait(self, done: Callable[[dict[str, Any]], bool], what: str) -> None:
        self._cluster.wait(done, self._deadline, what)

    def _watch(self, seconds: float) -> None:
        """Let time pass, and look at what must never happen."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._look()
            time.sleep(min(POLL, max(0.0, until - time.monotonic())))


def _goes_on_from_older(now: Numbers, before: Numbers) -> bool:
    """Return whether a manager of a later epoch knows of fewer commands."""
    return now[0] == before[0] and now[1] > before[1] and now[2] < before[2]


def _other(node: str) -> str:
    """Return another node."""
    return next(one for one in NODES if one != node)
