# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A web service that says on which node it runs: what the quickstart lets move."""

from __future__ import annotations

import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Page(BaseHTTPRequestHandler):
    """Answers every request with the node and the process."""

    def do_GET(self) -> None:
        """Answer."""
        node = os.environ.get("HOLDFAST_NODE", "?")
        body = f"web runs on {node}, process {os.getpid()}\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Keep quiet."""


if __name__ == "__main__":
    ThreadingHTTPServer.allow_reuse_address = True
    ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Page).serve_forever()
