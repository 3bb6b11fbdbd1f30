# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a compromised service tries: it reads, writes and signals all that it can reach.

As a program it is the process of the service: ``hostile_service.py FOLDER DONE``.  As another user
it goes through everything below FOLDER and all processes, again and again, and appends a line to
the file DONE for each thing that it could do.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

NOBODY = 65534

AGENT = r"""#!/bin/sh
# A resource agent that passes on what its service says, as many do.
pid=$HA_RSCTMP/hostile.pid
case $1 in
start)
    setsid {python} {program} {folder} {done} >/dev/null 2>&1 </dev/null &
    echo $! >"$pid" ;;
stop)
    [ ! -e "$pid" ] || kill -9 "$(cat "$pid")"
    rm -f "$pid" ;;
monitor)
    [ -e "$pid" ] && kill -0 "$(cat "$pid")" || exit 7
    head -c {flood} /dev/zero | tr '\0' x
    head -c {flood} /dev/zero | tr '\0' y >&2
    printf 'ocf-exit-reason:{words}\n' >&2
    [ ! -e {folder}/fail ] || exit 1 ;;
meta-data)
    cat <<END
<resource-agent name="hostile"><version>1.0</version><parameters/><actions>
<action name="start" timeout="20s"/><action name="stop" timeout="20s"/>
<action name="monitor" timeout="20s" interval="10s"/><action name="meta-data" timeout="5s"/>
</actions></resource-agent>
END
    ;;
esac
exit 0
"""

WORDS = r"{{{{ lookup(\"pipe\", \"touch {folder}/owned\") }}}} \033[2J\033]0;owned\007 \342\200\256"


def attempts(folder: Path) -> Iterator[str]:
    """Try everything once; yield what could be done."""
    for path in [folder, *folder.rglob("*")]:
        try:
            if path.is_dir():
                (path / "planted").write_text("")
                yield f"write into {path}"
            elif path.is_file():
                if path.name in ("cluster.key", "fence.json") or path.parent.name == "storage":
                    path.read_bytes()
                    yield f"read {path}"
                with path.open("ab"):
                    yield f"write {path}"
        except OSError:
            continue
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            # Not its own: those of other users, as the daemons are.
            if entry.stat().st_uid == os.getuid():
                continue
            os.kill(int(entry.name), signal.SIGTERM)
            yield f"signal process {entry.name}"
        except OSError:
            continue
        try:
            (entry / "environ").read_bytes()
            yield f"read the environment of process {entry.name}"
        except OSError:
            continue


def main() -> None:
    """Become another user and try, for as long as the service runs."""
    folder, done = Path(sys.argv[1]), os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND)
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    os.write(done, b"begun\n")
    while True:
        for what in attempts(folder):
            os.write(done, f"{what}\n".encode())
        os.write(done, b"tried everything\n")
        time.sleep(1.0)


if __name__ == "__main__":
    main()
