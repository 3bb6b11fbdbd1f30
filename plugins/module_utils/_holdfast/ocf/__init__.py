# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Resource agents: find them, read their metadata, call them as a cluster does."""
