# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Placement: which node is best for what is to run, as pure functions over plain numbers."""
