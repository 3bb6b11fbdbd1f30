# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which host a playbook speaks to the cluster through: one that answers and whose node is online.

PRIVATE to the collection.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

ASKED = 20
"""So many hosts are asked at most, unless more are named: each that is silent costs seconds."""


def speaker(
    answers: Iterable[Mapping[str, Any]],
    hosts: Sequence[str],
    spared: Iterable[str] = (),
    asking: Sequence[str] = (),
    reads: bool = False,
) -> dict[str, str]:
    """Return which of *hosts* speaks for the cluster, or else whom to ask next, or why nobody can.

    *answers* are results of the module ``cluster_info``, each with the host as its ``item``; one
    that failed or was not reached has no nodes.  The first that has any says which hosts are
    online, and of those only one that answered itself speaks.  *spared* are hosts that must not
    speak: what is to be done may cost them their power.  While nobody has answered, *asking* are
    asked in turn, or the other *hosts* if none are named.  Who only *reads* needs no node that
    is online.

    The result has ``host`` and ``ask``, of which one at least is empty, and ``why``, which is
    not while there is no host.
    """
    given = list(answers)
    asked = [str(one.get("item", "")) for one in given]
    heard = [str(one.get("item", "")) for one in given if one.get("nodes")]
    told: dict[str, Any] = next((one["nodes"] for one in given if one.get("nodes")), {})
    not_these = set(spared)
    may = [
        host
        for host in hosts
        if host not in not_these and told.get(host, {}).get("state") == "online"
    ]
    host = next((one for one in heard if one in may), "")
    others = [one for one in hosts if one not in not_these]
    candidates = may if heard else list(asking) or others
    ask = next((one for one in candidates if one not in asked), "")
    if not host and ask and len(asked) < max(ASKED, len(asking)):
        return {"host": "", "ask": ask, "why": _why(given)}
    if not host and heard and reads:
        host = heard[0]
    return {"host": host, "ask": "", "why": "" if host else _why(given)}


def _why(answers: Sequence[Mapping[str, Any]]) -> str:
    names = ", ".join(str(one.get("item", "")) for one in answers) or "no host"
    reasons = "; ".join(dict.fromkeys(map(_reason, answers))) or "none is left"
    return f"None of {names} can speak for the cluster: {reasons}."


def _reason(answer: Mapping[str, Any]) -> str:
    if answer.get("nodes"):
        return "none that may is online"
    return str(answer.get("msg") or "it gave no reason").strip().rstrip(".")
