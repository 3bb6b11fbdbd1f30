# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``holdfast balance``: plans better than htools' ``hbal``; ``--like-hbal`` takes its place.

Options, output, messages and exit statuses are those of hbal 3.0.2 for a cluster in a
file: 0 with an answer, 1 if the input cannot be used, 2 if the command line cannot.  What
needs Ganeti's daemons (``-L``, ``-m``, ``-X``) is refused.
"""

from __future__ import annotations

import gc
import sys

from ....errors import ClusterDataError, HoldfastError
from ... import streams
from ...streams import Progress
from . import options
from .hbal_options import OPTIONS, Asked
from .options import CommandLine
from .source import ask_loads, read_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ....placement.balance.moves import MoveLimits
    from ....placement.balance.steps import Made, Plan
    from ....placement.model.cluster import Cluster

ANSWERED, BAD_INPUT, BAD_COMMAND_LINE = 0, 1, 2


def main(arguments: Sequence[str]) -> int:
    """Balance the cluster that *arguments* name, and return the exit status."""
    if not options.prepare_output():
        return BAD_INPUT
    try:
        settings = options.read_command_line(OPTIONS, arguments)
    except CommandLine as error:
        sys.stderr.write(f"Command line error: {error}\n\n{usage()}")
        return BAD_COMMAND_LINE
    if settings.has("help"):
        sys.stdout.write(usage())
        return ANSWERED
    if settings.has("version"):
        from ....version import VERSION

        sys.stdout.write(f"holdfast balance {VERSION}, as hbal of htools 3.0.2\n")
        return ANSWERED
    progress = Progress("reading the cluster")
    try:
        _run(Asked(settings), progress)
    except CommandLine as error:
        sys.stderr.write(f"Error while parsing command line arguments:\n{error}\n")
        return BAD_INPUT
    except HoldfastError as error:
        text = str(error)
        sys.stderr.write(f"{text}\n" if text.endswith("Error: Aborting.") else f"Error: {text}\n")
        return BAD_INPUT
    except (OverflowError, MemoryError, RecursionError) as error:
        sys.stderr.write(f"Error: a number or the description is too large: {error}\n")
        return BAD_INPUT
    except OSError as error:
        options.say_unwritten(streams.reason(error))
        return BAD_INPUT
    finally:
        progress.done()
    return ANSWERED


def main_and_exit(arguments: Sequence[str]) -> None:
    """Be the command's whole process, and end without clearing up behind."""
    import os

    gc.disable()
    os._exit(options.finish_output(main(arguments)))


def usage() -> str:
    """Return the help text."""
    return options.usage("holdfast balance [OPTION...]", OPTIONS)


def _run(asked: Asked, progress: Progress) -> None:
    """Read, balance, print."""
    from ....placement.balance.moves import MoveLimits
    from ....placement.balance.setup import choose_group
    from . import hbal_output

    cluster, only = _prepared(asked)
    hbal_output.save(cluster, "original", "before", asked)
    if not cluster.names and not asked.json:
        sys.stdout.write("Cluster is empty, exiting.\n")
        return
    if not asked.json:
        hbal_output.say_loaded(cluster, asked)
    group = choose_group(cluster, asked.last("group"))
    scope = [node.index for node in cluster.nodes if node.group == group]
    limits = MoveLimits(
        asked.has("evac-mode"),
        not asked.has("no-disk-moves"),
        not asked.has("no-instance-moves"),
        asked.has("restricted-migration"),
        asked.has("ignore-soft-errors"),
    )
    progress.what = "balancing"
    if asked.json:
        from ....placement.balance.report import describe_plan
        from ....placement.iallocator.json_text import encode

        plan = _plan(cluster, scope, limits, asked, only, progress, None)
        sys.stdout.write(encode(describe_plan(cluster, scope, plan, limits, only)) + "\n")
        return
    hbal_output.say_group(cluster, scope, group, asked)
    _balance(cluster, scope, limits, asked, only, progress)


