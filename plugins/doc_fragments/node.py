# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The option of modules that act through a node's own configuration file."""

from __future__ import annotations


class ModuleDocFragment:
    """Where the node's configuration is."""

    DOCUMENTATION = r"""
options:
  config:
    description:
      - Absolute path of the configuration file of the node on which the module runs.
      - M(holdfast.ha.node_config) writes it.
    type: path
    default: /etc/holdfast/node.json
"""
