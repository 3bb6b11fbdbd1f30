# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a cluster says about records that are older than they were, and its way out of that."""

from __future__ import annotations

import re
import subprocess
import time
from typing import Any

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import HoldfastError
from cluster import EmbeddedCluster

NAMED_WITHIN = 30.0
"""Seconds until the status names a regression, on a busy machine."""

OLDER = re.compile(r"\bolder\b|\bdamaged\b|\bcopy of the \w+ record\b", re.IGNORECASE)
"""What a sentence about a regression contains."""

ABOUT = re.compile(r"\bn[123]\b|host id|\.state\b|\bslot\b", re.IGNORECASE)
"""How the sentence names the place: the node, its host id or the file."""


def problems(cluster: EmbeddedCluster) -> list[str]:
    """Return the problems in the status; if it cannot be read, the reason is one."""
    try:
        return [str(one) for one in cluster.status()["problems"]]
    except HoldfastError as error:
        return [str(error)]


def regressions(cluster: EmbeddedCluster) -> list[str]:
    """Return the problems that name records that are older than they were, or damaged."""
    return [one for one in problems(cluster) if names_regression(one)]


def names_regression(sentence: str) -> bool:
    """Return whether a sentence says that something is older or damaged, and what."""
    return bool(OLDER.search(sentence) and ABOUT.search(sentence))


def recorded_regressions(status: dict[str, Any], since: float) -> list[str]:
    """Return the texts of the history since a time that name a regression."""
    texts = [
        f"{one.get('node', '')} {one.get('kind', '')} {one.get('text', '')}"
        for one in status["events"]
        if one.get("at", 0.0) >= since
    ]
    return [one for one in texts if OLDER.search(one) or "repair" in one]


def wait_named(cluster: EmbeddedCluster, timeout: float = NAMED_WITHIN) -> list[str]:
    """Wait until the status names a regression, and return the sentences."""
    until = time.monotonic() + timeout
    while not (found := regressions(cluster)):
        assert time.monotonic() < until, (
            f"no problem names a regression after {timeout} s, only {problems(cluster)};"
            f" violations: {cluster.violations()}\n{cluster.show_ledgers()}"
        )
        time.sleep(0.1)
    return found


def repair(cluster: EmbeddedCluster, keep: str, *more: str) -> subprocess.CompletedProcess[str]:
    """Run ``holdfast records repair`` and return its result."""
    return cluster.holdfast("records", "repair", "--keep", keep, *more)
