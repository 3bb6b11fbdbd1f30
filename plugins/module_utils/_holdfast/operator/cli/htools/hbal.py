# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``holdfast balance``: plans better than htools' ``hbal``; ``--like-hbal`` makes hbal's moves.

Options, output, messages and exit statuses are those of hbal 3.0.2 for a cluster in a
file: 0 with an answer, 1 if the input cannot be used, 2 if the command line cannot.  What
needs Ganeti's daemons (``-L``, ``-m``, ``-X``) is refused.
"""

from __future__ import annotations

import gc
import sys
from math import isfinite

from ....errors import ClusterDataError
from ....hints import Callable, Sequence
from ....placement.balance import setup
from ....placement.balance.hbal_lines import Names, step_line
from ....placement.balance.plan import make_plan
from ....placement.balance.search import PlanLimits, optimal_score, run_as_hbal, score_of
from ....placement.balance.state import Made, MoveLimits, Plan
from ....placement.iallocator.numerals import read_decimal, read_whole
from ....placement.iallocator.text_format import read_text
from ....placement.model.cluster import Cluster
from ...streams import Progress
from . import hbal_output, options
from .options import MAYBE, NEEDED, NONE, CommandLine, Settings, read_choice, read_value
from .source import STATIC_NODE_MEMORY, ask_loads, read_source, save

OPTIONS = (
    ("p", "print-nodes", MAYBE, "FIELDS", "print the nodes before and after"),
    ("", "print-instances", NONE, "", "print the instances before and after"),
    ("C", "print-commands", MAYBE, "FILE", "print Ganeti's commands, or write them to FILE"),
    ("t", "text-data", NEEDED, "FILE", "take the cluster from FILE, in the text format"),
    ("I", "ialloc-src", NEEDED, "FILE", "take the cluster from FILE, an allocator's request"),
    ("E", "evac-mode", NONE, "", "only move instances off nodes that are offline or drained"),
    ("", "restricted-migration", NONE, "", "no other primary, unless the old one is drained"),
    ("m", "master", NEEDED, "ADDRESS", "refused: the cluster has to be in a file"),
    ("L", "luxi", MAYBE, "SOCKET", "refused: the cluster has to be in a file"),
    ("X", "exec", NONE, "", "refused: print the commands (-C) and run them"),
    ("", "first-job-group", NONE, "", "accepted: nothing is executed"),
    ("", "reason", NEEDED, "REASON", "accepted: nothing is executed"),
    ("G", "group", NEEDED, "ID", "the node group to balance, by name or uuid"),
    ("l", "max-length", NEEDED, "N", "make N moves at most"),
    ("v", "verbose", NONE, "", "print more"),
    ("q", "quiet", NONE, "", "print less"),
    ("O", "offline", NEEDED, "NODE", "count NODE as offline; may be repeated"),
    ("", "static-kvm-node-memory", NEEDED, "N", "MiB a KVM node needs itself; 0: as reported"),
    ("e", "min-score", NEEDED, "EPSILON", "stop so near to the score that N+1 costs at least"),
    ("", "max-cpu", NEEDED, "RATIO", "most virtual cores for each core of a node"),
    ("", "min-disk", NEEDED, "RATIO", "least share of a node's disk to keep free"),
    ("g", "min-gain", NEEDED, "DELTA", "least gain of a move where the score is good"),
    ("", "min-gain-limit", NEEDED, "SCORE", "the score that is good enough for --min-gain"),
    ("", "no-disk-moves", NONE, "", "copy no disks"),
    ("", "select-instances", NEEDED, "INSTS", "move these only"),
    ("", "no-instance-moves", NONE, "", "change secondaries only"),
    ("", "ignore-soft-errors", NONE, "", "ignore soft limits"),
    ("U", "dynu-file", NEEDED, "FILE", "take instances' loads from FILE"),
    ("", "ignore-dynu", NONE, "", "count no loads"),
    ("", "mond", MAYBE, "CHOICE", "ask the nodes' monitoring daemons for their load: yes or no"),
    ("", "mond-data", NEEDED, "FILE", "with --mond: take what they said from FILE"),
    ("", "exit-on-missing-mond-data", NONE, "", "fail unless all of them answer"),
    ("", "mond-xen", NONE, "", "with --mond: ask for the load of each instance under Xen"),
    ("", "exclusion-tags", NEEDED, "TAG,...", "instances with equal tags of these keep apart"),
    ("", "exclude-instances", NEEDED, "INSTS", "do not move these"),
    ("S", "save", NEEDED, "FILE", "save the cluster to FILE.original and FILE.balanced"),
    ("", "priority", NEEDED, "PRIO", "accepted: nothing is executed"),
    ("", "like-hbal", NONE, "", "make the moves that hbal makes, without N+1 on the way"),
    ("", "most-copied", NEEDED, "GIB", "copy at most this many GiB; not with --like-hbal"),
    ("", "gain-per-gib", NEEDED, "GAIN", "the least gain for each GiB; not with --like-hbal"),
    ("", "swaps", NONE, "", "also swap instances where that takes more moves than hbal makes"),
    ("", "budget", NEEDED, "SECONDS", "search a better plan for this long; not with --like-hbal"),
    ("", "seed", NEEDED, "N", "with --budget: the seed of the search, 1 by default"),
    ("", "ignore-n1", NONE, "", "plan without N+1: a node may be lost only before the moves"),
    ("", "json", NONE, "", "print the plan as JSON, with what blocks better moves"),
    ("", "machine-reassignment", NEEDED, "MODEL", "solve that problem instead; see its --help"),
    ("V", "version", NONE, "", "show the version"),
    ("h", "help", NONE, "", "show this help"),
)
"""Each option's letter, name, whether it takes a value, the value's name, and its help."""

REFUSED = {
    "master": "-m: a cluster is not asked over the network; save it to a file and give it with -t",
    "luxi": "-L: Ganeti's daemon is not asked; save the cluster to a file and give it with -t",
    "exec": "-X: nothing is executed; write the commands with -C FILE and run that file",
}
NUMBERS: dict[str, tuple[str, Callable[[str, str], float], str]] = {
    "max-length": ("most_moves", read_whole, "max solution length"),
    "min-score": ("least_score", read_decimal, "min score"),
    "min-gain": ("least_gain", read_decimal, "min gain"),
    "min-gain-limit": ("gain_limit", read_decimal, "min gain limit"),
    "max-cpu": ("most_cpus", read_decimal, "parsing max-cpu"),
    "min-disk": ("least_disk", read_decimal, "min free disk space"),
    "static-kvm-node-memory": ("node_memory", read_whole, "static node memory"),
}
"""Options that are numbers: the attribute of `HbalOptions`, its reader, and how errors begin."""
PRIORITIES = ("low", "normal", "high")


class HbalOptions:
    """The values among the *settings*; those not given have hbal's defaults.

    Raises `CommandLine` or `ClusterDataError`, with hbal's words, for a wrong one.
    """

    def __init__(self, settings: Settings) -> None:
        self.has = settings.has
        self.last = settings.last
        self.all = settings.all
        self.verbose = 1 + len(settings.all("verbose")) - len(settings.all("quiet"))
        self.like_hbal = settings.has("like-hbal")
        self.json = settings.has("json")
        self.monitored = False
        self.most_moves = -1
        self.least_score = 1e-9
        self.least_gain = 0.01
        self.gain_limit = 0.1
        self.most_cpus: float | None = None
        self.least_disk: float | None = None
        self.node_memory = STATIC_NODE_MEMORY
        self.most_copied = -1
        self.gain_per_gib = 0.0
        self.budget: float | None = None
        self.seed = 1
        for name, value in settings.given:
            self._read(name, value)
        if settings.has("machine-reassignment"):
            raise CommandLine("--machine-reassignment cannot be shortened")
        if settings.files:
            raise ClusterDataError("This program doesn't take any arguments.")
        for name, text in REFUSED.items():
            if self.has(name):
                raise ClusterDataError(text)
        for name in ("most-copied", "gain-per-gib", "swaps", "budget", "seed", "ignore-n1"):
            if self.like_hbal and self.has(name):
                raise ClusterDataError(f"--{name} cannot be given with --like-hbal")

    def names(self, option: str) -> list[str]:
        """Return the names that *option* was given, each time separated by commas."""
        return [name for text in self.all(option) if text for name in text.split(",")]

    def _read(self, name: str, text: str | None) -> None:
        """Take the *text* of the option *name*: of all wrong ones the first is an error."""
        if name in NUMBERS:
            attribute, read, what = NUMBERS[name]
            setattr(self, attribute, read_value(read, what, text))
        if name == "max-cpu" and self.most_cpus is not None and self.most_cpus <= 0:
            raise CommandLine("Invalid value of the max-cpu ratio, expected >0")
        if name == "min-disk" and self.least_disk is not None and not isfinite(self.least_disk):
            raise CommandLine(f"min free disk space: expected a share, not '{text}'")
        if name == "most-copied":
            self.most_copied = int(_no_less("most-copied", "most copied", text, " (GiB)") * 1024)
        elif name == "gain-per-gib":
            self.gain_per_gib = _no_less("gain-per-gib", "gain per GiB", text, "")
        elif name in ("budget", "seed"):
            # Imported here: a small cluster is balanced faster than the search is imported.
            from .search_options import read_budget, read_seed

            if name == "seed":
                self.seed = read_seed(text)
            else:
                self.budget = read_budget(text, 0.0)
        elif name == "priority" and text not in PRIORITIES:
            raise CommandLine(f"Unknown priority '{text}'")
        elif name == "mond":
            self.monitored = read_choice(text)


def _no_less(name: str, what: str, text: str | None, unit: str) -> float:
    """Return the number *text* of our own option *name*: finite, and 0 or more."""
    number = read_value(read_decimal, what, text)
    if not isfinite(number) or number < 0:
        raise CommandLine(f"Invalid value {number:g} of {name}, expected >=0{unit}")
    return number


PROGRAM = ("holdfast balance", "[OPTION...]", "hbal", "reading the cluster")


def main(arguments: Sequence[str]) -> int:
    """Balance the cluster that *arguments* name, and return the exit status."""
    if any(word.partition("=")[0] == "--machine-reassignment" for word in arguments):
        # Imported here: a small cluster is balanced faster than its search is imported.
        from .reassignment import main as reassign

        return reassign(arguments)
    return options.run_program(PROGRAM, OPTIONS, arguments, _run)


def main_and_exit(arguments: Sequence[str]) -> None:
    """Balance, and end the process without freeing what was read: that would take as long.

    ``os`` is not loaded under ``-S``, and its import takes as long as to plan a few moves.
    """
    from posix import _exit

    gc.disable()
    _exit(options.finish_output(main(arguments)))


def _run(settings: Settings, progress: Progress) -> None:
    hbal_options = HbalOptions(settings)
    cluster, only = _prepared(hbal_options)
    save(hbal_options.last("save"), cluster, "original", "before balancing")
    if not cluster.names and not hbal_options.json:
        sys.stdout.write("Cluster is empty, exiting.\n")
        return
    if not hbal_options.json:
        hbal_output.say_loaded(cluster, hbal_options)
    group = setup.choose_group(cluster, hbal_options.last("group"))
    scope = [node.index for node in cluster.nodes if node.group == group]
    limits = MoveLimits(
        hbal_options.has("evac-mode"),
        not hbal_options.has("no-disk-moves"),
        not hbal_options.has("no-instance-moves"),
        hbal_options.has("restricted-migration"),
        hbal_options.has("ignore-soft-errors"),
    )
    progress.what = "balancing"

    def plan(say: Callable[[Made], None] | None = None) -> Plan:
        """Return hbal's moves, each passed to *say* when it is found, or our plan."""
        aims = PlanLimits(
            hbal_options.most_moves,
            hbal_options.most_copied,
            gain_per_gib=hbal_options.gain_per_gib,
            fair_score=hbal_options.gain_limit,
            fair_gain=hbal_options.least_gain,
            good_score=optimal_score(cluster, scope) + hbal_options.least_score,
            swaps=hbal_options.has("swaps"),
            keep_n1=not hbal_options.has("ignore-n1"),
        )
        if hbal_options.like_hbal:
            return run_as_hbal(cluster, scope, limits, aims, only, say)
        found = make_plan(cluster, scope, limits, aims, only, progress.tell)
        if hbal_options.budget is None:
            return found
        from .hbal_search import improved

        question = (cluster, scope, limits, aims, only)
        return improved(question, found, hbal_options.budget, hbal_options.seed, progress)

    if hbal_options.json:
        from ....placement.balance.description import describe_plan
        from ....placement.iallocator.json_text import encode

        sys.stdout.write(encode(describe_plan(cluster, scope, plan(), limits, only)) + "\n")
        return
    hbal_output.say_group(cluster, scope, group, hbal_options)
    _balance(cluster, scope, hbal_options, plan)


