# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is open until it is closed, which the end of a ``with`` block does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import TypeVar

Opened = TypeVar("Opened", bound="Closing")


class Closing(ABC):
    """A file, or what works on one."""

    @abstractmethod
    def close(self) -> None:
        """Close the file; does nothing where none is open."""

    def __enter__(self: Opened) -> Opened:
        """Return the object itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()
