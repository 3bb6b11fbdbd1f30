# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Play random rounds of damage to the records of a cluster of real daemons.

Use: tests/damage/damage --rounds N [--seed S] [--first N] [--backend embedded|sanlock]

In each round records are rolled back, damaged, zeroed, swapped, misdirected or written late,
while daemons are killed, nodes lose power or hang, and services are moved, declared and
removed.  No service may ever run twice or be forgotten, all of them have to run in the end,
and the status or the history has to name every regression that the daemons did not make good.
The rounds are decided by the seed, but for what the daemons do meanwhile.  Exit status 1 if a
rule was broken; the folder of that cluster is kept.
"""

from __future__ import annotations

import argparse
import json
import secrets
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(CHECKOUT / ".collections"), str(CHECKOUT / "tests")]

from cluster import EmbeddedCluster  # noqa: E402
from damage.draw import Round, count, draw_round  # noqa: E402
from damage.play import Outcome, Player, Violation  # noqa: E402

FRESH = 25
"""Rounds after which a new cluster is made."""


@dataclass
class Total:
    """What all rounds came to."""

    rounds: list[Round] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)

    def summary(self) -> str:
        """Return the counts."""
        done = self.outcomes
        lines = [
            f"{len(self.rounds)} rounds, {len(self.violations)} violations",
            f"  older records in {sum(bool(one.older) for one in done)} rounds, named in"
            f" {sum(bool(one.named) for one in done)}, in the history of"
            f" {sum(bool(one.recorded) for one in done)}, repaired in"
            f" {sum(bool(one.repairs) for one in done)}, without an effect on the file"
            f" {sum(not one.effects for one in done)}",
        ]
        if done:
            seconds = [one.seconds for one in done]
            average, longest = sum(seconds) / len(seconds), max(seconds)
            lines.append(f"  {average:.1f} s a round, {longest:.1f} s at most")
        drawn = ", ".join(f"{word} {number}" for word, number in count(self.rounds).items())
        return "\n".join([*lines, f"  drawn: {drawn}", *self.violations])


def play(
    seed: int,
    numbers: range,
    backend: str = "embedded",
    folder: Path | None = None,
    fresh: int = FRESH,
    keep_going: bool = False,
) -> Total:
    """Play the rounds of these numbers, each *fresh* of them on a cluster of their own."""
    total = Total()
    first = numbers.start
    while first < numbers.stop:
        part = range(first, min(first + fresh, numbers.stop))
        place = Path(tempfile.mkdtemp(prefix="damage-", dir=folder))
        found = _play_part(seed, part, backend, place, total)
        first = total.rounds[-1].number + 1 if total.rounds else part.stop
        if not found:
            shutil.rmtree(place)
            continue
        total.violations.append(
            f"{found}\n  kept: {place}; repeat: tests/damage/damage --seed {seed}"
            f" --first {part.start} --rounds {first - part.start} --backend {backend}"
        )
        if not keep_going:
            break
    return total


def _play_part(seed: int, numbers: range, backend: str, place: Path, total: Total) -> str:
    """Play some rounds on a cluster of their own; return the violation, "" if there was none."""
    with EmbeddedCluster(place / "cluster", backend=backend) as cluster:
        player = Player(cluster)
        player.prepare()
        for number in numbers:
            one = draw_round(seed, number)
            total.rounds.append(one)
            begin = time.monotonic()
            try:
                outcome = player.play(one)
            except Violation as violation:
                took = time.monotonic() - begin
                _say(f"round {number}: {one}: VIOLATION, {took:.1f} s: {violation}")
                _explain(cluster, place)
                return f"round {number}: {one}: {violation}"
            total.outcomes.append(outcome)
            _say(f"round {number}: {one}: {outcome}")
        try:
            player.finish()
        except Violation as violation:
            _explain(cluster, place)
            return f"after round {numbers.stop - 1}: {violation}"
    return ""


def _explain(cluster: EmbeddedCluster, place: Path) -> None:
    """Keep what tells how a violation came about, and print the end of the ledgers."""
    shutil.copy(cluster.state_file, place / "state")
    ledgers = cluster.show_ledgers()
    (place / "ledgers").write_text(ledgers + "\n")
    for line in sorted(ledgers.splitlines(), key=lambda one: one.split()[1])[-12:]:
        _say(f"  {line}")
    try:
        status = cluster.status()
    except Exception as error:
        _say(f"  the status cannot be read: {error}")
        return
    (place / "status.json").write_text(json.dumps(status, indent=1) + "\n")
    for event in status["events"][-12:]:
        about = " ".join(filter(None, (event["kind"], event["service"], event["node"])))
        _say(f"  {event['at']:.3f} {about}: {event['text']}")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """Play the rounds that the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="tests/damage/damage", description=(__doc__ or "").split("\n\n", maxsplit=1)[0]
    )
    parser.add_argument("--rounds", type=int, default=20, help="how many rounds (20)")
    parser.add_argument("--seed", type=int, default=None, help="a fresh one if not given")
    parser.add_argument("--first", type=int, default=0, help="number of the first round (0)")
    parser.add_argument("--backend", choices=("embedded", "sanlock"), default="embedded")
    parser.add_argument(
        "--fresh",
        type=int,
        default=FRESH,
        help=f"rounds after which a new cluster is made ({FRESH})",
    )
    parser.add_argument("--folder", type=Path, default=None, help="where clusters are made")
    parser.add_argument("--keep-going", action="store_true", help="go on after a violation")
    options = parser.parse_args()
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    _say(f"seed {seed}")
    numbers = range(options.first, options.first + options.rounds)
    total = play(seed, numbers, options.backend, options.folder, options.fresh, options.keep_going)
    _say(total.summary())
    return 1 if total.violations else 0


if __name__ == "__main__":
    sys.exit(main())
