# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``holdfast iallocator``: takes the place of htools' ``hail`` as Ganeti's allocator.

Options, answer, messages and exit statuses are those of hail 3.0.2: 0 with an answer
(also "no"), 1 if the input cannot be used, 2 if the command line cannot.  Options are
read here and not by ``argparse``, and each part of the library is imported when it is
needed: the start is most of the time of a small question.
"""

from __future__ import annotations

import gc
import sys

from ..errors import ClusterDataError, HoldfastError
from .cluster_source import STATIC_NODE_MEMORY, read_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..placement.answer import Answer
    from ..placement.asked import Request
    from ..placement.model import Cluster

ANSWERED, BAD_INPUT, BAD_COMMAND_LINE = 0, 1, 2

NONE, NEEDED, MAYBE = 0, 1, 2
OPTIONS = (
    ("p", "print-nodes", MAYBE, "FIELDS", "print the final node list"),
    ("S", "save", NEEDED, "FILE", "save the cluster before and after to FILE.pre-ialloc and so on"),
    ("t", "text-data", NEEDED, "FILE", "take the cluster from FILE, in the text format"),
    ("", "simulate", NEEDED, "SPEC", "take an empty cluster: policy,nodes,disk,memory,cpus"),
    ("v", "verbose", NONE, "", "say more"),
    ("", "ignore-dynu", NONE, "", "accepted; requests hold no dynamic utilisation"),
    ("", "ignore-soft-errors", NONE, "", "ignore soft limits"),
    ("", "no-capacity-checks", NONE, "", "do not ask that every node can be lost (N+1)"),
    ("", "restrict-allocation-to", NEEDED, "NODE,...", "place on these nodes only"),
    ("", "mond", MAYBE, "CHOICE", "accepted with 'no': monitoring daemons are not asked"),
    ("", "mond-xen", NONE, "", "accepted: monitoring daemons are not asked"),
    ("", "static-kvm-node-memory", NEEDED, "N", "MiB a KVM node needs itself; 0: as reported"),
    ("", "better", NONE, "", "mend what hail errs in; the info tells what it would have said"),
    ("", "reasons", NEEDED, "FILE", "write why, as JSON, to FILE ('-': standard error)"),
    ("V", "version", NONE, "", "show the version"),
    ("h", "help", NONE, "", "show this help"),
)
"""Each option's letter, name, whether it takes a value, the value's name, and its help."""


class CommandLine(HoldfastError):
    """The command line cannot be understood."""


class Settings:
    """What the command line says."""

    def __init__(self) -> None:
        self.given: list[tuple[str, str | None]] = []
        self.files: list[str] = []

    def has(self, name: str) -> bool:
        """Return whether the option *name* was given."""
        return any(option == name for option, _value in self.given)

    def last(self, name: str) -> str | None:
        """Return the last value that the option *name* was given."""
        values = self.all(name)
        return values[-1] if values else None

    def all(self, name: str) -> list[str]:
        """Return all values that the option *name* was given."""
        return [value or "" for option, value in self.given if option == name]


def main(arguments: Sequence[str]) -> int:
    """Answer the request that *arguments* name, and return the exit status."""
    try:
        settings = read_command_line(arguments)
    except CommandLine as error:
        sys.stderr.write(f"Command line error: {error}\n\n{usage()}")
        return BAD_COMMAND_LINE
    if settings.has("help"):
        sys.stdout.write(usage())
        return ANSWERED
    if settings.has("version"):
        from .. import __version__

        sys.stdout.write(f"holdfast iallocator {__version__}, as hail of htools 3.0.2\n")
        return ANSWERED
    try:
        return _run(settings)
    except HoldfastError as error:
        sys.stderr.write(f"Error: {error}\n")
        return BAD_INPUT
    except RecursionError:
        sys.stderr.write("Error: the request is nested too deeply\n")
        return BAD_INPUT
    except (OverflowError, MemoryError) as error:
        sys.stderr.write(f"Error: a number or the request is too large: {error}\n")
        return BAD_INPUT


def main_and_exit(arguments: Sequence[str]) -> None:
    """Be the allocator's whole process: answer, and end without clearing up behind.

    Freeing what a large request was read into takes as long as answering it.
    """
    import os

    gc.disable()
    status = main(arguments)
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        status = BAD_INPUT
    os._exit(status)


def read_command_line(arguments: Sequence[str]) -> Settings:
    """Return what *arguments* say; raises `CommandLine` if they are not understood.

    As with getopt, options may stand anywhere, their names may be cut short, and
    ``--`` ends them.
    """
    settings = Settings()
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--":
            settings.files += rest
            break
        if word.startswith("--"):
            _read_long(settings, word[2:], rest)
        elif word.startswith("-") and word != "-":
            _read_short(settings, word[1:], rest)
        else:
            settings.files.append(word)
    return settings


def _read_long(settings: Settings, word: str, rest: list[str]) -> None:
    start, equals, value = word.partition("=")
    names = [option for option in OPTIONS if option[1].startswith(start)]
    exact = [option for option in names if option[1] == start]
    if not names:
        raise CommandLine(f"unrecognized option `--{start}'")
    if len(names) > 1 and not exact:
        shown = "".join([f"\n  --{option[1]}  {option[4]}" for option in names])
        raise CommandLine(f"option `--{start}' is ambiguous; could be one of:{shown}")
    _letter, name, takes, what, _help = (exact or names)[0]
    if takes == NONE and equals:
        raise CommandLine(f"option `--{start}' doesn't allow an argument")
    if takes == NEEDED and not equals:
        if not rest:
            raise CommandLine(f"option `--{start}' requires an argument {what}")
        value = rest.pop(0)
    settings.given.append((name, value if equals or takes == NEEDED else None))


def _read_short(settings: Settings, letters: str, rest: list[str]) -> None:
    while letters:
        letter, letters = letters[0], letters[1:]
        known = [option for option in OPTIONS if option[0] == letter]
        if not known:
            raise CommandLine(f"unrecognized option `-{letter}'")
        _letter, name, takes, what, _help = known[0]
        if takes == NONE:
            settings.given.append((name, None))
            continue
        if takes == NEEDED and not letters:
            if not rest:
                raise CommandLine(f"option `-{letter}' requires an argument {what}")
            letters = rest.pop(0)
        settings.given.append((name, letters or None))
        return


def usage() -> str:
    """Return the help text."""
    lines = ["Usage: holdfast iallocator [OPTION...] FILE\n"]
    for letter, name, takes, what, text in OPTIONS:
        value = {NONE: "", NEEDED: f"={what}", MAYBE: f"[={what}]"}[takes]
        short = f"-{letter}, " if letter else "    "
        lines.append(f"  {short}--{name + value:<34} {text}\n")
    return "".join(lines)


def _run(settings: Settings) -> int:
    from ..placement.answer import answer, dedicated
    from ..placement.options import Options
    from ..placement.request import read_request

    memory = _node_memory(settings)
    restrict = settings.last("restrict-allocation-to")
    options = Options(
        settings.has("ignore-soft-errors"),
        not settings.has("no-capacity-checks"),
        None if restrict is None else restrict.split(","),
        settings.has("better"),
    )
    _check_monitoring(settings)
    if not settings.files:
        raise ClusterDataError("This program needs an input file.")
    if len(settings.files) > 1:
        raise ClusterDataError("Only one argument is accepted (the input file)")
    cluster, request, warnings = read_request(read_source(settings.files[0]), memory)
    _warn(warnings)
    cluster = _other_cluster(settings, cluster)
    if len(settings.all("verbose")) > 1:
        _say_request(cluster, request)
        if dedicated(cluster, request):
            sys.stderr.write("Allocation on a dedicated cluster; using lost-allocations metrics.\n")
    _show(settings, cluster, "Initial", "pre-ialloc", "before")
    result = answer(cluster, request, options)
    sys.stdout.write(result.text() + "\n")
    sys.stdout.flush()
    _write_reasons(settings, cluster, request, options, result)
    _show(settings, result.cluster, "Final", "post-ialloc", "after")
    return ANSWERED


def _node_memory(settings: Settings) -> int:
    given = settings.last("static-kvm-node-memory")
    if given is None:
        return STATIC_NODE_MEMORY
    try:
        return int(given)
    except ValueError:
        raise ClusterDataError(f"static node memory: cannot parse string '{given}'") from None


def _check_monitoring(settings: Settings) -> None:
    if not settings.has("mond"):
        return
    choice = settings.last("mond") or "yes"
    if choice not in ("yes", "no"):
        raise ClusterDataError(f"Invalid choice '{choice}', pass one of 'yes' or 'no'")
    if choice == "yes":
        raise ClusterDataError(
            "--mond: the monitoring daemons' load is not taken into account; expected --mond=no"
        )


def _warn(warnings: list[str]) -> None:
    if warnings:
        lines = "".join([f"  - {warning}\n" for warning in warnings])
        sys.stderr.write(f"Warning: cluster has inconsistent data:\n{lines}\n")


def _other_cluster(settings: Settings, cluster: Cluster) -> Cluster:
    """Return the cluster that the options name in place of the request's."""
    simulated, name = settings.all("simulate"), settings.last("text-data")
    if not simulated and name is None:
        return cluster
    try:
        if simulated:
            from ..placement.simulation import simulate

            found, warnings = simulate(simulated)
        else:
            from ..placement.text_format import read_text

            found, warnings = read_text(read_source(name or ""))
    except ClusterDataError as error:
        raise ClusterDataError(f"failed to load data, aborting: {error}") from None
    _warn(warnings)
    return found


