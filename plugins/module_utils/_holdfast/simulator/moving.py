# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers that grow with time, and note until when what was decided by them stays so.

A step of the managers is a function of what was seen and of the time, and it uses the time
by comparing it: is this heartbeat older than 3 s, is that wait over?  Given a ``Moving``
number for the time, each comparison notes when it will turn out otherwise.  Until the
earliest of these the step would come to the same result again, so that a daemon whose
round changed nothing needs no other round before, unless something that it sees changes.
"""

from __future__ import annotations

import math
from typing import Union

Plain = Union[int, float]


class Horizon:
    """Until when all comparisons made so far stay as they are: *seconds* from now."""

    __slots__ = ("seconds",)

    def __init__(self) -> None:
        """Nothing was compared yet."""
        self.seconds = math.inf

    def until(self, seconds: float) -> None:
        """Note that something else changes in so many seconds."""
        self.seconds = min(self.seconds, max(seconds, 0.0))


class Moving(float):
    """A number that grows by *rate* each second; comparing it tells the *horizon*.

    What is made of it without comparing, such as its text, is taken for decoration: the
    managers' own rule is that a number of seconds in a reason is no news.
    """

    __slots__ = ("horizon", "rate")
    rate: float
    horizon: Horizon

    def __new__(cls, value: float, rate: float, horizon: Horizon) -> Moving:
        """Make one that is *value* now."""
        number = super().__new__(cls, value)
        number.rate = rate
        number.horizon = horizon
        return number

    def _note(self, other: Plain) -> None:
        """Note when this number and *other* will be equal, if that is still to come."""
        rate = self.rate - (other.rate if isinstance(other, Moving) else 0.0)
        if rate:
            seconds = (float(other) - float(self)) / rate
            if 0.0 <= seconds < self.horizon.seconds:
                self.horizon.seconds = seconds

    def __lt__(self, other: Plain) -> bool:
        self._note(other)
        return float.__lt__(self, other)

    def __le__(self, other: Plain) -> bool:
        self._note(other)
        return float.__le__(self, other)

    def __gt__(self, other: Plain) -> bool:
        self._note(other)
        return float.__gt__(self, other)

    def __ge__(self, other: Plain) -> bool:
        self._note(other)
        return float.__ge__(self, other)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (int, float)):
            self._note(other)
        return float.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return float.__hash__(self)

    def __add__(self, other: Plain) -> float:
        rate = self.rate + (other.rate if isinstance(other, Moving) else 0.0)
        return Moving(float.__add__(self, other), rate, self.horizon)

    __radd__ = __add__

    def __sub__(self, other: Plain) -> float:
        rate = self.rate - (other.rate if isinstance(other, Moving) else 0.0)
        return Moving(float.__sub__(self, other), rate, self.horizon)

    def __rsub__(self, other: Plain) -> float:
        return Moving(float.__rsub__(self, other), -self.rate, self.horizon)

    def __mul__(self, other: Plain) -> float:
        return Moving(float.__mul__(self, other), self.rate * float(other), self.horizon)

    __rmul__ = __mul__

    def __truediv__(self, other: Plain) -> float:
        return Moving(float.__truediv__(self, other), self.rate / float(other), self.horizon)
