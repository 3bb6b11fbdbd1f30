# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter that says through which host a playbook speaks to the cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
name: speaker
short_description: A host that can speak for the cluster
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Of the answers of M(holdfast.ha.cluster_info) on some hosts the first that has any nodes is
    believed. Of the hosts that are online by it the first is chosen that answered itself.
  - While there is none it is said whom to ask next.
positional: hosts, spared, asking, reads
options:
  _input:
    description:
      - The results of M(holdfast.ha.cluster_info), failed ones too, each with the host as its
        C(item).
    type: list
    elements: dict
    required: true
  hosts:
    description: The hosts to choose from, in this order.
    type: list
    elements: str
    required: true
  spared:
    description: Hosts that must not speak, as what is to be done may cost them their power.
    type: list
    elements: str
    default: []
  asking:
    description:
      - The hosts to ask in turn while nobody has answered. If none are named, those of O(hosts)
        that may speak, 20 at most.
    type: list
    elements: str
    default: []
  reads:
    description: Whether a host that answered will do where no node is online.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Ask two hosts
  holdfast.ha.cluster_info:
  delegate_to: "{{ item }}"
  loop: [n1, n2]
  register: asked
  ignore_errors: true

- name: Who can speak?
  ansible.builtin.debug:
    msg: "{{ asked.results | holdfast.ha.speaker(groups.holdfast, ['n2']) }}"
"""

RETURN = r"""
_value:
  description: The C(host), empty if there is none, whom to C(ask) next, and C(why) there is none.
  type: dict
"""

from ..plugin_utils._speaker import speaker


class FilterModule:
    """The filter under its name."""

    def filters(self):
        """Return the filters of this file."""
        return {"speaker": speaker}
