# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which host leases are about to be freed, and when a node has to wait for that.

Freeing a host lease writes one sector on behalf of another node.  Storage has no compare-and-swap:
a write that hangs may land after the node has joined again, and overwrite a live host lease.  So a
CRM records in its own slot which host leases it is about to free, before it reads one again and
writes.  A node joins first and reads these records afterwards.  Either the CRM reads the new
generation and does not write, or the node reads the record and waits until the write has returned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...documents import fields_of, mapping_of, whole


@dataclass(frozen=True)
class Freeing:
    """The host leases that one node is about to free.

    *generation* is that of the writer's own host lease.  *leases* maps each node to the generation
    of its host lease.
    """

    generation: int = 0
    leases: Mapping[str, int] = field(default_factory=dict)


def freeing(generation: int, leases: Mapping[str, int]) -> Freeing:
    """Return the record of a writer with host lease *generation*; empty without leases."""
    return Freeing(generation, dict(leases)) if leases else Freeing()


def freeing_document(record: Freeing) -> dict[str, Any]:
    """Return the document of *record*."""
    return {"generation": record.generation, "leases": dict(record.leases)}


def freeing_from_document(document: object) -> Freeing:
    """Return the record in *document*; raises ``DocumentError`` for anything else."""
    values = _FREEING.read(document)
    return freeing(values["generation"], values["leases"])


_FREEING = replace(
    fields_of(Freeing, leases=mapping_of(whole)), required=frozenset({"generation", "leases"})
)


def awaited_writers(
    node: str,
    generation: int,
    records: Mapping[str, Freeing],
    has_ended: Callable[[str, int], bool],
) -> list[str]:
    """Return the nodes whose write may still overwrite the host lease of *node*.

    *generation* is the one that *node* joined with, 0 before it joins; a write against the same
    generation is no late one.  *records* are those of all nodes.  A write ends at the latest with
    its writer's host lease: *has_ended* is called with the writer and that generation.  While a CRM
    writes, its node's watchdog is not disarmed, so a host lease that expired ended with a reset.
    """
    return [
        writer
        for writer, record in sorted(records.items())
        if writer != node
        and record.leases.get(node, generation) != generation
        and not has_ended(writer, record.generation)
    ]


def why_awaited(node: str, writers: list[str]) -> str:
    """Return why *node* waits for *writers*, and what ends the wait."""
    names = " and ".join(writers)
    return (
        f"{names} may still be freeing an earlier host lease of {node}, and a late write would"
        f" overwrite the new one; {node} waits until that write has returned or the host lease"
        f" of {names} has ended. If {names} hangs, fence it or restore its storage."
    )
