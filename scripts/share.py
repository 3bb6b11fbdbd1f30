# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A share of what takes long: runs of the tests that follow each other play all of it in turn."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

Thing = TypeVar("Thing")

MOST_SHARES = 20
"""Each stage that is shared has more parts than this: a share of nothing would play everything."""


@dataclass(frozen=True)
class Share:
    """One of *count* shares, by its *number* from 1 on; its text is ``2/4``."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Share:
        """Return the share that an argument such as ``2/4`` names; raise ``ArgumentTypeError``."""
        match = re.fullmatch(r"([0-9]{1,2})/([0-9]{1,2})", text)
        if match is not None:
            number, count = int(match[1]), int(match[2])
            if 1 <= number <= count <= MOST_SHARES:
                return cls(number, count)
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a share; give its number and how many there are, at most"
            f" {MOST_SHARES}, such as 2/4"
        )

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def among(self, things: Sequence[Thing]) -> list[Thing]:
        """Return every so many-th of *things*: neighbours, which take about as long, differ."""
        return list(things[self.number - 1 :: self.count])

    def seeds(self, count: int) -> range:
        """Return the part of the seeds below *count* that is this share's, one after the other."""
        return range(count * (self.number - 1) // self.count, count * self.number // self.count)


WHOLE = Share(1, 1)
"""Everything."""
