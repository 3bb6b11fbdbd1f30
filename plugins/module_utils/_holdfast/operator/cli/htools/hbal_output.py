# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``holdfast balance`` says: hbal's lines, in hbal's order, as loud as it was asked to be."""

from __future__ import annotations

import sys

from ....hints import TYPE_CHECKING, Sequence
from ....placement.balance.hbal_lines import (
    PROLOGUE,
    Names,
    commands,
    instance_table,
    job_sets,
    show_short,
    shown_commands,
)
from ....placement.balance.search import score_of
from ....placement.balance.state import Made, Plan, Worth
from ....placement.model.admission import divide
from ....placement.model.cluster import Cluster
from ....placement.model.score import TERMS, Score
from ....placement.model.show import fixed, show_policy
from .source import show_nodes, write_file

if TYPE_CHECKING:
    from .hbal import HbalOptions


def say_tags(cluster: Cluster, hbal_options: HbalOptions) -> None:
    """Print the cluster's tags and policy."""
    if hbal_options.verbose > 1:
        sys.stdout.write(f"Loaded cluster tags: {','.join(cluster.tags)}\n")
        sys.stdout.write(f"Loaded cluster ipolicy: {show_policy(cluster.policy)}\n")


def say_loaded(cluster: Cluster, hbal_options: HbalOptions) -> None:
    """Print how large the cluster is, and which instances are between groups."""
    nodes = cluster.nodes
    if hbal_options.verbose > 1:
        split = [
            instance.name
            for instance in cluster.instances()
            if instance.secondary >= 0
            and nodes[instance.primary].group != nodes[instance.secondary].group
        ]
        if split:
            sys.stderr.write("Found instances belonging to multiple node groups:\n")
            sys.stderr.write("".join([f"  {name}\n" for name in split]))
            sys.stderr.write("These instances will not be moved.\n")
    sys.stdout.write(f"Loaded {len(nodes)} nodes, {len(cluster.names)} instances\n")
    domain = cluster.domain()
    if domain and hbal_options.verbose > 1:
        sys.stdout.write(f"Note: Stripping common suffix of '{domain}' from names\n")


def say_group(
    cluster: Cluster, scope: Sequence[int], group: int, hbal_options: HbalOptions
) -> None:
    """Print the group's size and what is wrong with it."""
    inside = frozenset(scope)
    count = sum(instance.primary in inside for instance in cluster.instances())
    sys.stdout.write(f"Group size {len(scope)} nodes, {count} instances\n")
    sys.stdout.write(f"Selected node group: {cluster.groups[group].name}\n")
    nodes = [cluster.nodes[index] for index in scope]
    short = [node for node in nodes if node.short and not node.offline]
    held = {index for node in short for index in (*node.primaries, *node.secondaries)}
    if hbal_options.verbose > 0:
        sys.stdout.write(
            f"Initial check done: {len(short)} bad nodes, {len(held)} bad instances.\n"
        )
    if short:
        sys.stdout.write(
            "Cluster is not N+1 happy, continuing but no guarantee that the cluster will end "
            "N+1 happy.\n"
        )
    beyond = 0
    for node in nodes:
        busy = divide(node.used_cpus, node.total_cpus)
        over = node.policy.vcpu_ratio < busy or node.used_spindles > node.high_spindles
        beyond += over and (node.offline or not node.short)
    if beyond:
        sys.stdout.write(f"The cluster contains {beyond} policy-violating nodes.\n")
        sys.stdout.write(
            "Continuing, ignoring soft errors.\n"
            if hbal_options.has("ignore-soft-errors")
            else "Continuing, but the set of moves might be too restricted; consider using the "
            "--ignore-soft-errors option.\n"
        )


def say_score(which: str, cluster: Cluster, scope: Sequence[int], verbose: int) -> None:
    """Print the score, and with much to say its terms."""
    overall = fixed(score_of(cluster, scope), 8)
    if verbose <= 2:
        sys.stdout.write(f"{which} score: {overall}\n")
        return
    space = " " if which == "Initial" else "   "
    sys.stdout.write(f"{which} coefficients:{space}overall {overall}\n")
    if all(cluster.nodes[index].offline for index in scope):
        sys.stdout.write("   Field Value Weight\n")
        return
    terms = Score([cluster.nodes[index] for index in scope]).terms()
    values = [fixed(terms[name] / weight, 8) for name, weight in TERMS]
    width = max(len(value) for value in values)
    sys.stdout.write(f"   {'Field':<24} {'Value':>{width}} Weight\n")
    for (name, weight), value in zip(TERMS, values):
        shown = "x" + fixed(weight, 2)
        sys.stdout.write(f"   {name:<24} {value:>{width}} {shown:>6}\n")


