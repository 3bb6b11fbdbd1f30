# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Print for each of COUNT nodes the first of three UDP ports that nobody uses on 127.0.0.1.

They lie below the ports that the kernel gives away and above those of the quickstart.  Runs
that look at once do not begin with the same ones.
"""

from __future__ import annotations

import os
import socket
import sys


def is_free(port):
    """Say whether *port* can be bound."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as trial:
        try:
            trial.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


desired = int(sys.argv[1])
found = []
for first in range(17400 + os.getpid() % 100 * 20, 32000, 10):
    if len(found) < desired and all(is_free(first + step) for step in range(3)):
        found.append(first)
print("\n".join(str(port) for port in found))
sys.exit(0 if len(found) == desired else 1)
