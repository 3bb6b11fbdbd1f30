# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of ``typing`` and ``collections.abc`` for annotations, and records of plain fields.

For what an allocator loads: to import ``typing``, ``collections.abc`` or ``dataclasses`` takes
longer than its answer for a small cluster.
"""

from __future__ import annotations

__all__ = (
    "Any",
    "Callable",
    "Collection",
    "Container",
    "Iterable",
    "Iterator",
    "Mapping",
    "Optional",
    "Sequence",
    "TextIO",
    "TypeVar",
    "Union",
    "dataclass",
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Collection,
        Container,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )
    from dataclasses import dataclass
    from typing import Any, Optional, TextIO, TypeVar, Union
else:

    class _Hint:
        """Stands for any of them at run time, where only aliases are evaluated."""

        def __init__(self, *_arguments):
            pass

        def __class_getitem__(cls, _parameters):
            return cls

    Callable = Collection = Container = Iterable = Iterator = Mapping = Sequence = _Hint
    Any = Optional = TextIO = TypeVar = Union = _Hint

    def dataclass(cls):
        """Return *cls* with an ``__init__`` that takes its fields in order, as a dataclass has."""
        fields = tuple(cls.__annotations__)
        complete = getattr(cls, "__post_init__", None)

        def init(self, *values, **named):
            # By setattr: an instance whose __dict__ was asked for is slower from then on.
            for name, value in (*zip(fields, values), *named.items()):
                setattr(self, name, value)
            if complete is not None:
                complete(self)

        cls.__init__ = init
        return cls
