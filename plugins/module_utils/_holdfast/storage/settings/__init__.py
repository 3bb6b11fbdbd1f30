# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a node's settings of NFS, iSCSI, FC and multipath are safe for the leases."""
