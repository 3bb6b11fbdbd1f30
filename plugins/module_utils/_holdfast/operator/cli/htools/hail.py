# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``holdfast iallocator``: Ganeti's allocator in place of htools' ``hail``.

Options, answer, messages and exit statuses are those of hail 3.0.2: 0 with an answer (also
"no"), 1 if the input cannot be used, 2 if the command line cannot.  ``argparse`` is not used, and
parts of the library are imported when needed: the start is most of the time of a small question.
"""

from __future__ import annotations

import gc
import sys

from ....errors import ClusterDataError
from ....hints import TYPE_CHECKING, Sequence
from ...streams import Progress
from . import options as htools_options
from .options import MAYBE, NEEDED, NONE, Settings
from .source import STATIC_NODE_MEMORY, ask_loads, read_source, save, show_nodes, write_file

if TYPE_CHECKING:
    from ....placement.allocate.solution import Options
    from ....placement.iallocator.answer import Answer
    from ....placement.iallocator.query import Request
    from ....placement.model.cluster import Cluster

PROGRAM = ("holdfast iallocator", "[OPTION...] FILE", "hail", "reading the request")

OPTIONS = (
    ("p", "print-nodes", MAYBE, "FIELDS", "print the final node list"),
    ("S", "save", NEEDED, "FILE", "save the cluster before and after to FILE.pre-ialloc and so on"),
    ("t", "text-data", NEEDED, "FILE", "take the cluster from FILE, in the text format"),
    ("", "simulate", NEEDED, "SPEC", "take an empty cluster: policy,nodes,disk,memory,cpus"),
    ("v", "verbose", NONE, "", "print more"),
    ("", "ignore-dynu", NONE, "", "accepted; requests hold no dynamic utilisation"),
    ("", "ignore-soft-errors", NONE, "", "ignore soft limits"),
    ("", "no-capacity-checks", NONE, "", "do not ask that every node can be lost (N+1)"),
    ("", "restrict-allocation-to", NEEDED, "NODE,...", "place on these nodes only"),
    ("", "mond", MAYBE, "CHOICE", "ask the nodes' monitoring daemons for their load: yes or no"),
    ("", "mond-xen", NONE, "", "with --mond: ask for the load of each instance under Xen"),
    ("", "static-kvm-node-memory", NEEDED, "N", "MiB a KVM node needs itself; 0: as reported"),
    ("", "better", NONE, "", "correct hail's mistakes; the info shows hail's own answer"),
    ("", "reasons", NEEDED, "FILE", "write why, as JSON, to FILE ('-': standard error)"),
    ("V", "version", NONE, "", "show the version"),
    ("h", "help", NONE, "", "show this help"),
)
"""Each option's letter, name, whether it takes a value, the value's name, and its help."""


def main(arguments: Sequence[str]) -> int:
    """Answer the request that *arguments* name, and return the exit status."""
    return htools_options.run_program(PROGRAM, OPTIONS, arguments, _run)


def main_and_exit(arguments: Sequence[str]) -> None:
    """Answer, and end the process without freeing the request: that takes as long as the answer.

    ``os`` is not loaded under ``-S``, and its import takes as long as the rest of this file.
    """
    from posix import _exit

    gc.disable()
    _exit(htools_options.finish_output(main(arguments)))


def _run(settings: Settings, progress: Progress) -> None:
    from ....placement.allocate.solution import Options
    from ....placement.iallocator.answer import answer, dedicated
    from ....placement.iallocator.request import read_request

    memory, monitored = _read_values(settings)
    restrict = settings.last("restrict-allocation-to")
    options = Options(
        settings.has("ignore-soft-errors"),
        not settings.has("no-capacity-checks"),
        None if restrict is None else restrict.split(","),
        settings.has("better"),
    )
    if not settings.files:
        raise ClusterDataError("This program needs an input file.")
    if len(settings.files) > 1:
        raise ClusterDataError("Only one argument is accepted (the input file)")
    cluster, request, warnings = read_request(read_source(settings.files[0]), memory)
    htools_options.warn(warnings)
    cluster = _other_cluster(settings, cluster, request)
    if monitored:
        progress.what = "asking the nodes for their load"
        ask_loads(cluster, settings.has("mond-xen"))
    if settings.has("verbose"):
        _say_request(cluster, request)
        if dedicated(cluster, request):
            sys.stderr.write("Allocation on a dedicated cluster; using lost-allocations metrics.\n")
    _show(settings, cluster, cluster, "Initial", "pre-ialloc", "before")
    progress.what = f"answering: {request.kind}"
    result = answer(cluster, request, options)
    sys.stdout.write(result.text() + "\n")
    sys.stdout.flush()
    _write_reasons(settings, cluster, request, options, result)
    if settings.has("print-nodes") or settings.has("save"):
        from ....placement.iallocator.node_table import as_left

        after = as_left(result, request, cluster, options)
        _show(settings, after, cluster, "Final", "post-ialloc", "after")


def _read_values(settings: Settings) -> tuple[int, bool]:
    """Return the memory that a node needs itself, and whether nodes are asked for their load.

    The first wrong value is an error, even if the option is given again.
    """
    memory, monitored = STATIC_NODE_MEMORY, False
    for name, value in settings.given:
        if name == "static-kvm-node-memory":
            from ....placement.iallocator.numerals import read_whole

            memory = htools_options.read_value(read_whole, "static node memory", value)
        elif name == "mond":
            monitored = htools_options.read_choice(value)
    return memory, monitored


def _other_cluster(settings: Settings, cluster: Cluster, request: Request) -> Cluster:
    """Return the cluster that the options name in place of the request's.

    As in hail, the instance of *request* is the one with the same number there.
    """
    simulated, name = settings.all("simulate"), settings.last("text-data")
    if not simulated and name is None:
        return cluster
    try:
        if simulated:
            from ....placement.iallocator.simulation import simulate

            found, warnings = simulate(simulated)
        else:
            from ....placement.iallocator.text_format import read_text

            found, warnings = read_text(read_source(name or ""))
    except ClusterDataError as error:
        raise ClusterDataError(f"failed to load data, aborting: {error}") from None
    htools_options.warn(warnings)
    for index in request.instances:
        if index >= len(found.names):
            raise ClusterDataError(
                f"the request is about '{cluster.names[index]}', its instance number {index + 1}; "
                f"the cluster that -t or --simulate names has {len(found.names)} instances only"
            )
    return found


def _say_request(cluster: Cluster, request: Request) -> None:
    names = [placement.instance.name for placement in request.placements]
    names += [cluster.instance(index).name for index in request.instances]
    sys.stderr.write(f"Received request: {request.kind} of {', '.join(names) or 'nothing'}\n")


def _show(
    settings: Settings, cluster: Cluster, loaded: Cluster, which: str, ending: str, when: str
) -> None:
    """Print and save the cluster, as far as the options ask for it.

    Names are shortened as in the cluster that was *loaded*, without new instances.
    """
    if settings.has("print-nodes"):
        show_nodes(settings.last("print-nodes"), cluster, loaded.domain(), which)
    save(settings.last("save"), cluster, ending, f"{when} iallocator run")


def _write_reasons(
    settings: Settings, cluster: Cluster, request: Request, options: Options, result: Answer
) -> None:
    name = settings.last("reasons")
    if name is None:
        return
    from ....placement.explain.reasons import reasons
    from ....placement.iallocator.json_text import encode

    text = encode(reasons(cluster, request, options, result)) + "\n"
    if name == "-":
        sys.stderr.write(text)
    else:
        write_file(name, text)
