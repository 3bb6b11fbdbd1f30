# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Activities in the background of a test: a client that writes, an observer."""

from __future__ import annotations

import threading
from typing import Any

END = 20.0
"""Seconds for the last step to end."""


class Background:
    """Repeats ``step``, ``pause`` seconds apart, in a thread while it is entered.

    The first exception of a step is raised again at the exit: an observer that failed proves
    nothing.
    """

    pause = 0.02

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._failure: Exception | None = None

    def __enter__(self) -> Any:
        self._thread.start()
        return self

    def __exit__(self, *_nothing: object) -> None:
        self._stop.set()
        self._thread.join(END)
        if self._failure is not None:
            raise self._failure
        if self._thread.is_alive():
            raise TimeoutError(f"{type(self).__name__} did not end within {END:.0f} s")

    def step(self) -> None:
        """Run once; subclasses override this."""
        raise NotImplementedError

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self.step()
                self._stop.wait(self.pause)
        except Exception as error:
            self._failure = error
