# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What no arithmetic holds out, said in a sentence: numbers too large, data nested too deeply."""

from __future__ import annotations

from contextlib import contextmanager

from ...errors import ClusterDataError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def oddities_refused(what: str) -> Iterator[None]:
    """Raise `ClusterDataError` about *what* where a computation inside cannot be done."""
    try:
        yield
    except RecursionError:
        raise ClusterDataError(f"{what} is nested too deeply") from None
    except (OverflowError, MemoryError) as error:
        raise ClusterDataError(f"a number in {what}, or all of it, is too large: {error}") from None
