# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines, tables and commands of a plan as hbal (3.0.2) prints them."""

from __future__ import annotations

from math import isfinite

from ...hints import Sequence
from ..model.cluster import NO_NODE, RUNNING_STATES, Cluster, Instance
from ..model.show import fixed, table
from .state import ANYWHERE, FAILOVER, FAILOVER_REPLACE, PRIMARY, TAKE_OVER, Made

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
