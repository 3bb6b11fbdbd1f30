# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a node's files are unless it is told otherwise."""

CONFIGURATION = "/etc/holdfast/node.json"
CLUSTER_KEY = "/etc/holdfast/cluster.key"