def say_balanced(score: float, least: float, hbal_options: HbalOptions) -> None:
    """Print that there is nothing to do."""
    sys.stdout.write(
        f"Cluster is already well balanced (initial score {show_short(score)},\n"
        f"optimum score due to N+1 reservations {show_short(least)},\n"
        f"minimum score {show_short(hbal_options.least_score)}).\nNothing to do, exiting\n"
    )


def say_end(plan: Plan, scope: Sequence[int], hbal_options: HbalOptions) -> None:
    """Print what *plan* comes to."""
    if not plan.steps:
        sys.stdout.write("No solution found\n")
    elif hbal_options.verbose > 2:
        say_score("Final", plan.cluster, scope, hbal_options.verbose)
    else:
        sys.stdout.write(
            f"Cluster score improved from {fixed(plan.score_before, 8)} "
            f"to {fixed(plan.steps[-1].score, 8)}\n"
        )
    if hbal_options.verbose > 0:
        sys.stdout.write(f"Solution length={len(plan.steps)}\n")


def say_given_up(plan: Plan) -> None:
    """Print what N+1 costs, if it makes *plan* worse than hbal's rule, which has no N+1."""
    rule = plan.given_up
    if rule is None:
        return
    sys.stdout.write(
        f"Keeping N+1 after every move costs {max(0.0, plan.score_after - rule.score):.8f} of the "
        f"score: this plan ends at {_shown(plan.worth)}.\n"
        f"hbal's rule ends at {_shown(rule)}, but then some node could not be lost any more. "
        "For a plan without N+1 use --ignore-n1.\n"
    )


def _shown(worth: Worth) -> str:
    """Return the result *worth* in words."""
    return f"{worth.score:.8f} with {worth.moves} moves and {worth.copied / 1024:.1f} GiB"


def say_sets(plan: Plan) -> None:
    """Print how much *plan* copies, and how far its moves can run side by side."""
    sets = len(job_sets(plan.steps))
    sys.stdout.write(f"Copied: {plan.copied / 1024:.1f} GiB, in {sets} sets of moves\n")
    if plan.without_swaps is not None:
        without = plan.without_swaps
        chosen = "the plan above is better" if plan.uses_swaps else "swaps gain nothing beyond it"
        sys.stdout.write(f"Without swaps: {_shown(without)}; {chosen}\n")
    if plan.before_search is not None:
        sys.stdout.write(f"Before the search: {_shown(plan.before_search)}\n")


def say_sums(before: Cluster, after: Cluster, scope: Sequence[int]) -> None:
    """Print the memory and the disk that are free before and after."""
    for word, cluster in (("Original:", before), ("Final:", after)):
        memory = sum(cluster.nodes[index].unallocated for index in scope)
        disk = sum(cluster.nodes[index].free_disk for index in scope)
        sys.stdout.write(f"{word:<9} mem={memory} disk={disk}\n")


def show_cluster(
    cluster: Cluster, scope: Sequence[int], which: str, hbal_options: HbalOptions
) -> None:
    """Print the instances and nodes, as far as the options ask for it."""
    if hbal_options.has("print-instances"):
        sys.stderr.write(f"\n{which} instance map:\n{instance_table(cluster, scope)}")
    if hbal_options.has("print-nodes"):
        part = cluster.copy()
        part.nodes = [cluster.nodes[index] for index in scope]
        show_nodes(hbal_options.last("print-nodes"), part, cluster.domain(), which)


def write_commands(names: Names, moves: Sequence[Made], hbal_options: HbalOptions) -> None:
    """Print or write Ganeti's commands, if they are asked for."""
    if not hbal_options.has("print-commands"):
        return
    text = commands(names, moves)
    path = hbal_options.last("print-commands")
    if not path:
        sys.stdout.write(shown_commands(text))
        return
    write_file(path, PROLOGUE + text)
    sys.stdout.write(f"The commands have been written to file '{path}'\n")
