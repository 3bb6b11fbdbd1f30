# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The errors of the library: each is one clear sentence for an operator.

A message has the problem, the value, what is allowed and, where it helps, the next step.  Modules
turn errors into a failed task, the ``holdfast`` command into an exit status.
"""

from __future__ import annotations


class HoldfastError(Exception):
    """Any error of the library; the text is for the operator."""


class InputError(HoldfastError):
    """A value given by the user is not acceptable; nothing was changed."""

    def __init__(self, option: str, value: object, expected: str) -> None:
        """Make the error for the *value* of *option*, with what is *expected*."""
        self.option = option
        self.value = value
        self.expected = expected
        end = "" if expected.endswith("?") else "."
        super().__init__(f"{option}: {value!r} is not accepted; expected {expected}{end}")


def of_system(error: OSError) -> HoldfastError:
    """Return the error for a call of the system that failed where no call was expected to."""
    name = str(error.filename) if error.filename is not None else "A call of the system"
    shown = name if len(name) <= 200 else f"{name[:200]}..."
    return HoldfastError(f"{shown} cannot be used: {error.strerror or error}.")


class StorageError(HoldfastError):
    """Shared storage could not be read or written."""


class FormatError(StorageError):
    """Bytes on shared storage do not have their format."""


class DocumentError(HoldfastError):
    """A document, or a value in it, does not have its format."""


class LeaseError(HoldfastError):
    """A lease could not be acquired, or was lost."""


class NoAnswerError(LeaseError):
    """The lease daemon did not answer in time; the leases may be unchanged."""


class AgentError(HoldfastError):
    """A resource agent or fence agent is missing or violates its protocol."""


class FenceError(HoldfastError):
    """A fence device could not be called, or its configuration makes no sense."""


class ClusterDataError(HoldfastError):
    """The data of a cluster for placement, or a request for a place, cannot be used."""
