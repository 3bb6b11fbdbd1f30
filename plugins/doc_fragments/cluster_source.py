# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of modules that plan placement for a cluster that is described to them."""

from __future__ import annotations


class ModuleDocFragment:
    """Where the description of the cluster is."""

    DOCUMENTATION = r"""
options:
  cluster:
    description:
      - The cluster, as in a request of Ganeti's allocator. What is asked there is not looked at.
      - Exactly one of this and O(src) is needed.
    type: dict
  src:
    description:
      - Absolute path of a file with the cluster, on the node on which the module runs. A request
        of Ganeti's allocator, or htools' text format.
    type: path
"""

    # For modules that need room for the instances of a node that is lost.
    REDUNDANCY = r"""
options:
  capacity_checks:
    description: Demand that every single node can be lost afterwards (N+1).
    type: bool
    default: true
"""

    # For modules that plan with the memory of nodes.
    NODE_MEMORY = r"""
options:
  static_node_memory:
    description:
      - MiB of memory that a KVM node needs for itself. V(0) takes what each node reports.
    type: int
    default: 4096
"""
