# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""In how many random runs each deliberate mistake is found.

Use: tests/mutation/find [--most 1000] [--first-seed N] [--share K/N] [NAME...]

Prints for each mutation of ``mutations.py`` after how many runs it was found, and by which
rule; at the end those that were not found, and then the exit status is 1.  Those of
``tested_mutations.py``, which unit tests find, are looked for only by their names.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(CHECKOUT / ".collections"), str(CHECKOUT / "scripts")]

from ansible_collections.holdfast.ha.tests.mutation.mutations import (  # noqa: E402
    MUTATIONS,
    Mutation,
)
from ansible_collections.holdfast.ha.tests.mutation.tested_mutations import (  # noqa: E402
    TESTED,
)
from ansible_collections.holdfast.ha.tests.simulation.runs import (  # noqa: E402
    run_seed,
)
from share import WHOLE, Share  # noqa: E402

KNOWN = (*MUTATIONS, *(one.mutation for one in TESTED))
"""Those that are looked for, and those that are only looked for by their names."""

FINDS_NONE_BEFORE = {
    "take-any-proof-for-an-answer": 440,
    "leave-a-silent-manager-to-others": 595,
    "observe-only-as-a-standby": 595,
}
"""The seeds below these were seen not to find a mistake; with --first-seed they are played."""

OUT_OF_DATE = (TypeError, AttributeError, NameError)
"""What a mutation raises that does not fit the code any more: that is no find."""


def runs_until_found(mutation: Mutation, first_seed: int, most: int) -> tuple[int, str]:
    """Return after how many runs a mutation was found, 0 for not at all, and by what."""
    with mutation.made():
        for number in range(most):
            try:
                outcome = run_seed(first_seed + number, mutation.drawing)
            except OUT_OF_DATE as error:
                raise RuntimeError(f"{mutation.name} does not fit the code any more") from error
            except Exception as error:  # a mutant may break anything, and that is found too
                return number + 1, f"{type(error).__name__}: {error}"
            if outcome.problem:
                return number + 1, f"{outcome.rule}: {outcome.problem}"
    return 0, "not found"


def look_for(work: tuple[int, int, int]) -> tuple[int, str, float]:
    """Look for one mutation, by its place in the table: runs, by what, and seconds of CPU."""
    place, first_seed, most = work
    begun = time.process_time()
    runs, how = runs_until_found(KNOWN[place], first_seed, most)
    return runs, how, time.process_time() - begun


def _first_seed(name: str, asked: int | None) -> int:
    """Return the seed from which a mistake is looked for, unless another was *asked* for."""
    return FINDS_NONE_BEFORE.get(name, 0) if asked is None else asked


def main() -> int:
    """Look for all mutations, or those that are named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--most", type=int, default=1000, help="runs for each mutation")
    parser.add_argument("--first-seed", type=int, default=None)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--share", type=Share.parse, default=WHOLE, help="one of so many shares")
    parser.add_argument("names", nargs="*", help="only these mutations")
    options = parser.parse_args()
    places = options.share.among(
        [
            place
            for place, mutation in enumerate(KNOWN)
            if mutation.name in options.names or (not options.names and place < len(MUTATIONS))
        ]
    )
    missed = []
    with multiprocessing.Pool(options.workers) as pool:
        work = [
            (place, _first_seed(KNOWN[place].name, options.first_seed), options.most)
            for place in places
        ]
        for place, (runs, how, took) in zip(places, pool.imap(look_for, work)):
            shown = f"{runs:5}" if runs else f"> {options.most}"
            name = KNOWN[place].name
            if not runs:
                missed.append(name)
            sys.stdout.write(f"{shown} runs {took:6.1f} s  {name}: {how[:110]}\n")
            sys.stdout.flush()
    if not missed:
        return 0
    sys.stdout.write(f"not found in {options.most} runs: {', '.join(missed)}\n")
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
