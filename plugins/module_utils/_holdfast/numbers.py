# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of numbers that an operator gives: the range of each, in the command and in modules.

An option has the same range wherever it is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import InputError
from .hints import dataclass
from .names import MAX_HOST_ID

DAY = 86400.0
YEAR_9999 = 253402300799.0
"""The last second that a time can name."""


@dataclass
class Number:
    """The range of an option, in what *unit*, with an *example* of a usual value."""

    unit: str
    least: float
    most: float
    example: float
    whole: bool = False

    @property
    def expected(self) -> str:
        """What is allowed, in words."""
        least, most = f"{self.least:.15g}", f"{self.most:.15g}"
        return f"{self.unit} from {least} to {most}, such as {self.example:.15g}"

    def check(self, option: str, value: object) -> float:
        """Return *value* as a number of this kind; raises ``InputError`` for another value."""
        try:
            number = float(str(value))
        except ValueError:
            raise InputError(option, value, self.expected) from None
        if not self.least <= number <= self.most or (self.whole and number != int(number)):
            raise InputError(option, value, self.expected)
        return int(number) if self.whole else number


NUMBERS: Mapping[str, Number] = {
    "timeout": Number("seconds", 0, DAY, 120),
    "within": Number("seconds", 1, DAY, 600),
    "stop_within": Number("seconds", 1, DAY, 60),
    "boot_seconds": Number("seconds", 0, DAY, 60),
    "boot_timeout": Number("seconds", 1, 3600, 600),
    "interval": Number("seconds", 0, DAY, 10),
    "check_level": Number("a level", 0, 100, 10, whole=True),
    "duration": Number("seconds (0: no expiry)", 0, 3660 * DAY, 7200),
    "watch": Number("seconds", 0, 600, 3),
    "every": Number("seconds", 0.2, DAY, 15),
    "since": Number("seconds since 1970", 0, YEAR_9999, 1790000000),
    "max_age": Number("days", 0.001, 36500, 30),
    "times": Number("a number of times", 0, 1e9, 10, whole=True),
    "last": Number("a number of events", 0, 1e9, 20, whole=True),
    "at_once": Number("a number of nodes", 1, MAX_HOST_ID, 1, whole=True),
    "host_id": Number("a host id", 1, MAX_HOST_ID, 1, whole=True),
    "threshold": Number("an imbalance", 0, 1000, 0.1),
}
"""The range of each option by its name in modules; in the command it has ``--`` and ``-``."""


def check_numbers(options: Mapping[str, Any]) -> None:
    """Raise ``InputError`` for the first option that is out of its range; None is not given."""
    for option, number in NUMBERS.items():
        value = options.get(option)
        if value is not None and not isinstance(value, (list, dict)):
            number.check(option, value)
