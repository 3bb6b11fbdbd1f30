# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan as hbal (3.0.2) prints it, and as plain data with what cannot be moved; sizes are MiB."""

from __future__ import annotations

from math import isfinite

from ...hints import Any, Callable, Sequence
from ..model.admission import MIGRATION, N1, without_secondary
from ..model.cluster import NO_NODE, RUNNING_STATES, Cluster, Instance
from ..model.limits import primary_limits, secondary_limits
from ..model.moves import Moved
from ..model.show import fixed, table
from .guard import Guard
from .search import Search, movable
from .state import (
    ANYWHERE,
    FAILOVER,
    FAILOVER_REPLACE,
    PRIMARY,
    SECONDARY,
    TAKE_OVER,
    Made,
    MoveLimits,
    Plan,
    Worth,
    copied,
    move,
)

Data = dict[str, Any]


COLUMNS = "F Name Pri_node Sec_node Auto_bal vcpu mem dsk lCpu lMem lDsk lNet"
WORD_COLUMNS = 5
"""How many of the columns are words; the others are numbers."""

PROLOGUE = """\
#!/bin/sh

# Auto-generated script for executing cluster rebalancing

# To stop, touch the file /tmp/stop-htools

set -e

check() {
  if [ -f /tmp/stop-htools ]; then
    echo 'Stop requested, exiting'
    exit 0
  fi
}

"""
"""The start of a file of commands, byte for byte hbal's."""


class Names:
    """The names of a cluster without the ending that all of them share."""

    def __init__(self, cluster: Cluster, scope: Sequence[int]) -> None:
        self.domain = cluster.domain()
        self._nodes = [self.short(node.name) for node in cluster.nodes]
        inside = frozenset(scope)
        self.node_width = max([len(self._nodes[index]) for index in scope], default=0)
        instances = [each.name for each in cluster.instances() if each.primary in inside]
        self.instance_width = max([len(self.short(name)) for name in instances], default=0)

    def short(self, name: str) -> str:
        """Return *name* without the ending."""
        return name[: len(name) - len(self.domain)]

    def node(self, index: int) -> str:
        """Return the short name of the node *index*."""
        return self._nodes[index]

    def places(self, instance: Instance) -> str:
        """Return the nodes of *instance*, the primary first."""
        if instance.secondary < 0:
            return self.node(instance.primary)
        return f"{self.node(instance.primary)}:{self.node(instance.secondary)}"


def step_line(names: Names, number: int, made: Made) -> str:
    """Return the line of the move *made*, the *number*-th."""
    width = 2 * names.node_width + 1
    return (
        f"  {number:3d}. {names.short(made.before.name):<{names.instance_width}} "
        f"{names.places(made.before):<{width}} => {names.places(made.after):<{width}} "
        f"{fixed(made.score, 8):>12} a={made.steps(names.node)}\n"
    )


def job_sets(moves: Sequence[Made]) -> list[list[Made]]:
    """Return *moves* in sets that can run side by side: no node is in two moves of one.

    As in hbal they are put together from the last move on.
    """
    sets: list[list[Made]] = []
    busy: set[int] = set()
    for made in reversed(moves):
        nodes = nodes_of(made)
        if not sets or nodes & busy:
            sets.append([])
            busy = set()
        sets[-1].append(made)
        busy |= nodes
    return [jobs[::-1] for jobs in reversed(sets)]


def nodes_of(made: Made) -> set[int]:
    """Return the nodes of the instance before and after the move *made*."""
    before, after = made.before, made.after
    return {before.primary, before.secondary, after.primary, after.secondary} - {NO_NODE}


def commands(names: Names, moves: Sequence[Made]) -> str:
    """Return the commands of Ganeti that carry *moves* out, set by set."""
    lines = []
    sets = job_sets(moves)
    for number, jobs in enumerate(sets, 1):
        lines.append("")
        lines.append(f"echo jobset {number}, {len(jobs)} jobs")
        for job, made in enumerate(jobs, 1):
            lines.append(f"  echo job {number}/{job}")
            lines.append("  check")
            lines += [f"  gnt-instance {line}" for line in _steps(names, made)]
    return "".join([line + "\n" for line in lines])


def shown_commands(text: str) -> str:
    """Return the *commands* as hbal shows them: indented, without the checks."""
    lines = [line for line in text.split("\n")[:-1] if line != "  check"]
    shown = "".join([f"  {line}\n" for line in lines])
    return f"\nCommands to run to reach the above solution:\n{shown}"


def _steps(names: Names, made: Made) -> list[str]:
    instance = made.before
    running = instance.state in RUNNING_STATES
    word = "migrate" if running else "failover"
    name = names.short(instance.name)
    if made.kind == ANYWHERE:
        return [f"{word} -f -n {names.node(made.target)} {name}"]
    over = f"{word} -f {name}"
    if made.kind == FAILOVER:
        return [over]
    replace = f"replace-disks -n {names.node(made.target)} {name}"
    before = [over] if made.kind in (PRIMARY, FAILOVER_REPLACE) else []
    after = [over] if made.kind in (PRIMARY, TAKE_OVER) else []
    return [*before, replace, *after]


