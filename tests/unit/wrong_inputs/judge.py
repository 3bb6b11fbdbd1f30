# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the message for a wrong input must have, and what it must not."""

from __future__ import annotations

import re
from collections.abc import Sequence

LONGEST = 700
"""Characters; more is not read at a terminal."""

ALLOWED = re.compile(
    r"expected |choose from|must be one of|is required|are required|missing required"
    r"|all of the following are missing|one of the following|mutually exclusive"
    r"|Supported parameters include|did you mean|such as|[Ss]ee holdfast|--help"
    r"|Nothing is asked: name|cannot be read: |cannot be created: |does not exist; create it"
    r"|is missing: name|; it has: |Install |start its nodes"
)
"""What is allowed, what is missing, or what to do next."""

INTERNAL = re.compile(
    r"Traceback|_holdfast|ansible_collections|<class|object at 0x|\bNoneType\b|\bNone\b|\w+Path\("
    r"|\b(?:Key|Value|Type|Index|Attribute|Unicode\w*|OS|Input|Holdfast)Error\b|\.py\b"
    r"|\binvalid \w+ value\b|\bNamespace\b|\bdataclass\b|\bfloat\(\)"
)
"""Names of the program's inside, of Python, and of its libraries."""

OF_ANSIBLE = re.compile(r"Unsupported parameters for \(basic\.py\) module")
"""How ansible-core names the module where it is not called through an archive, as here."""


def faults(message: str, named: Sequence[str]) -> list[str]:
    """Return what is wrong with a *message*, in which all of *named* has to be."""
    text = OF_ANSIBLE.sub("", message.strip())
    wrong = [f"does not name {one!r}" for one in named if one not in message]
    if not ALLOWED.search(message):
        wrong.append("says neither what is allowed nor what to do")
    wrong += [f"has the internal name {one.group()!r}" for one in INTERNAL.finditer(text)]
    if len(text) > LONGEST:
        wrong.append(f"has {len(text)} characters")
    if "\n" in text:
        wrong.append("has more than one line")
    return wrong
