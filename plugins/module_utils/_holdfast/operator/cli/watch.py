# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watching a cluster: what changed from one status to the next, in lines."""

from __future__ import annotations

import re
from typing import Any

from ...cluster.model.maintenance import utc
from ...text import clean
from ..report import wording as words

_NUMBER = re.compile(r"(?<!\w)(?<!\w[.:-])\d+(?:\.\d+)?(?!\w|[.:-]\w)")


def changes(before: dict[str, Any] | None, after: dict[str, Any]) -> list[str]:
    """Return what is new in the status *after*, one line each with its time, the oldest first.

    New are events, problems that came and that went, and another manager.  Without a status
    *before* the first line says how the cluster is, and nothing older is told.
    """
    at = utc(after["at"])
    if before is None:
        _tone, verdict = words.verdict(after)
        first = f"{at}  cluster {clean(after['cluster'])}: {verdict}; {words.summary(after)}"
        return [first, *(f"{at}  problem: {clean(one)}" for one in after["problems"])]
    known = [_key(event) for event in before["events"]]
    told = [
        f"{utc(event['at'])}  {clean(event['kind'])}  {words.event_subject(event)}:"
        f" {clean(event['text'])}"
        for event in after["events"]
        if _key(event) not in known
    ]
    if words.manager(before) != words.manager(after):
        told.append(f"{at}  {words.manager(after)}")
    came, went = _came_and_went(before["problems"], after["problems"])
    told.extend(f"{at}  problem: {clean(one)}" for one in came)
    told.extend(f"{at}  no longer: {clean(one)}" for one in went)
    return told


def screen(text: str, height: int) -> str:
    """Return what of *text* fits on a screen, with its last line saying what does not."""
    lines = text.splitlines()
    if len(lines) <= height:
        return "\n".join(lines)
    left = len(lines) - height + 1
    return "\n".join([*lines[: height - 1], f"... {left} more lines; holdfast status shows all"])


def _came_and_went(before: list[str], after: list[str]) -> tuple[list[str], list[str]]:
    """Return the problems that are new and those that are gone.

    One of which only numbers changed, such as the attempts of a fence, is neither.
    """
    went = [one for one in before if one not in after]
    came = []
    for text in (one for one in after if one not in before):
        same = [one for one in went if _form(one) == _form(text)]
        if same:
            went.remove(same[0])
        else:
            came.append(text)
    return came, went


def _form(text: str) -> tuple[str, ...]:
    """Return the text of a problem without the numbers that count on or away in it.

    Its first two words say what it is about.  A number in a name or an address is none.
    """
    words_ = text.split(" ", 2)
    return (*words_[:2], *(_NUMBER.sub("#", one) for one in words_[2:]))


def _key(event: dict[str, Any]) -> tuple[Any, ...]:
    return (event["at"], event["kind"], event["node"], event["service"], event["text"])
