# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a simulated management board does with its machine: ipmi_sim calls this for each question.

Called with: folder, then ``get`` or ``set`` and pairs of parameter and value.  The machine
is the process whose number stands in the folder's file ``process``; power off is SIGKILL.
A file ``faults`` in the folder names what the board does wrong: ``deaf`` says that it
switched off and does not.

The simulator waits for the end of this program's output, so the machine must not have it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

DEADLINE = 2.0


def main() -> int:
    folder, operation, *words = sys.argv[1:]
    machine = Path(folder) / "process"
    if operation == "get":
        for name in words:
            if name == "power":
                sys.stdout.write(f"power:{int(is_on(machine))}\n")
            elif name == "boot":
                sys.stdout.write("boot:default\n")
            else:
                return 1
        return 0
    if operation != "set":
        return 1
    desired = dict(zip(words[::2], words[1::2]))
    deaf = "deaf" in (Path(folder) / "faults").read_text().split()
    if "power" in desired and not deaf:
        return 0 if (switch_on if desired["power"] == "1" else switch_off)(machine) else 1
    return 0


def is_on(machine: Path) -> bool:
    """Whether the machine's process runs; a dead one that nobody collected yet does not."""
    try:
        pid = int(machine.read_text())
        text = Path(f"/proc/{pid}/stat").read_text()
    except (OSError, ValueError):
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


def switch_off(machine: Path) -> bool:
    if is_on(machine):
        os.kill(int(machine.read_text()), signal.SIGKILL)
    until = time.monotonic() + DEADLINE
    while is_on(machine) and time.monotonic() < until:
        time.sleep(0.005)
    return not is_on(machine)


def switch_on(machine: Path) -> bool:
    if not is_on(machine):
        child = subprocess.Popen(
            ["/bin/sleep", "1000000"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        machine.write_text(str(child.pid))
    return True


if __name__ == "__main__":
    raise SystemExit(main())
