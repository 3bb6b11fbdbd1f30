# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every way in which our allocator's answer may differ from hail's 3.0.2, and why.

The comparison asks each of these in turn; a difference that none of them explains is a
failure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

SAME_SCORE = 1e-7
NODES = re.compile(r"for node\(s\) [^,\"]*")
COUNTS = re.compile(r"(?<=successes |.failures )[0-9]+")
FAILURES = re.compile(r"\([^)]*\)(?= for node)")
SCORE = re.compile(r"score: (-?[0-9.]+)")


class Reply(NamedTuple):
    """What an allocator said."""

    status: int
    output: str
    errors: str


def _equal_scores(theirs: Reply, ours: Reply) -> bool:
    """Places with the same score: floating point sums in another order rank them again."""
    if theirs.status or ours.status or theirs.errors != ours.errors:
        return False
    one, two = json.loads(theirs.output), json.loads(ours.output)
    if one["success"] != two["success"]:
        return False
    if one["info"] == two["info"]:
        # The same nodes with the same score: nothing was ranked again.
        return False
    texts = [NODES.sub("", reply["info"]) for reply in (one, two)]
    scores = [[float(score) for score in SCORE.findall(text)] for text in texts]
    texts = [SCORE.sub("", text) for text in texts]
    texts = [re.sub(r"Selected group: [^,]*", "", text) for text in texts]
    return (
        texts[0] == texts[1]
        and len(scores[0]) == len(scores[1]) > 0
        and all(abs(a - b) <= SAME_SCORE * max(1.0, abs(a)) for a, b in zip(*scores))
    )


def _equals_checked_in_another_order(theirs: Reply, ours: Reply) -> bool:
    """Places are checked for N+1 from the best on until one passes.

    Which of equal scores comes first is told by their last digits, and so how many fail.
    """
    if theirs.status or ours.status or theirs.errors != ours.errors:
        return False
    one, two = json.loads(theirs.output), json.loads(ours.output)
    counts = [[int(number) for number in COUNTS.findall(reply["info"])] for reply in (one, two)]
    texts = [COUNTS.sub("", FAILURES.sub("", reply["info"])) for reply in (one, two)]
    sums = [[sum(pair) for pair in zip(found[::2], found[1::2])] for found in counts]
    return (
        one["result"] == two["result"]
        and texts[0] == texts[1]
        and sums[0] == sums[1]
        and "FailN1" in theirs.output + ours.output
    )


def _spelled_value(theirs: Reply, ours: Reply) -> bool:
    """A value that is shown in an error: hail formats it in its own way."""
    start = "Error: Invalid input, expected array but got "
    return theirs.errors.startswith(start) and ours.errors.startswith(start)


def _json_detail(theirs: Reply, ours: Reply) -> bool:
    """Text that is not JSON: both name what was being read, each parser its own trouble."""
    start = "Error: Parsing input IAllocator message: "
    return theirs.errors.startswith(start) and ours.errors.startswith(start)


def _hail_dies(theirs: Reply, ours: Reply) -> bool:
    """hail ends with a trace of its own: a mirrored instance that has no second node."""
    return theirs.status == 1 and "CallStack" in theirs.errors and "Traceback" not in ours.errors


DIFFERENCES: dict[str, Callable[[Reply, Reply], Any]] = {
    "equal scores": _equal_scores,
    "equals checked in another order": _equals_checked_in_another_order,
    "the spelling of a wrong value": _spelled_value,
    "the detail of malformed JSON": _json_detail,
    "hail dies": _hail_dies,
}


def _number_taken_twice(request: dict[str, Any]) -> bool:
    """hail numbers what it places by how many instances there are, in a group that was named
    by those of the group: the N+1 check then takes it for the one that has the number."""
    asked = request["request"]
    if not isinstance(asked.get("group_name"), str):
        return False
    groups = {
        uuid
        for uuid, group in request["nodegroups"].items()
        if asked["group_name"] in (uuid, group["name"])
    }
    inside = [
        request["nodes"][instance["nodes"][0]]["group"] in groups
        for instance in request["instances"].values()
    ]
    count = sum(inside)
    taken = range(count, count + len(asked.get("instances", [asked])))
    return any(number < len(inside) and inside[number] for number in taken)


OF_REQUESTS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "a number taken twice": _number_taken_twice,
}
"""Requests that hail answers by mistake; that there is an answer is all that is compared."""

NOT_COMPARED = {
    "the same key twice in an object": "hail takes the first, the JSON parser here the last",
    "numbers beyond 64 bits": "hail lets them wrap around; here they are what they are",
    "-v, -v -v, -v -v -v": "hail prints its own data structures; here the request in one line",
    "--save where the group that is left is not the only one with instances": "hail dies of it, "
    "here it has that group and its instances",
    "JSON that hail's parser takes": "lists nested 1000 deep under a key that is not read, `1.`, "
    "blanks that are none in JSON, as a form feed: errors here",
    "blanks before a request": "hail wants its first bracket at once; here they do not matter",
    "a load beyond 1e100 in a report": "hail reckons with it; here it is none",
    "a size without end (1e400, Infinity) or NaN": "hail goes on with it; here it is an error",
    "--help, --version, --help-completion": "each tells of itself",
    "an input file that is missing or no UTF-8": "hail dies of it with its run-time's text; here "
    "it is an error",
    "nodes in another group than their instance": "hail fails in the middle of the check",
}
"""What random requests do not show: where it differs, and how."""


def explain(theirs: Reply, ours: Reply, request: dict[str, Any] | None = None) -> str | None:
    """Return the name of the difference between two replies, None if it is not known.

    Without the *request* it is what the replies themselves show.  Equal replies have none.
    """
    if theirs == ours:
        return None
    for name, is_it in DIFFERENCES.items():
        if is_it(theirs, ours):
            return name
    for name, asks_it in OF_REQUESTS.items():
        if request is not None and theirs.status == ours.status == 0 and asks_it(request):
            return name
    return None
