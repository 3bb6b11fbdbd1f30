# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What modules of the collection state about check mode, diff, idempotence, platform and group."""

from __future__ import annotations


class ModuleDocFragment:
    """The fragments, one for each kind of module."""

    # For modules that change something: all three are full.
    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    support: full
    description: Computes exactly what would happen, and changes nothing.
  diff_mode:
    support: full
    description: Shows what is before and after, from the plan that is applied.
  idempotent:
    support: full
    description: A second run with the same options changes nothing.
  platform:
    support: full
    description: The module runs on Linux.
    platforms: linux
"""

    # For modules that only look.
    INFO_MODULE = r"""
options: {}
attributes:
  check_mode:
    support: full
    description: The module changes nothing in any mode.
  diff_mode:
    support: N/A
    description: The module changes nothing, so there is no difference to show.
  idempotent:
    support: full
    description: The module changes nothing.
  platform:
    support: full
    description: The module runs on Linux.
    platforms: linux
"""

    # For modules that act through a node's configuration file.
    NODE_GROUP = r"""
options: {}
attributes:
  action_group:
    support: full
    description: >-
      Use C(group/holdfast.ha.node) in C(module_defaults) to set O(config) for all modules of the
      group.
    membership:
      - holdfast.ha.node
"""

    # For all others.
    NO_GROUP = r"""
options: {}
attributes:
  action_group:
    support: none
    description: The module is in no action group.
    membership: []
"""
