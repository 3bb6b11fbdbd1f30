# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What may be called how: the checks for every name and number an operator gives.

Each function returns the value when it is acceptable and raises ``InputError``
naming the option when it is not; ``did_you_mean`` helps with names of a known set.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Iterable
from pathlib import Path

from .errors import InputError

MAX_HOST_ID = 2000
"""Host ids are 1 to 2000 (sanlock.8 of sanlock 3.8: at most 2000 hosts in a lockspace)."""

MAX_CLUSTER_NAME = 40
"""sanlock names a lockspace in 48 bytes; the rest is left for a suffix and the NUL."""

MAX_PORT = 65535

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")
_SERVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*\Z")


def cluster_name(value: object, option: str = "name") -> str:
    """Return *value* as a cluster name: it becomes part of file names on the storage."""
    if isinstance(value, str) and len(value) <= MAX_CLUSTER_NAME and _PLAIN.match(value):
        return value
    raise InputError(
        option,
        value,
        "a cluster name of letters, digits, '.', '_' and '-' that starts with a letter or"
        f" digit and is at most {MAX_CLUSTER_NAME} characters long",
    )


def node_name(value: object, option: str = "node") -> str:
    """Return *value* as a node name, at most 63 characters as in a host name (RFC 1123)."""
    if isinstance(value, str) and len(value) <= 63 and _PLAIN.match(value):
        return value
    raise InputError(
        option,
        value,
        "a node name of letters, digits, '.', '_' and '-' that starts with a letter or digit"
        " and is at most 63 characters long",
    )


def service_id(value: object, option: str = "name") -> str:
    """Return *value* as a service id such as ``web`` or ``vm:100``."""
    if isinstance(value, str) and len(value) <= 64 and _SERVICE.match(value):
        return value
    raise InputError(
        option,
        value,
        "a service id of letters, digits, '.', '_', ':' and '-' that starts with a letter or"
        " digit and is at most 64 characters long",
    )


def host_id(value: object, option: str = "host_id") -> int:
    """Return *value* as a host id, a whole number from 1 to 2000."""
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_HOST_ID:
        return value
    raise InputError(option, value, f"a whole number from 1 to {MAX_HOST_ID}")


def count(value: object, option: str) -> int:
    """Return *value* as a whole number from 0 to 1000."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 1000:
        return value
    raise InputError(option, value, "a whole number from 0 to 1000")


def number(value: object, option: str, least: float, most: float, unit: str = "") -> float:
    """Return *value* as a number from *least* to *most*; *unit* is for the error."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= most:
        return float(value)
    raise InputError(option, value, f"{unit or 'a number'} from {least:g} to {most:g}")


def port(value: object, option: str = "port") -> int:
    """Return *value* as an unprivileged port number."""
    if isinstance(value, int) and not isinstance(value, bool) and 1024 <= value <= MAX_PORT:
        return value
    raise InputError(option, value, f"a port number from 1024 to {MAX_PORT}")


def absolute_path(value: object, option: str = "path") -> Path:
    """Return *value* as a path that does not depend on where a process runs."""
    if isinstance(value, str) and value.startswith("/"):
        return Path(value)
    raise InputError(option, value, "an absolute path")


def ip_address(value: object, option: str = "address") -> str:
    """Return *value* as an IP address: a name would need a name server in mid-failover."""
    try:
        return str(ipaddress.ip_address(str(value)))
    except ValueError:
        expected = "an IP address (a host name needs a name server in the middle of a failover)"
        raise InputError(option, value, expected) from None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint at the one of *known* that is most like *name*, or nothing."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""
