# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Something done all the time beside a test: a client that writes, an observer that looks."""

from __future__ import annotations

import threading
from typing import Any

END = 20.0
"""Seconds for the last step to end."""


class Background:
    """Does ``step`` again and again, ``pause`` seconds apart, while it is entered.

    What a step raises is raised when it is left: who could not look has seen nothing.
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
        """Do it once."""
        raise NotImplementedError

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self.step()
                self._stop.wait(self.pause)
        except Exception as error:
            self._failure = error
