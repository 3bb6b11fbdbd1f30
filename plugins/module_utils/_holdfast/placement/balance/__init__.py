# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Balancing a cluster: as hbal does it, and with fewer moves, less data and a safe order."""
