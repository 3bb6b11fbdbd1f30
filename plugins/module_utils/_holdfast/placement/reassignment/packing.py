# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several numbers in one integer, so that one operation of Python works on all of them.

Each number has a field of equal width, the highest bit of which is a guard bit.  Sums of packed
numbers are packed sums.  With the guard bits added, the guard bit of a field is set exactly if
its number is 0 or more:

- none of several differences is negative if all guard bits are set;
- the sum of the positive numbers is the remainder of a division: the width of a field is chosen
  so that a field, whatever its place, counts as its value modulo 2**width - 1.

With twelve resources this is several times faster than a loop over them.
"""

from __future__ import annotations

from ...hints import Sequence


class Fields:
    """Fields for *count* numbers whose absolute values have a sum of at most *most*."""

    def __init__(self, count: int, most: int) -> None:
        self.bits = most.bit_length() + 1
        width = self.bits + 1
        self._places = [number * width for number in range(count)]
        self.modulus = (1 << width) - 1
        self.guards = self.pack([1 << self.bits] * count)

    def pack(self, numbers: Sequence[int]) -> int:
        """Return *numbers* as one integer, without guard bits."""
        return sum([number << place for number, place in zip(numbers, self._places)])

    def positive(self, packed: int) -> int:
        """Return the sum of the numbers above 0 in *packed*, which includes the guard bits."""
        guards = packed & self.guards
        return (packed & (guards - (guards >> self.bits))) % self.modulus