def _prepared(asked: Asked) -> tuple[Cluster, Callable[[str], bool]]:
    """Return the cluster as the options want it looked at, and which instances may move."""
    from ....placement.balance import setup
    from .hbal_output import say_tags

    cluster, warnings = _read(asked)
    name = asked.last("dynu-file")
    loads = None if name is None else setup.read_loads(read_source(name))
    only = setup.choose_instances(
        cluster, asked.names("select-instances"), asked.names("exclude-instances")
    )
    if asked.monitored:
        complete = ask_loads(cluster, asked.has("mond-xen"), asked.last("mond-data"))
        if not complete and asked.has("exit-on-missing-mond-data"):
            raise ClusterDataError("Not all required data available")
    if warnings and asked.verbose != 0:
        lines = "".join([f"  - {warning}\n" for warning in warnings])
        sys.stderr.write(f"Warning: cluster has inconsistent data:\n{lines}\n")
    if not asked.json:
        say_tags(cluster, asked)
    if asked.has("ignore-dynu"):
        setup.set_loads(cluster, None)
    elif loads is not None:
        setup.set_loads(cluster, loads)
    setup.take_offline(cluster, asked.all("offline"))
    if asked.most_cpus is not None:
        setup.set_most_cpus(cluster, asked.most_cpus)
    if asked.least_disk is not None:
        setup.set_least_disk(cluster, asked.least_disk)
    return cluster, only


def _read(asked: Asked) -> tuple[Cluster, list[str]]:
    text_file, request_file = asked.last("text-data"), asked.last("ialloc-src")
    tags = asked.last("exclusion-tags") or ""
    prefixes = tuple([f"{tag}:" for tag in tags.split(",") if tag])
    try:
        if text_file is not None:
            from ....placement.iallocator.text_format import read_text

            return read_text(read_source(text_file), prefixes)
        if request_file is not None:
            from ....placement.iallocator.request import read_described_cluster

            if prefixes:
                raise ClusterDataError("--exclusion-tags needs the cluster in the text format")
            text = read_source(request_file)
            return read_described_cluster(text, asked.node_memory)
        raise ClusterDataError("No backend selected! Exiting.")
    except ClusterDataError as error:
        raise ClusterDataError(f"failed to load data, aborting: {error}") from None


def _balance(
    cluster: Cluster,
    scope: list[int],
    limits: MoveLimits,
    asked: Asked,
    only: Callable[[str], bool],
    progress: Progress,
) -> None:
    from ....placement.balance.run import optimal_score, score_of
    from ....placement.balance.setup import settled
    from ....placement.balance.text import Names
    from . import hbal_output

    hbal_output.show_cluster(cluster, scope, "Initial", asked)
    before, least = score_of(cluster, scope), optimal_score(cluster, scope)
    hbal_output.say_score("Initial", cluster, scope, asked.verbose)
    # A score that is not a number is not as good as any: no move is found for it.
    if before <= least + asked.least_score:
        hbal_output.say_balanced(before, least, asked)
        return
    sys.stdout.write("Trying to minimize the CV...\n")
    names = Names(cluster, scope)
    said: list[Made] = []

    def say(made: Made) -> None:
        said.append(made)
        hbal_output.say_step(names, len(said), made)

    plan = _plan(cluster, scope, limits, asked, only, progress, say)
    for made in plan.steps[len(said) :]:
        say(made)
    hbal_output.say_end(plan, scope, asked)
    if plan.steps and not asked.like_hbal:
        hbal_output.say_sets(plan)
    hbal_output.write_commands(names, plan.steps, asked)
    after = plan.cluster if asked.like_hbal else settled(plan.cluster)
    hbal_output.save(after, "balanced", "after", asked)
    hbal_output.show_cluster(after, scope, "Final", asked)
    if asked.verbose > 3:
        hbal_output.say_sums(cluster, after, scope)


def _plan(
    cluster: Cluster,
    scope: list[int],
    limits: MoveLimits,
    asked: Asked,
    only: Callable[[str], bool],
    progress: Progress,
    say: Callable[[Made], None] | None,
) -> Plan:
    """Return hbal's moves, each said as it is found, or our own plan."""
    from ....placement.balance.run import StopRule, optimal_score, run_as_hbal

    if asked.like_hbal:
        stop = StopRule(asked.least_gain, asked.gain_limit, asked.least_score, asked.most_moves)
        return run_as_hbal(cluster, scope, limits, stop, only, say)
    from ....placement.balance.plan import make_plan
    from ....placement.balance.planner import PlanLimits

    aims = PlanLimits(
        asked.most_moves,
        asked.most_copied,
        gain_per_gib=asked.gain_per_gib,
        fair_score=asked.gain_limit,
        fair_gain=asked.least_gain,
        good_score=optimal_score(cluster, scope) + asked.least_score,
        swaps=asked.has("swaps"),
    )
    return make_plan(cluster, scope, limits, aims, only, progress.tell)
