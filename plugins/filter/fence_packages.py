# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter that names the packages of fence agents."""

from __future__ import annotations

DOCUMENTATION = r"""
name: fence_packages
short_description: Packages that have fence agents
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Returns the packages of the distribution that have the named fence agents.
positional: together
options:
  _input:
    description: The fence agents, such as V(fence_ipmilan).
    type: list
    elements: str
    required: true
  together:
    description:
      - The packages that have all agents; empty where each agent has a package of its own.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: The package fence-agents-ipmilan
  ansible.builtin.debug:
    msg: "{{ ['fence_ilo5'] | holdfast.ha.fence_packages([]) }}"
"""

RETURN = r"""
_value:
  description: The names of the packages.
  type: list
  elements: str
"""

from ..plugin_utils._platforms import fence_packages


class FilterModule:
    """The filter under its name."""

    def filters(self):
        """Return the filters of this file."""
        return {"fence_packages": fence_packages}
