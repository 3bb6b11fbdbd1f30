# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How placement is to be done: the options that change an answer."""

from __future__ import annotations


class Options:
    """What htools' options of the same names say, and whether its errors are mended.

    With ``better`` an answer is not refused for what was wrong before (`better`).
    """

    __slots__ = ("better", "capacity_checks", "ignore_soft_errors", "restrict")

    def __init__(
        self,
        ignore_soft_errors: bool = False,
        capacity_checks: bool = True,
        restrict: list[str] | None = None,
        better: bool = False,
    ) -> None:
        self.ignore_soft_errors = ignore_soft_errors
        self.capacity_checks = capacity_checks
        self.restrict = restrict
        self.better = better

    def restricted(self, names: list[str] | None) -> Options:
        """Return the options with *names* as the only nodes, unless others are given."""
        restrict = self.restrict if self.restrict is not None else names
        return Options(self.ignore_soft_errors, self.capacity_checks, restrict, self.better)

    def bettered(self) -> Options:
        """Return the options with what htools errs in set right."""
        return Options(self.ignore_soft_errors, self.capacity_checks, self.restrict, True)

    @property
    def force_secondary(self) -> bool:
        """Whether a new secondary may break soft limits; in htools it never may."""
        return self.better and self.ignore_soft_errors
