# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fill a cluster with ever smaller instances, as htools' tiered placing does.

The rules are those of htools (Cluster, version 3.0.2).  When no more instances of a size fit,
the size is reduced by one step in what kept most places from the next one.  If that ends with
nothing placed, the sizes on the way are taken up again from the last: each is reduced in one
thing until it fits.
"""

from __future__ import annotations

from dataclasses import replace

from ...hints import Iterator, Sequence
from ..allocate.solution import Options
from ..model.admission import FAILURES
from ..model.cluster import Cluster, Policy, Spec
from ..model.score import Score
from .capacity import Filled, Size, best_place, counts, fill_on, new_instance, unless_short

MOST_CPUS = 1e6
"""More cores than anything has: what a ratio without end comes to."""


def fill_tiered(
    cluster: Cluster,
    sizes: Sequence[Size],
    template: str,
    options: Options,
    most: int | None = None,
) -> Filled:
    """Place instances of each of *sizes* and then of ever smaller ones, until none fits."""
    now = Filled(cluster, (), {})
    stopped = unless_short(now, options)
    if stopped is not None:
        return stopped
    for size in sizes:
        if most is None or len(now.placed) < most:
            now = _fill_smaller_and_smaller(now, size, template, options, most)
    return now


def _fill_smaller_and_smaller(
    start: Filled, size: Size, template: str, options: Options, most: int | None
) -> Filled:
    """Place instances of *size*, and go on with smaller ones as far as that leads to more."""
    now = start
    tries = _Tries(start.cluster, template, options)
    most_anywhere = _most_anywhere(start.cluster)
    way: list[Size] = []
    outcome = start
    desired: Size | None = size
    while desired is not None:
        before = len(now.placed)
        failures = tries.without_room(desired) if way else None
        if failures is None:
            now = fill_on(now, desired, template, options, most)
        else:
            now = replace(now, failures=failures)
        if most is not None and len(now.placed) >= most:
            return now
        if len(now.placed) > before:
            tries, way = _Tries(now.cluster, template, options), []
        if not way:
            outcome = now
        # The most frequent first, of equals the last of htools.
        ranked = sorted(FAILURES, key=lambda name: now.failures.get(name, 0))[::-1]
        tries.kept_by[desired] = ranked
        way.append(desired)
        # What is beyond all nodes and policies fails alike, however much it is.
        desired = desired.last_beyond(ranked[0], most_anywhere).smaller(ranked[0])
        while desired is None and way:
            desired = tries.first_that_fits(way.pop())
    return outcome


def _most_anywhere(cluster: Cluster) -> Spec:
    """Return a size beyond which, in memory, disk or cores, nothing fits any node or policy."""
    nodes = cluster.nodes
    specs = [most for node in nodes for _least, most in node.policy.ranges]
    memory = [max(node.unallocated, node.free_memory_forth) for node in nodes]
    disk = [max(node.free_disk, node.free_disk_forth) for node in nodes]
    cpus = [node.policy.vcpu_ratio * node.total_cpus - min(0, node.used_cpus) for node in nodes]
    whole_cpus = [int(max(0.0, min(MOST_CPUS, most))) for most in cpus]
    return Spec(
        max([spec.memory for spec in specs] + memory, default=0),
        max([spec.cpus for spec in specs] + whole_cpus, default=0),
        max([spec.disk for spec in specs] + disk, default=0),
        0,
        0,
        0,
    )


class _Tries:
    """The results of the sizes that are tried on one state of a cluster.

    *kept_by* has for each size the kinds of its failures, the most frequent first.
    """

    def __init__(self, cluster: Cluster, template: str, options: Options) -> None:
        self.kept_by: dict[Size, list[str]] = {}
        self._cluster = cluster
        self._template = template
        self._options = options
        self._score = Score(cluster.nodes)
        self._known: dict[Size, tuple[bool, dict[str, int]]] = {}
        self._helps: dict[Size, bool] = {}
        self._floor: tuple[Cluster, Spec] | None = None

    def without_room(self, size: Size) -> dict[str, int] | None:
        """Return the failures of *size* if not even one fits, None if one does.

        The N+1 check of mirrored instances does not count.
        """
        if self._template != "drbd":
            fits, failures = self._try(size)
            return None if fits else failures
        options = self._options
        anyhow = Options(options.ignore_soft_errors, False, options.restrict, options.better)
        instance = new_instance("new", size, self._template)
        found = best_place(self._cluster, instance, anyhow, self._score)
        return counts(found) if found.metric is None else None

    def _try(self, size: Size) -> tuple[bool, dict[str, int]]:
        """Return whether *size* has a place, and the failures of all places that it has not."""
        if size not in self._known:
            instance = new_instance("new", size, self._template)
            found = best_place(self._cluster, instance, self._options, self._score)
            self._known[size] = (found.metric is not None, counts(found))
        return self._known[size]

    def first_that_fits(self, size: Size) -> Size | None:
        """Return the first size that fits and is less in one thing than *size*."""
        for failure in self.kept_by[size]:
            if size.smaller(failure) is None or not self._try(size)[1].get(failure):
                continue
            if not self._can_help(size, failure):
                continue
            for less in _shrunk(size, failure):
                fits, failures = self._try(less)
                if fits:
                    return less
                if not failures.get(failure):
                    break
        return None

    def _can_help(self, size: Size, failure: str) -> bool:
        """Return whether *size* has a place with as little as can be of what *failure* names."""
        if self._floor is None:
            self._floor = _without_ranges(self._cluster)
        free, floor = self._floor
        least = size.least(failure, floor)
        if least not in self._helps:
            instance = new_instance("new", least, self._template)
            self._helps[least] = best_place(free, instance, self._options).metric is not None
        return self._helps[least]


def _shrunk(size: Size, failure: str) -> Iterator[Size]:
    """Return *size* and ever smaller ones; as in htools the least of all is not among them."""
    less = size.smaller(failure)
    while less is not None:
        yield size
        size, less = less, less.smaller(failure)


def _without_ranges(cluster: Cluster) -> tuple[Cluster, Spec]:
    """Return *cluster* with policies that allow any size, and the least size they allowed.

    A size without a place there has none in any smaller size either.
    """
    policies = {id(node.policy): node.policy for node in cluster.nodes}
    least = [spec for policy in policies.values() for spec, _most in policy.ranges]
    floor = Spec(
        min([spec.memory for spec in least], default=0),
        min([spec.cpus for spec in least], default=0),
        min([spec.disk for spec in least], default=0),
        0,
        0,
        min([spec.spindles for spec in least], default=0),
    )
    free = {
        key: Policy([], p.standard, p.templates, p.vcpu_ratio, p.spindle_ratio)
        for key, p in policies.items()
    }
    changed = {}
    for node in cluster.nodes:
        changed[node.index] = node.copy()
        changed[node.index].policy = free[id(node.policy)]
    return cluster.with_nodes(changed), floor
