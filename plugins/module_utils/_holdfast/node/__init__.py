# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs on a node: the two daemons with their workers, and the holdfast command."""
