# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter that reads lists and dictionaries that were answered as text."""

from __future__ import annotations

DOCUMENTATION = r"""
name: given
short_description: Variables of a playbook as they were meant
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - A survey of AWX cannot ask for a list, nor can C(-e name=value) give one. A variable that is to
    be a list or a dictionary and is a text is read as YAML; all others stay as they are.
positional: variables
options:
  _input:
    description: The values by the names of the variables.
    type: dict
    required: true
  variables:
    description: The variables, as an argument spec.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: The nodes, whether they came as YAML or as text
  ansible.builtin.debug:
    msg: "{{ {'nodes': '[n1, n2]'} | holdfast.ha.given({'nodes': {'type': 'list'}}) }}"
"""

RETURN = r"""
_value:
  description: The values, the texts among them read where they stand for more.
  type: dict
"""

from ..plugin_utils._surveys import given


class FilterModule:
    """The filter under its name."""

    def filters(self):
        """Return the filters of this file."""
        return {"given": given}
