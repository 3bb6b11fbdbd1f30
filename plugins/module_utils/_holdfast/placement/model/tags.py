# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tags of a cluster make of the tags of its nodes and instances.

The cluster's tags name the prefixes that count (htools, Tags and Loader): of
instances that must not share a node (exclusion), of places that fail together or
that an instance asks for (location), and of nodes between which instances cannot
move (migration).
"""

from __future__ import annotations

EXCLUSION = "htools:iextags:"
LOCATION = "htools:nlocation:"
DESIRED = "htools:desiredlocation:"
MIGRATION = "htools:migration:"
ALLOWED_MIGRATION = "htools:allowmigration:"


class TagRules:
    """The prefixes that a cluster's tags name."""

    __slots__ = ("allowed", "desired", "exclusion", "location", "migration")

    def __init__(self, cluster_tags: list[str]) -> None:
        self.exclusion = tuple(filter(None, _after(EXCLUSION, cluster_tags)))
        self.desired = tuple(filter(None, _after(DESIRED, cluster_tags)))
        self.location = tuple(tag + ":" for tag in _after(LOCATION, cluster_tags))
        self.migration = tuple(tag + ":" for tag in _after(MIGRATION, cluster_tags))
        self.allowed = _pairs(_after(ALLOWED_MIGRATION, cluster_tags))

    def accepted(self, migration: frozenset[str]) -> frozenset[str]:
        """Return the migration tags that a node with the tags *migration* takes in."""
        sources = {source for source, target in self.allowed if target in migration}
        return migration | sources


def starting(prefixes: tuple[str, ...], tags: list[str]) -> list[str]:
    """Return those of *tags* that start with one of *prefixes*."""
    return [tag for tag in tags if tag.startswith(prefixes)] if prefixes else []


def _after(prefix: str, tags: list[str]) -> list[str]:
    return [tag[len(prefix) :] for tag in tags if tag.startswith(prefix)]


def _pairs(rules: list[str]) -> list[tuple[str, str]]:
    """Split each ``source::target``; what has no ``::`` or a second one is no rule."""
    pairs = []
    for rule in rules:
        source, colons, target = rule.partition("::")
        if colons and "::" not in target:
            pairs.append((source, target))
    return pairs
