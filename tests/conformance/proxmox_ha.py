# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Play a scenario of Proxmox VE's HA simulator through our managers, and print its trace.

Use: tests/conformance/proxmox_ha SCENARIO_DIR

Each line is ``TIME KIND SUBJECT DETAIL`` with the time of its round, in seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(CHECKOUT / ".collections"))

from ansible_collections.holdfast.ha.tests.conformance.play import ROUND, Play  # noqa: E402
from ansible_collections.holdfast.ha.tests.conformance.scenario import read  # noqa: E402


def main(arguments: list[str]) -> int:
    """Play the scenario that is named."""
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        sys.stderr.write((__doc__ or "").strip() + "\n")
        return 2
    for time, kind, subject, detail in Play(read(Path(arguments[0]))).run():
        line = f"{time // ROUND * ROUND} {kind} {subject} {detail}"
        sys.stdout.write(line.rstrip() + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
