# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster key of a node, in a file for root only.

The file has one key a line, as 64 hexadecimal digits; empty lines and those that begin with ``#``
are ignored.  The first key signs, each of them is accepted.  While keys are exchanged there are
two.  A daemon reads the file again when it changes.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import StorageError
from ..private_file import read_private_file
from ..storage.authentication import KEY_BYTES, Authentication, Policy

if TYPE_CHECKING:
    # Filters read keys: without the model of a whole cluster they load in half the time.
    from .configuration import NodeConfiguration

MOST_KEYS = 2
"""The key that signs, and the one before or after it."""

MAX_FILE = 4096
"""Bytes: two keys with much to say about them."""

_KEY = re.compile(rf"[0-9a-f]{{{2 * KEY_BYTES}}}")

_Signature = tuple[int, int, int, int]
"""Device, inode, size and time of change of a file: those of another content differ."""


def make_key() -> bytes:
    """Return a new random key."""
    return os.urandom(KEY_BYTES)


def parse_keys(text: str, where: str) -> tuple[bytes, ...]:
    """Return the keys in the *text* of a key file; ``StorageError`` names no part of it."""
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    if not 1 <= len(lines) <= MOST_KEYS or not all(_KEY.fullmatch(line) for line in lines):
        raise StorageError(
            f"{where} holds no cluster key; expected one or two lines of {2 * KEY_BYTES}"
            " hexadecimal digits in lower case."
        )
    if len(set(lines)) != len(lines):
        raise StorageError(f"{where} holds the same cluster key twice.")
    return tuple(bytes.fromhex(line) for line in lines)


def keys_text(keys: Iterable[bytes]) -> str:
    """Return the content of a key file."""
    lines = ["# The cluster key of holdfast: the first line signs, each is accepted."]
    return "\n".join([*lines, *(key.hex() for key in keys), ""])


def fingerprint(key: bytes) -> str:
    """Return a name for *key* that does not tell it, to compare nodes by."""
    return hashlib.sha256(b"holdfast cluster key" + key).hexdigest()[:16]


def read_keys(path: Path) -> tuple[bytes, ...]:
    """Return the keys in the file at *path*.

    Raises ``StorageError`` when it cannot be read, is open to others, or has no keys.  It may
    belong to the owner of its folder, who could replace it: root looks at other users' clusters.
    """
    try:
        owner = path.parent.stat().st_uid
    except OSError as error:
        raise StorageError(f"The cluster key {path} cannot be read: {error.strerror}.") from None
    data = read_private_file(str(path), "The cluster key", MAX_FILE, StorageError, (owner,))
    return parse_keys(data.decode("utf-8", "replace"), str(path))


class ClusterKey:
    """What a process of a node authenticates with; not for several threads.

    Keys that were read stay valid while the file cannot be read: ``problem`` says why it cannot.
    """

    def __init__(self, configuration: NodeConfiguration) -> None:
        """Read the keys; raises ``StorageError`` when the policy needs some and there are none."""
        self._path = configuration.cluster_key
        self.problem = ""
        self._signature: _Signature | None = None
        self._now = Authentication(configuration.authentication, configuration.cluster)
        if configuration.authentication is not Policy.OFF:
            self._signature = self._stat()
            self._now = self._with(read_keys(self._path))

    def authentication(self) -> Authentication:
        """Return the policy and the keys that are valid now."""
        if self._signature is None:
            return self._now
        try:
            signature = self._stat()
            if signature != self._signature:
                self._now = self._with(read_keys(self._path))
                self._signature = signature
            self.problem = ""
        except StorageError as error:
            self.problem = str(error)
        return self._now

    def _with(self, keys: tuple[bytes, ...]) -> Authentication:
        return Authentication(self._now.policy, self._now.cluster, keys)

    def _stat(self) -> _Signature:
        try:
            found = os.stat(self._path)  # noqa: PTH116
        except OSError as error:
            text = f"The cluster key {self._path} cannot be read: {error.strerror}."
            raise StorageError(text) from None
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