def _prepared(hbal_options: HbalOptions) -> tuple[Cluster, Callable[[str], bool]]:
    """Return the cluster with the changes that the options make, and which instances may move."""
    cluster, warnings = _read(hbal_options)
    name = hbal_options.last("dynu-file")
    loads = None if name is None else setup.read_loads(read_source(name))
    only = setup.choose_instances(
        cluster, hbal_options.names("select-instances"), hbal_options.names("exclude-instances")
    )
    if hbal_options.monitored:
        complete = ask_loads(cluster, hbal_options.has("mond-xen"), hbal_options.last("mond-data"))
        if not complete and hbal_options.has("exit-on-missing-mond-data"):
            raise ClusterDataError("Not all required data available")
    if hbal_options.verbose != 0:
        options.warn(warnings)
    if not hbal_options.json:
        hbal_output.say_tags(cluster, hbal_options)
    if hbal_options.has("ignore-dynu"):
        setup.set_loads(cluster, None)
    elif loads is not None:
        setup.set_loads(cluster, loads)
    setup.take_offline(cluster, hbal_options.all("offline"))
    if hbal_options.most_cpus is not None:
        setup.set_most_cpus(cluster, hbal_options.most_cpus)
    if hbal_options.least_disk is not None:
        setup.set_least_disk(cluster, hbal_options.least_disk)
    return cluster, only


