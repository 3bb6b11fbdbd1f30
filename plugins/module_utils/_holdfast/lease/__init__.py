# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may act: one contract for host leases and leases, and what fulfils it.

``interface`` is the contract; ``sanlock`` fulfils it on real nodes, ``embedded`` on a
single machine; ``timing`` is the arithmetic that both follow.
"""
