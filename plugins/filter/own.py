# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter that says which variables are meant for a playbook."""

from __future__ import annotations

DOCUMENTATION = r"""
name: own
short_description: The variables that are meant for a playbook
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Of the names that begin with the name of a playbook, those that it takes, and those that are so
    like one of them that they are misspelt. All others belong to another playbook or to the site.
positional: variables, playbook
options:
  _input:
    description: The names of variables that there are.
    type: list
    elements: str
    required: true
  variables:
    description: The variables that the playbook takes, as an argument spec.
    type: dict
    required: true
  playbook:
    description: The name of the playbook.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: The second of them is misspelt, and the last is for something else
  ansible.builtin.debug:
    msg: "{{ ['backup_dest', 'backup_hots', 'backup_days'] | holdfast.ha.own(taken, 'backup') }}"
  vars:
    taken: {backup_dest: {type: path}, backup_host: {type: str}}
"""

RETURN = r"""
_value:
  description: The names that are meant for the playbook.
  type: list
  elements: str
"""

from ..plugin_utils._variables import own


class FilterModule:
    """The filter under its name."""

    def filters(self):
        """Return the filters of this file."""
        return {"own": own}