def _read(hbal_options: HbalOptions) -> tuple[Cluster, list[str]]:
    text_file, request_file = hbal_options.last("text-data"), hbal_options.last("ialloc-src")
    tags = hbal_options.last("exclusion-tags") or ""
    prefixes = tuple([f"{tag}:" for tag in tags.split(",") if tag])
    try:
        if text_file is not None:
            return read_text(read_source(text_file), prefixes)
        if request_file is not None:
            if prefixes:
                raise ClusterDataError("--exclusion-tags needs the cluster in the text format")
            from ....placement.iallocator.request import read_described_cluster

            text = read_source(request_file)
            return read_described_cluster(text, hbal_options.node_memory)
        raise ClusterDataError("No backend selected! Exiting.")
    except ClusterDataError as error:
        raise ClusterDataError(f"failed to load data, aborting: {error}") from None


def _balance(
    cluster: Cluster,
    scope: list[int],
    hbal_options: HbalOptions,
    make: Callable[[Callable[[Made], None] | None], Plan],
) -> None:
    """Print the plan that *make* returns, and write the files that are asked for."""
    hbal_output.show_cluster(cluster, scope, "Initial", hbal_options)
    before, least = score_of(cluster, scope), optimal_score(cluster, scope)
    hbal_output.say_score("Initial", cluster, scope, hbal_options.verbose)
    # A score that is not a number is not as good as any: no move is found for it.
    if before <= least + hbal_options.least_score:
        hbal_output.say_balanced(before, least, hbal_options)
        return
    sys.stdout.write("Trying to minimize the CV...\n")
    names = Names(cluster, scope)
    said: list[Made] = []

    def say(made: Made) -> None:
        said.append(made)
        sys.stdout.write(step_line(names, len(said), made))
        sys.stdout.flush()

    plan = make(say)
    hbal_output.say_given_up(plan)
    for made in plan.steps[len(said) :]:
        say(made)
    hbal_output.say_end(plan, scope, hbal_options)
    if plan.steps and not hbal_options.like_hbal:
        hbal_output.say_sets(plan)
    hbal_output.write_commands(names, plan.steps, hbal_options)
    after = plan.cluster if hbal_options.like_hbal else setup.settled(plan.cluster)
    save(hbal_options.last("save"), after, "balanced", "after balancing")
    hbal_output.show_cluster(after, scope, "Final", hbal_options)
    if hbal_options.verbose > 3:
        hbal_output.say_sums(cluster, after, scope)
