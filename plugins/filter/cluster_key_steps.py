# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter that plans the exchange of the cluster key."""

from __future__ import annotations

DOCUMENTATION = r"""
name: cluster_key_steps
short_description: The steps to another cluster key
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - The keys that all nodes get one after the other. First the new key is accepted, then it signs,
    and at last the old one is not accepted any more. An exchange that was interrupted is ended.
positional: new
options:
  _input:
    description: The content of the key file of each node.
    type: list
    elements: str
    required: true
  new:
    description: The new key, of 64 hexadecimal digits.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Choose the keys
  ansible.builtin.set_fact:
    keys: "{{ contents | holdfast.ha.cluster_key_steps(new_key) }}"
  no_log: true
"""

RETURN = r"""
_value:
  description: The keys of each step.
  type: list
"""

from ..plugin_utils._cluster_keys import cluster_key_steps


class FilterModule:
    """The filter under its name."""

    def filters(self):
        """Return the filters of this file."""
        return {"cluster_key_steps": cluster_key_steps}
