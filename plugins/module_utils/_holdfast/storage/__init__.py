# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bytes on shared storage: aligned direct I/O and every format that is kept there.

The whiteboard, our double-buffered records, and sanlock's host and resource
leases.  Nothing here decides anything: it reads, checks and writes.
"""
