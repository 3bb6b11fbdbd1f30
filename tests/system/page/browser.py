# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A headless Chromium, spoken to over two pipes in its own protocol, with nothing in between.

Messages are JSON ended by a zero byte (Chromium, ``--remote-debugging-pipe``); their names are
those of the Chrome DevTools Protocol.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
DEADLINE = 300.0


def program() -> str | None:
    """Return the path of the installed browser, or None."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


class Browser:
    """One page of a browser of its own; leaving it ends the browser."""

    def __init__(self, folder: Path) -> None:
        """Start the browser with its profile in *folder*."""
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        self._read, self._write = ours_in, ours_out
        self._rest = b""
        self._number = 0
        self._session = ""
        self.events: list[dict[str, Any]] = []
        # The protocol wants its two ends as descriptors 3 and 4, whichever numbers they have here.
        launch = 'exec 3<&"$1" 4>&"$2"; shift 2; exec "$@"'
        self._child = subprocess.Popen(
            [
                *("/bin/bash", "-c", launch, "browser", str(theirs_in), str(theirs_out)),
                *(program() or "chromium", "--headless=new", "--no-sandbox", "--disable-gpu"),
                *("--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe"),
                f"--user-data-dir={folder}",
                "about:blank",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(theirs_in, theirs_out),
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for room in ("Page", "Network", "Log", "Runtime", "Accessibility"):
            self.call(f"{room}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._write)
        try:
            self._child.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait(10)
        os.close(self._read)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method and return its result; what else is said meanwhile is kept in *events*."""
        said = self._answer(method, parameters)
        assert "error" not in said, f"{method}: {said.get('error')}"
        result: dict[str, Any] = said["result"]
        return result

    def show(self, page: Path, width: int, scheme: str = "light") -> None:
        """Load a page on a screen so wide, in a colour scheme, and wait until it is there."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            **{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        self.events.clear()
        self.call("Page.navigate", url=page.as_uri())
        until = time.monotonic() + DEADLINE
        while self.ask("document.readyState + location.protocol") != "completefile:":
            assert time.monotonic() < until, "the page is not loaded"
            time.sleep(0.05)

    def ask(self, expression: str) -> Any:
        """Return the value of a JavaScript expression in the page.

        In the moment in which another page comes there is none to ask, or only a part of it: it
        is asked then.
        """
        asked = {"expression": expression, "returnByValue": True}
        until = time.monotonic() + DEADLINE
        said = self._answer("Runtime.evaluate", asked)
        while _failed(said) and time.monotonic() < until:
            time.sleep(0.05)
            said = self._answer("Runtime.evaluate", asked)
        assert "error" not in said, said["error"]
        found = said["result"]
        assert "exceptionDetails" not in found, found.get("exceptionDetails")
        return found["result"].get("value")

    def spoken(self) -> list[tuple[str, str]]:
        """Return what a screen reader finds in the page, as roles with names."""
        tree = self.call("Accessibility.getFullAXTree")["nodes"]
        return [
            (node["role"]["value"], node.get("name", {}).get("value", ""))
            for node in tree
            if not node.get("ignored") and "role" in node
        ]

    def requests(self) -> list[str]:
        """Return the addresses that the page asked for since it was shown."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]

    def complaints(self) -> list[str]:
        """Return what the browser complained of since the page was shown."""
        return [
            event["params"]["entry"]["text"]
            for event in self.events
            if event.get("method") == "Log.entryAdded"
        ] + [
            str(event["params"])
            for event in self.events
            if event.get("method") == "Runtime.exceptionThrown"
        ]

    def _answer(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """Call a method and return what is answered, be it an error."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + DEADLINE
        while True:
            said = self._next(until)
            if said.get("id") == self._number:
                return said
            self.events.append(said)

    def _next(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, *_rest = select.select([self._read], [], [], max(0.0, until - time.monotonic()))
            assert ready, "the browser does not answer"
            more = os.read(self._read, 1 << 16)
            assert more, "the browser ended"
            self._rest += more
        message, _separator, self._rest = self._rest.partition(b"\0")
        said: dict[str, Any] = json.loads(message)
        return said


def _failed(said: dict[str, Any]) -> bool:
    """Return whether an expression could not be asked, or met no whole page."""
    return "error" in said or "exceptionDetails" in said.get("result", {})
