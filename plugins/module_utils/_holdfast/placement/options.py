# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How placement is to be done: the options that change an answer."""

from __future__ import annotations


class Options:
    """What htools' options of the same names say."""

    __slots__ = ("capacity_checks", "ignore_soft_errors", "restrict")

    def __init__(
        self,
        ignore_soft_errors: bool = False,
        capacity_checks: bool = True,
        restrict: list[str] | None = None,
    ) -> None:
        self.ignore_soft_errors = ignore_soft_errors
        self.capacity_checks = capacity_checks
        self.restrict = restrict

    def restricted(self, names: list[str] | None) -> Options:
        """Return the options with *names* as the only nodes, unless others are given."""
        restrict = self.restrict if self.restrict is not None else names
        return Options(self.ignore_soft_errors, self.capacity_checks, restrict)
