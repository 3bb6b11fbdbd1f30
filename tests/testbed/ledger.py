# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The service of the testbed: a ledger on the shared storage with an HTTP server.

Called with an address and the ledger's file.  A POST appends a line with its body, and is answered
once the line is on the storage.  A line without a body is appended ten times a second.  With the
address of an observer the process also sends it a datagram ten times a second, even while the
storage hangs.  Each line begins with the node and the process that wrote it.  It runs on the nodes
and needs only Python.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PORT = 8080
OBSERVER_PORT = 8081
BEAT = 0.1


def process():
    """Return this process's id and start time in ticks: a restarted node reuses process ids."""
    fields = Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return f"{os.getpid()}.{fields[19]}"


class Ledger:
    def __init__(self, path):
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._owner = f"{socket.gethostname()} {process()}"

    def add(self, what):
        os.write(self._file, f"{self._owner} {time.time():.3f} {what}\n".encode())
        os.fdatasync(self._file)

    def beat(self):
        while True:
            self.add("-")
            time.sleep(BEAT)

    def announce(self, observer, service):
        """Send a datagram with the service and the process to the observer, repeatedly."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            while True:
                try:
                    sender.sendto(f"{service} {self._owner}".encode(), (observer, OBSERVER_PORT))
                except OSError:
                    # Without a network the observer receives nothing; the ledger records it.
                    pass
                time.sleep(BEAT)


def handler(ledger):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self._answer()

        def do_POST(self):
            ledger.add(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self._answer()

        def log_message(self, *_arguments):
            pass

        def _answer(self):
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

    return Handler


def main():
    address, path, *observer = sys.argv[1:]
    ledger = Ledger(path)
    for one in observer:
        words = (one, Path(path).stem)
        threading.Thread(target=ledger.announce, args=words, daemon=True).start()
    server = ThreadingHTTPServer((address, PORT), handler(ledger))
    threading.Thread(target=ledger.beat, daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    main()
