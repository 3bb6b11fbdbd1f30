# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated management board that speaks Redfish over TLS, in threads.

One system behind a basic authentication (Redfish specification DSP0266: the resources
ComputerSystemCollection and ComputerSystem, the action ComputerSystem.Reset).
"""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ADDRESS = "127.0.0.1"
USER = "fence"
PASSWORD = "secret-of-redfish"
SYSTEM = "/redfish/v1/Systems/1"
_RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"


class RedfishBoard:
    """The board; ``deaf``: it says that it switches and does not; ``silent``: it never answers."""

    def __init__(self, folder: Path) -> None:
        self.power = "On"
        self.deaf = False
        self._awake = threading.Event()
        self._awake.set()
        self._server = ThreadingHTTPServer((ADDRESS, 0), self._handler())
        self._server.daemon_threads = True
        self._server.block_on_close = False
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(_certificate(folder), folder / "key.pem")
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self._thread = threading.Thread(target=self._server.serve_forever)

    @property
    def parameters(self) -> dict[str, object]:
        """What fence_redfish needs to talk to it."""
        return {
            "ip": ADDRESS,
            "ipport": self._server.server_address[1],
            "username": USER,
            "password": PASSWORD,
            "systems_uri": SYSTEM,
            "ssl_insecure": True,
            "power_wait": 0,
        }

    @property
    def silent(self) -> bool:
        return not self._awake.is_set()

    @silent.setter
    def silent(self, desired: bool) -> None:
        (self._awake.clear if desired else self._awake.set)()

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._awake.set()
        self._server.shutdown()
        self._thread.join(timeout=10)
        self._server.server_close()

    def answer(self, method: str, path: str, sent: bytes) -> tuple[int, object]:
        """Return status and document for a request."""
        self._awake.wait()
        if method == "POST" and path == _RESET:
            if not self.deaf:
                self.power = {"On": "On", "ForceOff": "Off"}[json.loads(sent)["ResetType"]]
            return 200, {}
        if path == SYSTEM:
            reset = {"#ComputerSystem.Reset": {"target": _RESET}}
            return 200, {"PowerState": self.power, "Actions": reset}
        return 404, {"error": {"message": "there is no such resource"}}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        board = self
        expected = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._reply("GET", b"")

            def do_POST(self) -> None:
                self._reply("POST", self.rfile.read(int(self.headers["Content-Length"])))

            def _reply(self, method: str, sent: bytes) -> None:
                if self.headers["Authorization"] == expected:
                    status, document = board.answer(method, self.path, sent)
                else:
                    status, document = 401, {"error": {"message": "not authorized"}}
                body = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_arguments: object) -> None:
                """Say nothing."""

        return Handler


@contextmanager
def redfish_board(folder: Path) -> Iterator[RedfishBoard]:
    """Give a board whose system is on; it ends with the block."""
    made = RedfishBoard(folder)
    made.start()
    try:
        yield made
    finally:
        made.end()


def _certificate(folder: Path) -> Path:
    """Make a key and a certificate of our own in *folder*."""
    path = folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=localhost", "-addext", f"subjectAltName=IP:{ADDRESS}"]
    subprocess.run(
        [*command, *names, "-keyout", folder / "key.pem", "-out", path],
        check=True,
        capture_output=True,
        timeout=60,
    )
    return path
