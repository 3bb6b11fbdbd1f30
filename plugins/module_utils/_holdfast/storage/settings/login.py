# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a node that boots while its iSCSI storage is away gets it back.

Debian's unit logs in once and waits for it (``login_timeout`` times ``initial_login_retry_max``,
about two minutes, open-iscsi 2.1); then it has failed, and nothing tries again.  A watchdog resets
a node exactly while its storage is away.
"""

from __future__ import annotations

UNIT = "open-iscsi.service"
"""Debian's name of the unit.  That of other distributions, iscsi.service, does not wait."""


def check_login(shown: str) -> list[str]:
    """Return what is wrong with the unit, by what ``systemctl show`` prints of it."""
    properties = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
    if properties.get("LoadState") != "loaded" or properties.get("Restart") != "no":
        return []
    return [
        f"{UNIT} has Restart=no: a node that boots while its storage is away stays without it; set"
        f" Restart=on-failure and RestartSec=10 (systemctl edit {UNIT})."
    ]
