# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options that say why there is a maintenance, by whom, and until when."""

from __future__ import annotations


class ModuleDocFragment:
    """Reason, owner and expiry of a maintenance."""

    DOCUMENTATION = r"""
options:
  reason:
    description:
      - The reason, shown in the status.
      - If not given, the reason of an existing maintenance stays.
    type: str
  owner:
    description:
      - The owner of the maintenance.
      - If not given or empty, the owner of an existing maintenance stays. The owner of a new one is
        the user of the task; with sudo, the user who called it.
    type: str
  until:
    description:
      - When the maintenance ends automatically. An ISO 8601 time with its zone, or seconds since
        1970.
      - The manager ends it by its own wall clock, so the clocks of the nodes have to be right. A
        clock that jumped is believed only when it ran evenly again for a minute.
      - If neither this nor O(duration) is given, the expiry of a maintenance that is there already
        stays, and a new one has none.
    type: str
  duration:
    description:
      - The same as O(until), as seconds from the beginning of the maintenance. V(0) is no expiry.
      - A second run with the same duration does not extend it, because the beginning stays.
    type: float
"""
