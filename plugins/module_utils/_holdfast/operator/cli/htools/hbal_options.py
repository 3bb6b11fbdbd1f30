# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``holdfast balance`` is asked for: hbal's options (htools 3.0.2) and our own."""

from __future__ import annotations

from math import isfinite

from ....errors import ClusterDataError
from ....placement.iallocator.numerals import read_decimal, read_whole
from .options import MAYBE, NEEDED, NONE, CommandLine, read_value
from .source import STATIC_NODE_MEMORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .options import Settings

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
    ("v", "verbose", NONE, "", "say more"),
    ("q", "quiet", NONE, "", "say less"),
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
    ("", "most-copied", NEEDED, "GIB", "copy at most so many GiB; not with --like-hbal"),
    ("", "gain-per-gib", NEEDED, "GAIN", "the least gain for each GiB; not with --like-hbal"),
    ("", "swaps", NONE, "", "also swap instances where that takes more moves than hbal makes"),
    ("", "json", NONE, "", "print the plan as JSON, with what blocks better moves"),
    ("V", "version", NONE, "", "show the version"),
    ("h", "help", NONE, "", "show this help"),
)
"""Each option's letter, name, whether it takes a value, the value's name, and its help."""

REFUSED = {
    "master": "-m: a cluster is not asked over the network; save it to a file and give it with -t",
    "luxi": "-L: Ganeti's daemon is not asked; save the cluster to a file and give it with -t",
    "exec": "-X: nothing is executed; write the commands with -C FILE and run that file",
}
PRIORITIES = ("low", "normal", "high")


class Asked:
    """The numbers and words among the *settings*; those not given have hbal's defaults.

    Raises `CommandLine` or `ClusterDataError`, with hbal's words, for what cannot be.
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
        for name, value in settings.given:
            self._read(name, value)
        if settings.files:
            raise ClusterDataError("This program doesn't take any arguments.")
        for name, text in REFUSED.items():
            if self.has(name):
                raise ClusterDataError(text)
        for name in ("most-copied", "gain-per-gib", "swaps"):
            if self.like_hbal and self.has(name):
                raise ClusterDataError(f"--{name} cannot be given with --like-hbal")

    def names(self, option: str) -> list[str]:
        """Return the names that *option* was given, each time separated by commas."""
        return [name for text in self.all(option) if text for name in text.split(",")]

    def _read(self, name: str, text: str | None) -> None:
        """Take the *text* of the option *name*: of all wrong ones the first is an error."""
        if name == "max-length":
            self.most_moves = read_value(read_whole, "max solution length", text)
        elif name == "min-score":
            self.least_score = read_value(read_decimal, "min score", text)
        elif name == "min-gain":
            self.least_gain = read_value(read_decimal, "min gain", text)
        elif name == "min-gain-limit":
            self.gain_limit = read_value(read_decimal, "min gain limit", text)
        elif name == "max-cpu":
            self.most_cpus = read_value(read_decimal, "parsing max-cpu", text)
            if self.most_cpus <= 0:
                raise CommandLine("Invalid value of the max-cpu ratio, expected >0")
        elif name == "min-disk":
            self.least_disk = read_value(read_decimal, "min free disk space", text)
            if not isfinite(self.least_disk):
                raise CommandLine(f"min free disk space: expected a share, not '{text}'")
        elif name == "static-kvm-node-memory":
            self.node_memory = read_value(read_whole, "static node memory", text)
        elif name == "most-copied":
            self.most_copied = int(_no_less("most-copied", "most copied", text, " (GiB)") * 1024)
        elif name == "gain-per-gib":
            self.gain_per_gib = _no_less("gain-per-gib", "gain per GiB", text, "")
        elif name == "priority" and text not in PRIORITIES:
            raise CommandLine(f"Unknown priority '{text}'")
        elif name == "mond":
            choice = "yes" if text is None else text
            if choice not in ("yes", "no"):
                raise CommandLine(f"Invalid choice '{choice}', pass one of 'yes' or 'no'")
            self.monitored = choice == "yes"


def _no_less(name: str, what: str, text: str | None, unit: str) -> float:
    """Return the number *text* of our own option *name*: 0 or more, and with an end."""
    number = read_value(read_decimal, what, text)
    if not isfinite(number) or number < 0:
        raise CommandLine(f"Invalid value {number:g} of {name}, expected >=0{unit}")
    return number
