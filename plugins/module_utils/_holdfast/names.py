# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks for the names and numbers that an operator gives.

Each function returns the value when it is acceptable and raises ``InputError`` with the option
when it is not; ``did_you_mean`` is for names of a known set.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterable
from pathlib import Path

from .errors import InputError

MAX_HOST_ID = 2000
"""Host ids are 1 to 2000 (sanlock.8 of sanlock 3.8: at most 2000 hosts in a lockspace)."""

MAX_CLUSTER_NAME = 40
"""sanlock names a lockspace in 48 bytes; the rest is left for a suffix and the NUL."""

MAX_PORT = 65535

SHOWN_NAMES = 40
"""A message names at most so many of the names that are known: a cluster may have 2,000 nodes."""


NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
"""A node name, at most 63 characters as in a host name (RFC 1123)."""

SERVICE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}")
"""A service id."""


def cluster_name(value: object, option: str = "name") -> str:
    """Return *value* as a cluster name: it becomes part of file names on the storage."""
    return _name(value, option, "a cluster name", MAX_CLUSTER_NAME)


def node_name(value: object, option: str = "node") -> str:
    """Return *value* as a node name, at most 63 characters as in a host name (RFC 1123)."""
    return _name(value, option, "a node name", 63)


def service_id(value: object, option: str = "name") -> str:
    """Return *value* as a service id such as ``web`` or ``vm:100``."""
    return _name(value, option, "a service id", 64, ":")


def _name(value: object, option: str, what: str, longest: int, mark: str = "") -> str:
    """Return *value* as a name with '.', '_', '-' and *mark*, at most *longest* characters."""
    known = SERVICE_ID if mark else NODE_NAME
    if isinstance(value, str) and len(value) <= longest and known.fullmatch(value):
        return value
    marks = f"'.', '_', '{mark}' and '-'" if mark else "'.', '_' and '-'"
    raise InputError(
        option,
        value,
        f"{what} of letters, digits, {marks} that starts with a letter or digit and is at most"
        f" {longest} characters long",
    )


def host_id(value: object, option: str = "host_id") -> int:
    """Return *value* as a host id, a whole number from 1 to 2000."""
    return whole_number(value, option, 1, MAX_HOST_ID)


def port(value: object, option: str = "port") -> int:
    """Return *value* as an unprivileged port number."""
    return whole_number(value, option, 1024, MAX_PORT, "a port number")


def count(value: object, option: str) -> int:
    """Return *value* as a whole number from 0 to 1000."""
    return whole_number(value, option, 0, 1000)


def whole_number(
    value: object, option: str, least: int, most: int, what: str = "a whole number"
) -> int:
    """Return *value* as an int from *least* to *most*; *what* is for the error."""
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    raise InputError(option, value, f"{what} from {least} to {most}")


def number(value: object, option: str, least: float, most: float, unit: str = "") -> float:
    """Return *value* as a number from *least* to *most*; *unit* is for the error."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= most:
        return float(value)
    raise InputError(option, value, f"{unit or 'a number'} from {least:g} to {most:g}")


def absolute_path(value: object, option: str = "path") -> Path:
    """Return *value* as an absolute path."""
    if isinstance(value, str) and value.startswith("/") and "\0" not in value:
        return Path(value)
    raise InputError(option, value, "an absolute path")


def ip_address(value: object, option: str = "address") -> str:
    """Return *value* as an IP address: a name would need a name server in mid-failover."""
    try:
        return str(ipaddress.ip_address(str(value)))
    except ValueError:
        expected = "an IP address (a host name needs a name server in the middle of a failover)"
        raise InputError(option, value, expected) from None


def require_known(value: str, option: str, known: Collection[str], what: str) -> None:
    """Raise ``InputError`` unless *value* is among the *known* names, each of which is *what*."""
    if value not in known:
        raise unknown_name(value, option, known, what)


def unknown_name(value: str, option: str, known: Collection[str], what: str) -> InputError:
    """Return the error for a *value* that is not among the *known* names, with some of those."""
    shown = sorted(known)[:SHOWN_NAMES]
    more = [f"and {len(known) - len(shown)} more"] if len(known) > len(shown) else []
    names = ", ".join([*shown, *more]) or "there are none yet"
    return InputError(option, value, f"{what} ({names}){did_you_mean(value, known)}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint at the name in *known* that is most like *name*, or ""."""
    # Only here: every command imports this file, and few names are wrong.
    from difflib import get_close_matches

    close = get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""