def _say_request(cluster: Cluster, request: Request) -> None:
    names = [placement.instance.name for placement in request.placements]
    names += [cluster.instance(index).name for index in request.instances]
    sys.stderr.write(f"Received request: {request.kind} of {', '.join(names) or 'nothing'}\n")


def _show(settings: Settings, cluster: Cluster, which: str, ending: str, when: str) -> None:
    """Print and save the cluster, as far as the options ask for it."""
    if settings.has("print-nodes"):
        from ..placement.node_table import node_table

        fields = settings.last("print-nodes") or ""
        names = (["+"] if fields.startswith("+") else []) + [
            field for field in fields.lstrip("+").split(",") if field
        ]
        sys.stderr.write(f"\n{which} cluster status:\n{node_table(cluster, names)}\n")
    name = settings.last("save")
    if name is not None:
        from ..placement.text_format import write_text

        path = f"{name}.{ending}"
        _write_file(path, write_text(cluster))
        sys.stderr.write(
            f"The cluster state {when} iallocator run has been written to file '{path}'\n"
        )


def _write_file(path: str, text: str) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(text)
    except OSError as error:
        raise ClusterDataError(f"{path} cannot be written: {error.strerror}") from None


def _write_reasons(
    settings: Settings, cluster: Cluster, request: Request, options: object, result: Answer
) -> None:
    name = settings.last("reasons")
    if name is None:
        return
    from ..placement.json_text import encode
    from ..placement.options import Options
    from ..placement.reasons import reasons

    if isinstance(options, Options):
        text = encode(reasons(cluster, request, options, result)) + "\n"
        if name == "-":
            sys.stderr.write(text)
        else:
            _write_file(name, text)
