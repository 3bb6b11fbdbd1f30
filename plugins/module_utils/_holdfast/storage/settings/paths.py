# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the times of iSCSI, FC and multipath fit the times of the host leases.

While a path is lost, I/O waits until the loss is detected and the path is given up; then it goes
on over another path, or waits for one, or fails.  Two things must hold, N being the I/O timeout:

* One path lost: a renewal that had to wait must end before the host lease fails.  The last renewal
  may be 2 N old when the wait begins, and the write itself may take N: 8 N - 2 N - N are left.
* All paths lost: I/O must fail by the time at which the host lease does, after 8 N.  While it
  waits no process that uses the storage can be ended, and only the watchdog frees the services.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..lockspace.host_timing import LeaseTiming

QUEUE = -1
"""Waiting for a path without a limit."""

_SHORTEST = 1
"""The least number of seconds that the settings can have."""


@dataclass(frozen=True)
class DevicePath:
    """A path to a LUN, its times in seconds; QUEUE for one that never ends.

    ``interval`` and ``timeout`` are those of iSCSI's pings, both 0 for a transport that reports a
    lost path by itself.  ``fail`` is how long a lost path is waited for: replacement_timeout, or
    fast_io_fail_tmo.
    """

    name: str
    transport: str
    interval: int
    timeout: int
    fail: int

    @property
    def detect(self) -> int:
        """The seconds until a loss is detected."""
        return self.interval + self.timeout


@dataclass(frozen=True)
class PathsOfDevice:
    """A LUN with its paths; ``retries`` looks for a path are made, ``polling`` seconds apart.

    A LUN without multipath has no retries.
    """

    name: str
    paths: Sequence[DevicePath]
    multipath: bool = True
    retries: int = 0
    polling: int = 5


def longest_stall(timing: LeaseTiming) -> int:
    """Return how many seconds a lost path may hold a write up."""
    return timing.fail_seconds - timing.renewal_seconds - timing.io_timeout


def check_paths(device: PathsOfDevice, timing: LeaseTiming) -> list[str]:
    """Return which numbers do not fit the times of the host leases, each as a sentence."""
    limit = longest_stall(timing) if device.multipath else timing.fail_seconds
    problems = [told for path in device.paths for told in _check_path(path, limit, timing)]
    if problems or not device.multipath:
        # Each path's own numbers first: what is left for the retries follows from them.
        return problems
    stall = max((path.detect + path.fail for path in device.paths), default=0)
    most = max((timing.fail_seconds - stall) // device.polling, 0)
    allowed = f"set it to {most} or less" if most else "set it to fail"
    lease = f"a host lease with an I/O timeout of {timing.io_timeout} s fails after"
    if device.retries == QUEUE:
        return [
            f"{device.name} has no_path_retry queue: without a path I/O waits without a limit, and"
            f" {lease} {timing.fail_seconds} s; {allowed} (section overrides of multipath.conf)."
        ]
    if device.retries > most:
        total = stall + device.retries * device.polling
        return [
            f"{device.name} has no_path_retry {device.retries} with polling_interval"
            f" {device.polling}: without a path I/O waits {total} s, and {lease}"
            f" {timing.fail_seconds} s; {allowed} (section overrides of multipath.conf)."
        ]
    return []


def _check_path(path: DevicePath, limit: int, timing: LeaseTiming) -> list[str]:
    """Return which number of a path is too large for a limit in seconds."""
    may = f"and with an I/O timeout of {timing.io_timeout} s it may wait {limit} s"
    if path.transport == "iscsi":
        names = "node.conn[0].timeo.noop_out_interval and noop_out_timeout"
        if path.interval == 0 or path.timeout == 0:
            return [f"Path {path.name} has {names} 0: its loss is never detected; set both to 2."]
        if path.detect + _SHORTEST > limit:
            each = max((limit - _SHORTEST) // 3, 1)
            return [
                f"Path {path.name} has {names} {path.interval} and {path.timeout}: its loss is"
                f" detected after {path.detect} s, {may}; set both to {each}."
            ]
    name = (
        "node.session.timeo.replacement_timeout (with multipath: fast_io_fail_tmo)"
        if path.transport == "iscsi"
        else "fast_io_fail_tmo"
    )
    most = limit - path.detect
    if path.fail == QUEUE:
        return [
            f"Path {path.name} has {name} off: I/O waits for a lost path without a limit,"
            f" {may}; set it to {most} or less."
        ]
    if path.fail > most:
        return [
            f"Path {path.name} has {name} {path.fail}: I/O waits {path.detect + path.fail} s for a"
            f" lost path, {may}; set it to {most} or less."
        ]
    return []