def instance_table(cluster: Cluster, scope: Sequence[int]) -> str:
    """Return the table of the instances on the nodes *scope*."""
    inside = frozenset(scope)
    rows = [COLUMNS.split()]
    for instance in cluster.instances():
        if instance.primary not in inside:
            continue
        nodes = cluster.nodes
        rows.append(
            [
                "R" if instance.state in RUNNING_STATES else " ",
                instance.name,
                nodes[instance.primary].name,
                nodes[instance.secondary].name if instance.secondary >= 0 else "",
                "Y" if instance.auto_balance else "N",
                f"{instance.vcpus:3d}",
                f"{instance.memory:5d}",
                f"{instance.disk // 1024:5d}",
                fixed(instance.cpu_load, 3).rjust(5),
                fixed(instance.memory_load, 3).rjust(5),
                fixed(instance.disk_load, 3).rjust(5),
                fixed(instance.net_load, 3).rjust(5),
            ]
        )
    return table(rows, [column >= WORD_COLUMNS for column in range(len(rows[0]))])


def show_short(value: float) -> str:
    """Return *value* with six decimals, and a power of ten where it is small or great."""
    if value == 0 or not isfinite(value) or 0.1 <= abs(value) < 1e7:
        return fixed(value, 6)
    mantissa, _e, exponent = f"{value:.6e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


WORDS = {
    FAILOVER: "failover",
    SECONDARY: "replace secondary",
    TAKE_OVER: "replace secondary, failover",
    PRIMARY: "failover, replace secondary, failover",
    FAILOVER_REPLACE: "failover, replace secondary",
    ANYWHERE: "move",
}
BLOCKED = 10
"""How many blocked moves are reported."""
LOOKED_AT = 60
"""How many moves are looked at to find them, those that would gain most."""


def describe_plan(
    cluster: Cluster,
    scope: list[int],
    plan: Plan,
    limits: MoveLimits,
    only: Callable[[str], bool],
) -> Data:
    """Return *plan* for the nodes *scope* of *cluster* as plain data.

    ``moves`` are in their order; the moves of one ``set`` touch no node twice and can run side
    by side.  ``blocked`` are the moves that would gain most in the end and are not possible,
    with the reason.  ``given_up`` is the result of hbal's rule, if the plan is worse because
    some node could not be lost any more with it.  ``without_swaps`` is the result of the plan
    without swaps, if swaps were asked for; ``uses_swaps`` is whether ``moves`` are another plan.
    """
    names = [node.name for node in cluster.nodes]
    moves = []
    for number, jobs in enumerate(job_sets(plan.steps), 1):
        moves += [_describe_move(names, made, number) for made in jobs]
    for place in plan.pairs:
        moves[place]["with_next"] = True
    return {
        "score_before": plan.score_before,
        "score_after": plan.score_after,
        "given_up": _describe_worth(plan.given_up),
        "without_swaps": _describe_worth(plan.without_swaps),
        "uses_swaps": plan.uses_swaps,
        "copied": plan.copied,
        "moves": moves,
        "blocked": blocked(plan.cluster, scope, limits, only),
    }


def _describe_worth(worth: Worth | None) -> Data | None:
    if worth is None:
        return None
    return {"score_after": worth.score, "moves": worth.moves, "copied": worth.copied}


def _describe_move(names: list[str], made: Made, number: int) -> Data:
    return {
        "instance": made.before.name,
        "action": WORDS[made.kind],
        "before": _places(names, made.before),
        "after": _places(names, made.after),
        "copied": copied(made.before, made.kind),
        "score": made.score,
        "set": number,
        "with_next": False,
    }


def _places(names: list[str], instance: Instance) -> list[str]:
    return [names[place] for place in (instance.primary, instance.secondary) if place >= 0]


def blocked(
    cluster: Cluster, scope: list[int], limits: MoveLimits, only: Callable[[str], bool]
) -> list[Data]:
    """Return the moves that would gain most and are not possible, each with the reason."""
    chosen = movable(cluster, scope, limits, only)
    search = Search(cluster, scope, chosen, limits, every=True)
    guard = Guard(search)
    names = [node.name for node in cluster.nodes]
    found: list[Data] = []
    told = set()
    for change, index, kind, target in search.near(-search.slack, LOOKED_AT):
        instance = search.instances[index]
        reason = _obstacle(search, guard, instance, kind, target)
        if reason is None or index in told:
            continue
        told.add(index)
        found.append(
            {
                "instance": instance.name,
                "action": WORDS[kind],
                "target": names[target if target >= 0 else instance.secondary],
                "gain": -change,
                **reason,
            }
        )
        if len(found) == BLOCKED:
            break
    return found


def _obstacle(
    search: Search, guard: Guard, instance: Instance, kind: int, target: int
) -> Data | None:
    """Return why a move is not possible, as failure and limits; None if it is."""
    nodes = search.nodes
    moved: Moved | str = move(nodes, instance, kind, target, search.limits.force)
    if not isinstance(moved, str):
        lost = guard.broken_by(moved)
        if lost is None:
            return None
        return {
            "failure": N1,
            "limits": [{"limit": "redundancy", "node": nodes[lost].name}],
        }
    force = search.limits.force
    broken = []
    if kind in (FAILOVER, FAILOVER_REPLACE, PRIMARY):
        bare = without_secondary(nodes[instance.secondary], instance)
        broken += [(bare.name, limit) for limit in primary_limits(bare, instance, force)]
    if kind in (TAKE_OVER, PRIMARY, ANYWHERE):
        limits = primary_limits(nodes[target], instance, force)
        broken += [(nodes[target].name, limit) for limit in limits]
    elif kind != FAILOVER:
        limits = secondary_limits(nodes[target], instance, force)
        broken += [(nodes[target].name, limit) for limit in limits]
    if moved == MIGRATION:
        broken = [(nodes[instance.primary].name, {"limit": "migration tags"})]
    return {"failure": moved, "limits": [{**limit, "node": name} for name, limit in broken]}
