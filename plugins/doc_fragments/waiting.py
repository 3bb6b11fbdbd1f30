# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The option of modules that wait for the cluster."""

from __future__ import annotations


class ModuleDocFragment:
    """How long a module waits."""

    DOCUMENTATION = r"""
options:
  timeout:
    description:
      - Seconds to wait with O(wait=true).
    type: float
    default: 60
"""

    # For modules that wait until services have moved.
    MOVES = r"""
options:
  timeout:
    description:
      - Seconds to wait with O(wait=true).
    type: float
    default: 120
"""
