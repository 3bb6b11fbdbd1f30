# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The option of modules that run a fence agent without a configuration."""

from __future__ import annotations


class ModuleDocFragment:
    """Which fence agent is run."""

    DOCUMENTATION = r"""
options:
  agent:
    description: A fence agent by name, such as V(fence_ipmilan), or by its whole path.
    type: str
"""
