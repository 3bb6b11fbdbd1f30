# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two managers as pure steps: what was seen goes in, what to write and do comes out.

No file, socket, clock or process is known here, so the daemons and a simulation
run the very same lines.
"""
