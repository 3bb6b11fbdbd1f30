# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of modules that run resource agents."""

from __future__ import annotations


class ModuleDocFragment:
    """Where resource agents are."""

    DOCUMENTATION = r"""
options:
  agent_directories:
    description:
      - Folders with resource agents, each with a folder C(resource.d). The first that has the agent
        wins. If not given, O(ocf_root) alone.
    type: list
    elements: path
    aliases:
      - directories
  ocf_root:
    description: Where the functions are that the distribution's agents share.
    type: path
    default: /usr/lib/ocf
"""
