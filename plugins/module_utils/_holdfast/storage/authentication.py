# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Message authentication codes (MACs) under the cluster key: who may be believed.

Whoever can write the shared storage, or reach a port, can forge what has only a checksum.  A MAC
needs the cluster key, which only the members have.  It is HMAC-SHA256 (RFC 2104), truncated to 160
bits, over the cluster's name, what the message is for, and all its parts.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field

KEY_BYTES = 32
"""The size of a cluster key: that of the hash, as RFC 2104 advises."""

MAC_BYTES = 20
"""The size of a truncated MAC: more than half of the hash, as RFC 2104 demands."""

NO_MAC = bytes(MAC_BYTES)
"""The bytes in place of a MAC if none was made."""


class Policy(enum.Enum):
    """What a node does about records, blocks and messages without a right MAC.

    ``OFF`` makes no MACs and believes everything.  ``WARN`` makes them, believes everything and
    names what has none.  ``ENFORCE`` believes only what has one.
    """

    OFF = "off"
    WARN = "warn"
    ENFORCE = "enforce"


@dataclass(frozen=True)
class Authentication:
    """A policy with the keys of one cluster: the first one signs, each of them is accepted."""

    policy: Policy = Policy.OFF
    cluster: str = ""
    keys: tuple[bytes, ...] = field(default=(), repr=False)

    @property
    def signs(self) -> bool:
        """Whether MACs are made."""
        return self.policy is not Policy.OFF

    @property
    def enforces(self) -> bool:
        """Whether what has no right MAC counts as not there."""
        return self.policy is Policy.ENFORCE

    def mac(self, purpose: str, *parts: bytes) -> bytes:
        """Return the MAC of *parts*, zeros if none are made."""
        if not self.signs:
            return NO_MAC
        return self._mac(self.keys[0], purpose, parts)

    def accepts(self, mac: bytes, purpose: str, *parts: bytes) -> bool:
        """Return whether *mac* is that of *parts* under any of the keys."""
        return any(hmac.compare_digest(mac, self._mac(key, purpose, parts)) for key in self.keys)

    def is_current(self, mac: bytes, purpose: str, *parts: bytes) -> bool:
        """Return whether *parts* need not be signed again: with the key that signs now."""
        return not self.signs or hmac.compare_digest(mac, self._mac(self.keys[0], purpose, parts))

    def _mac(self, key: bytes, purpose: str, parts: tuple[bytes, ...]) -> bytes:
        """Return the truncated HMAC; each part follows its length, so that no two look alike."""
        made = hmac.new(key, digestmod=hashlib.sha256)
        for part in (b"holdfast", self.cluster.encode(), purpose.encode(), *parts):
            made.update(len(part).to_bytes(8, "little"))
            made.update(part)
        return made.digest()[:MAC_BYTES]


NO_AUTHENTICATION = Authentication()

Authenticate = Callable[[], Authentication]
"""Returns the policy and the keys that are valid now: keys are exchanged while daemons run."""


def believe_all() -> Authentication:
    """Return the authentication of who has no keys and believes everything."""
    return NO_AUTHENTICATION
