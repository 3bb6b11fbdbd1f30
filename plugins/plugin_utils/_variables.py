# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which variables are meant for a playbook, among those that a site has for other things.

PRIVATE to the collection.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..module_utils._holdfast.names import did_you_mean


def own(
    found: Iterable[str], variables: Mapping[str, Mapping[str, Any]], playbook: str
) -> list[str]:
    """Return those of the names *found* that are meant for the *playbook* with these *variables*.

    They begin with its name.  That alone says little: so do the variables of a playbook with a
    longer name, and a site may have a ``backup_retention`` of its own.  Meant is what the
    playbook takes, and what is so like one of them that it is a misspelt one.
    """
    begin = f"{playbook}_"
    known = [name[len(begin) :] for name in variables]
    return [
        name
        for name in found
        if name in variables or (name.startswith(begin) and did_you_mean(name[len(begin) :], known))
    ]
