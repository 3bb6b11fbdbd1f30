# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The errors of the library: each is one clear sentence for an operator.

A message says what is wrong, which value it has, what was expected and, where
it helps, what to do.  Modules turn them into a failed task, the ``holdfast``
command into an exit status; nothing in between catches and rewords them.
"""

from __future__ import annotations


class HoldfastError(Exception):
    """Whatever the library refuses or cannot do; the text is for the operator."""


class InputError(HoldfastError):
    """A value given by the user is not acceptable; nothing was changed."""

    def __init__(self, option: str, value: object, expected: str) -> None:
        """Name the *option*, show its *value* and say what was *expected*."""
        self.option = option
        self.value = value
        self.expected = expected
        end = "" if expected.endswith("?") else "."
        super().__init__(f"{option}: {value!r} is not accepted; expected {expected}{end}")


class StorageError(HoldfastError):
    """Shared storage could not be read or written as asked."""


class FormatError(StorageError):
    """Bytes on shared storage are not what their format says they must be."""


MALFORMED = (
    InputError,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    ArithmeticError,
    RecursionError,
)
"""What is raised where a document from outside is not what its format says it must be."""


class LeaseError(HoldfastError):
    """A lease could not be had, or was lost."""


class NoAnswerError(LeaseError):
    """Who keeps the leases did not say in time how they stand; they may be as they were."""


class AgentError(HoldfastError):
    """A resource agent or fence agent is missing or does not keep to its protocol."""


class FenceError(HoldfastError):
    """A fence device could not be asked, or its configuration makes no sense."""


class ClusterDataError(HoldfastError):
    """What describes a cluster for placement, or asks for a place in it, cannot be used."""
