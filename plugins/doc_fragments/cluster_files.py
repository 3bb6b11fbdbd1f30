# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options that say where a cluster's files are."""

from __future__ import annotations


class ModuleDocFragment:
    """Name and folder of a cluster."""

    DOCUMENTATION = r"""
options:
  name:
    description:
      - Name of the cluster. The files on the storage begin with it.
      - Letters, digits, C(.), C(_) and C(-), at most 40 characters, beginning with a letter or
        digit.
    type: str
    required: true
  path:
    description:
      - Absolute path of the folder on the shared storage, or of a block device that
        M(holdfast.ha.storage_device) has set up.
      - It has to exist and to be the same storage on all nodes.
    type: path
    required: true
"""
