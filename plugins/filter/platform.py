# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter that chooses the role platform's files of variables."""

from __future__ import annotations

DOCUMENTATION = r"""
name: platform
short_description: Files of variables for a distribution and release
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Returns the files of variables for the system that facts describe, and why it is refused if it
    is not supported.
  - The files are ordered from the least exact one (C(any)) to that of one release of one
    distribution, so that the most exact one decides if they are loaded in this order.
positional: supported
options:
  _input:
    description: The facts of a node.
    type: dict
    required: true
  supported:
    description:
      - The supported systems. C(names) has the distributions as Ansible names them with the names
        for people, C(releases) their versions or major versions.
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: The files for this node
  ansible.builtin.debug:
    msg: "{{ (ansible_facts | holdfast.ha.platform(systems)).files }}"
  vars:
    systems:
      - names: {Debian: Debian}
        releases: ["12", "13"]
"""

RETURN = r"""
_value:
  description:
    - C(files) are the names of the files, C(refusal) is a sentence, empty for a supported system.
  type: dict
"""

from ..plugin_utils._platforms import platform


class FilterModule:
    """The filter under its name."""

    def filters(self):
        """Return the filters of this file."""
        return {"platform": platform}
