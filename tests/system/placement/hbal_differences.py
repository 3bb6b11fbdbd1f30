# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where ``holdfast balance --like-hbal`` knowingly says something else than hbal 3.0.2, and why."""

from __future__ import annotations

DIFFERENCES: dict[str, str] = {
    "-m, -L, -X": "refused, as Ganeti's daemons are not asked: the cluster has to be in a file",
    "-I": "hbal loads every instance twice then, and doubles all loads; here each counts once",
    "-v -v -v -v": "hbal prints its own data structures",
    "a field of the wrong type in a kept report": "each shows the value in its own way",
    "a load beyond 1e100 in a report": "hbal reckons with it; here it is none",
    "--help, --version": "each tells of itself",
    "a missing input file": "hbal dies of it with its run-time's text; here it is an error",
    "numbers beyond 64 bits": "hbal lets them wrap around; here they are what they are",
    "a size of a node, or --min-disk, that is NaN or Infinity": "hbal goes on; here it is an error",
    "a file whose lines end in CR LF": "an error in both; here it also names the line ends",
}
"""None of these is compared; all else is, byte for byte."""
