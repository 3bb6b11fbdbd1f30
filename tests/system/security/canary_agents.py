# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Agents that repeat all that they are given wherever they can, and where a secret may not be."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType

RESOURCE_AGENT = r"""#!/bin/sh
# A resource agent as verbose as the worst: it repeats its secrets in all of its output.
said="$OCF_RESKEY_password $OCF_RESKEY_token $OCF_RESKEY_motd $OCF_RESKEY_url $OCF_RESKEY_opts"
pid=$HA_RSCTMP/$OCF_RESOURCE_INSTANCE.pid
runs() { [ -e "$pid" ] && kill -0 "$(cat "$pid")" 2>/dev/null; }
if [ "$1" != meta-data ]; then
    echo "$1 with $said"
    echo "$1 with $said" >&2
    echo "ocf-exit-reason:$1 with $said" >&2
fi
case $1 in
start)
    [ ! -e FOLDER/fail ] || exit 1
    runs || { setsid sleep 100000 >/dev/null 2>&1 </dev/null & echo $! >"$pid"; } ;;
stop)
    ! runs || kill -9 "$(cat "$pid")"
    rm -f "$pid" ;;
monitor)
    runs || exit 7
    [ ! -e FOLDER/fail ] || exit 1 ;;
meta-data)
    cat <<END
<resource-agent name="canary"><version>1.0</version><parameters>
<parameter name="password"><content type="string"/></parameter>
<parameter name="token"><content type="string"/></parameter>
<parameter name="motd"><content type="string"/></parameter>
<parameter name="url"><content type="string"/></parameter>
<parameter name="opts"><content type="string"/></parameter>
</parameters><actions>
<action name="start" timeout="20s"/><action name="stop" timeout="20s"/>
<action name="monitor" timeout="20s" interval="10s"/><action name="meta-data" timeout="5s"/>
</actions></resource-agent>
END
    ;;
esac
exit 0
"""

FENCE_AGENT = r"""#!/bin/sh
# The fence agent of machines with a password, which it repeats in all of its output.
lines=$(cat)
case $lines in
*action=metadata*)
    echo "$lines" | AGENT | sed 's|</parameters>|<parameter name="password"><content\
 type="string"/></parameter><parameter name="password_script"><content type="string"/>\
</parameter></parameters>|' ;;
*)
    echo "asked for: $lines"
    echo "asked for: $lines" >&2
    echo "$lines" | grep -v ^password= | AGENT ;;
esac
"""


def install(path: Path, text: str) -> None:
    """Write a program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def leaks(secrets: Mapping[str, str], texts: Iterable[tuple[str, bytes]]) -> list[str]:
    """Return a sentence for each secret in *texts*, as it is or in base64, by its path."""
    spellings = {
        one: name
        for name, secret in secrets.items()
        for one in (secret.encode(), *_in_base64(secret.encode()))
    }
    return sorted(
        {
            f"the secret {name!r} is in {place}"
            for place, text in texts
            for spelling, name in spellings.items()
            if spelling in text
        }
    )


def _in_base64(secret: bytes) -> Iterator[bytes]:
    """Return what of *secret* is in base64 after any other bytes: not its ends."""
    for before in range(3):
        yield base64.b64encode(bytes(before) + secret)[4:-4]


def files_below(folder: Path, but: Iterable[Path] = ()) -> Iterator[tuple[str, bytes]]:
    """Return all files below *folder*, but for those that are, or are below, others."""
    spared = set(but)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and not spared & {path, *path.parents}:
            yield f"the file {path}", path.read_bytes()


class CommandLines:
    """All command lines that there are while its context lasts."""

    def __init__(self) -> None:
        """Nothing is seen yet."""
        self.observed: set[bytes] = set()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> CommandLines:
        """Begin to look."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Look no more."""
        self._ends.set()
        self._thread.join()

    def texts(self) -> Iterator[tuple[str, bytes]]:
        """Return what was seen."""
        for line in self.observed:
            words = line.replace(b"\0", b" ").decode("utf-8", "replace")
            yield f"the command line {words[:200]}", line

    def _look(self) -> None:
        while not self._ends.wait(0.01):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    self.observed.add(path.read_bytes())
                except OSError:
                    continue
