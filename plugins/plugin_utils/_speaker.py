# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which host a playbook speaks to the cluster through: one whose node is online.

PRIVATE to the collection.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def speaker(
    answers: Iterable[Mapping[str, Any]], hosts: Sequence[str], spared: Iterable[str] = ()
) -> dict[str, str]:
    """Return the first of *hosts* that is online by the first of *answers*, and if none why.

    *answers* are results of the module ``cluster_info`` in a loop over hosts; one that failed
    or was not reached has no nodes.  *spared* are hosts that must not speak: what is to be done
    may cost them their power.  The result has ``host``, empty if none can, and ``why``.
    """
    asked = list(answers)
    not_these = set(spared)
    told = next((one["nodes"] for one in asked if one.get("nodes")), {})
    for host in hosts:
        if host not in not_these and told.get(host, {}).get("state") == "online":
            return {"host": host, "why": ""}
    names = ", ".join(str(one.get("item", "")) for one in asked) or "no host"
    reasons = list(dict.fromkeys(_reason(one) for one in asked))
    told = "; ".join(reasons) or "none is left"
    return {"host": "", "why": f"None of {names} can speak for the cluster: {told}."}


def _reason(answer: Mapping[str, Any]) -> str:
    if answer.get("nodes"):
        return "none that may is online"
    return str(answer.get("msg") or "it gave no reason").strip().rstrip(".")
