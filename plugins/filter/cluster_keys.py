# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter that chooses the cluster key for all nodes."""

from __future__ import annotations

DOCUMENTATION = r"""
name: cluster_keys
short_description: The cluster key that all nodes are to have
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - The keys that are given; or else those that the nodes have, which are the same on all; or
    else a new one.
positional: given, new
options:
  _input:
    description: The contents of the key files that nodes have.
    type: list
    elements: str
    required: true
  given:
    description: The keys that are given, none if there are none.
    type: list
    elements: str
    required: true
  new:
    description: A random key of 64 hexadecimal digits.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Choose the keys
  ansible.builtin.set_fact:
    keys: "{{ contents | holdfast.ha.cluster_keys([], random_key) }}"
  no_log: true
"""

RETURN = r"""
_value:
  description: The keys for the module M(holdfast.ha.cluster_key).
  type: list
"""

from ..plugin_utils._cluster_keys import cluster_keys


class FilterModule:
    """The filter under its name."""

    def filters(self):
        """Return the filters of this file."""
        return {"cluster_keys": cluster_keys}
