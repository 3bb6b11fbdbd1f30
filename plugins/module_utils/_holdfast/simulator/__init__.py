# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole cluster in virtual time, with faults, running the very code that decides for real.

``manager/`` decides here as it does on nodes; everything around it is simulated: machines
and their clocks, the storage, the network, fence devices, watchdogs, agents.  What really
is (``world.py``) is kept apart from what the nodes believe, and the rules of safety are
looked at with each change of it (``rules.py``).  One seed decides all that happens.
"""
