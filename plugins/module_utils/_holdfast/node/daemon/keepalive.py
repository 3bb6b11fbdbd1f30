# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The LRM's side of its sender of keepalives: starts the process, and tells it of each turn.

The sender is a small process of its own (``keepalive_process.py``), so that neither the LRM's work
nor a swapped-out page delays a keepalive.  It gets all it needs over a socket, reads no file, and
ends with its LRM.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress

from ...process.own_program import own_program
from ...storage.authentication import Authenticate
from ..configuration import NodeConfiguration
from ..log import Repeating

START_AGAIN = 1.0
"""Seconds between two starts of a sender at least."""

ENDS_WITHIN = 1.0
"""Seconds that a sender has to end by itself."""

SENDER = "keepalive"
"""The subcommand of the sender's process."""


class KeepaliveSender:
    """The sender of this node's keepalives; ``ask`` is called by the thread that answers."""

    def __init__(
        self,
        configuration: NodeConfiguration,
        network: int,
        authenticate: Authenticate,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start the sender, which sends from the socket with the descriptor *network*."""
        self._configuration = configuration
        self._network = network
        self._authenticate = authenticate
        self._clock = clock
        self._repeating = Repeating(clock)
        self._started = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._start()

    def turned(self) -> None:
        """Tell the sender that the LRM ended a turn just now; start one that died again."""
        process = self._process
        if process is None or process.poll() is not None:
            if self._clock() < self._started + START_AGAIN:
                return
            self._repeating.log("the sender of keepalives is started again")
            self._let_go()
            self._start()
        self._tell({"turned": self._clock()})

    def ask(self, asker: tuple[str, int], nonce: str) -> None:
        """Have keepalives sent to *asker* with *nonce*."""
        keys = [key.hex() for key in self._authenticate().keys[:1]]
        self._tell({"asker": list(asker), "nonce": nonce, "keys": keys})

    def close(self) -> None:
        """End the sender; it tells those that asked that the LRM ends."""
        process = self._process
        self._let_go()
        if process is None:
            return
        try:
            process.wait(ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _start(self) -> None:
        """Start a sender; without a process for it the node sends no keepalives for a while."""
        self._started = self._clock()
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        configuration = self._configuration
        words = (
            *(str(its.fileno()), str(self._network), repr(configuration.timing.keepalive)),
            *(configuration.cluster, configuration.node),
        )
        try:
            self._process = subprocess.Popen(  # pylint: disable=ansible-bad-function
                own_program(SENDER, *words),
                stdin=subprocess.DEVNULL,
                pass_fds=(its.fileno(), self._network),
                cwd="/",
            )
        except OSError as error:
            self._repeating.log(f"no keepalives are sent: {os.strerror(error.errno or 0)}")
            self._process = None
            ours.close()
        else:
            self._channel = ours
        finally:
            its.close()

    def _tell(self, message: dict[str, object]) -> None:
        channel = self._channel
        if channel is None:
            return
        # A sender that does not read, or is gone, shows by its missing keepalives.
        with suppress(OSError):
            channel.send(json.dumps(message).encode())

    def _let_go(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()
