# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-ins for what a daemon works with: they do what a test says, and note what was asked.

Whatever is put in place of a value as an exception is raised instead of returned.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.lease_freeing import (  # noqa: E501
    Freeing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.news import (
    News,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    HostState,
    ObservedKeepalive,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    Intent,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.versions import (
    LeaseVersion,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.interface import (
    HostLeaseView,
    LeaseHolder,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.record_format import (
    Kind,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.board import (  # noqa: E501
    Board,
)

NO_FREEING = Freeing()


def given(value: Any) -> Any:
    """Return a value, or raise it if it is an error."""
    if isinstance(value, Exception):
        raise value
    return value


def lease_view(host_id: int, **changes: Any) -> HostLeaseView:
    """Return a host lease that was renewed just now."""
    view = HostLeaseView(host_id, f"n{host_id}", 4, 77, HostState.LIVE, 0.5, True)
    return replace(view, **changes)


@dataclass
class LeasesStandIn:
    """Host leases by host id, and one manager lease; *log* is what was done, in order."""

    log: list[Any]
    views: dict[int, Any] = field(default_factory=dict)
    manager: LeaseHolder = field(default_factory=lambda: LeaseHolder(0, 0, 0, False))
    epoch: Any = None
    held_answers: list[Any] = field(default_factory=list)
    fail_seconds: float = 16.0
    late_seconds: float = 6.0
    free_error: Exception | None = None
    renew_error: Exception | None = None
    left: int = 0
    disarmed: Any = 0
    armed: Any = 0

    def renew(self) -> None:
        given(self.renew_error)

    def leave(self) -> None:
        self.left += 1

    def disarm_watchdog(self) -> None:
        given(self.disarmed)
        self.disarmed += 1

    def arm_watchdog(self) -> None:
        given(self.armed)
        self.armed += 1

    def host(self, host_id: int) -> HostLeaseView:
        return given(self.views.get(host_id) or lease_view(host_id))

    def hosts(self) -> dict[int, HostLeaseView]:
        """Return those that were laid out; ``host`` has any other as well."""
        return {host_id: given(view) for host_id, view in self.views.items()}

    def holder(self, lease_name: str) -> LeaseHolder:
        return given(self.manager)

    def acquire(self, lease_name: str) -> int | None:
        return given(self.epoch)

    def held(self, lease_name: str) -> bool:
        """Return the answers that were laid out one after the other, then that it is held."""
        return given(self.held_answers.pop(0) if self.held_answers else True)

    def release(self, lease_name: str) -> None:
        self.log.append(("release", lease_name))

    def free_host(self, host_id: int, generation: int, timestamp: int | None = None) -> None:
        self.log.append(("free", host_id, generation, timestamp))
        given(self.free_error)


@dataclass
class BoardStandIn:
    """The whiteboard: what a read returns, and the blocks that were written."""

    log: list[Any]
    board: Any = field(default_factory=lambda: Board(4))
    error: Exception | None = None
    on_read: Any = None

    def read(self) -> Board:
        if self.on_read is not None:
            self.on_read()
        return given(self.board)

    def read_trusted(self, host_id: int) -> Any:
        return self.read().hosts.get(host_id)

    def write_global(self, block: Any) -> None:
        given(self.error)
        self.log.append(("global", block.maintenance))

    def write_host(self, block: Any) -> None:
        given(self.error)
        self.log.append(("block", block))


class StorageStandIn:
    """The cluster's storage, in memory."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.leases = LeasesStandIn(self.log)
        self.board = BoardStandIn(self.log)
        self.reports: dict[int, Any] = {}
        self.numbers: dict[int, int] = {}
        self.after = 0
        self.stands: Any = True
        self.asked_for_reports: list[tuple[int, int]] = []
        self.asked_for_desired: list[int] = []
        self.state: Any = None
        self.intent: Intent | None = None
        self.desired: Any = DesiredState()
        self.write_error: Exception | None = None
        self.on_write: Any = None
        self.host_lease: Any = 4
        self.freeing = NO_FREEING
        self.awaited: Any = ""

    def adopt_host_lease(self) -> int:
        return given(self.host_lease)

    def read_report(self, host_id: int, number: int = 0) -> Report | None:
        self.asked_for_reports.append((host_id, number))
        return given(self.reports.get(host_id))

    def report_number(self, host_id: int) -> int:
        return self.numbers.get(host_id, 1 << 30)

    def own_report_number(self) -> int:
        return sum(entry[0] == "report" for entry in self.log)

    def next_report_number(self) -> int:
        return self.own_report_number() + 1

    def continue_after(self, number: int) -> None:
        self.after = number

    def own_record_stands(self, _kind: Kind) -> bool:
        return given(self.stands)

    def lease_versions(self) -> tuple[LeaseVersion, int]:
        return LeaseVersion(1 << 30), 1 << 30

    def write_report(self, report: Report) -> None:
        self._write("report", report)

    def read_manager(self) -> ClusterState | None:
        return given(self.state)

    read_orders = read_manager

    def readable_manager(self) -> tuple[ClusterState | None, str]:
        return self.read_manager(), ""

    def write_manager(
        self, state: ClusterState, freeing: Freeing = NO_FREEING, news: News | None = None
    ) -> None:
        self._write("state", state)
        self.freeing = freeing

    def own_freeing(self) -> Freeing:
        return self.freeing

    def write_freeing(self, freeing: Freeing) -> None:
        self._write("freeing", dict(freeing.leases))
        self.freeing = freeing

    def late_free(self, generation: int = 0) -> str:
        return given(self.awaited)

    def newest_intent(self) -> Intent | None:
        return self.intent

    def write_intent(self, intent: Intent, freeing: Freeing = NO_FREEING) -> None:
        self._write("intent", intent)
        self.freeing = freeing

    def read_desired(self) -> tuple[DesiredState, int]:
        return given(self.desired), 1

    def read_desired_from(self, host_id: int) -> DesiredState | None:
        self.asked_for_desired.append(host_id)
        return given(self.desired)

    def _write(self, what: str, content: Any) -> None:
        given(self.write_error)
        self.log.append((what, content))
        if self.on_write is not None:
            self.on_write()


class NetworkStandIn:
    """Notes who was asked and hinted; nobody answers."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.hints: list[tuple[str, int]] = []
        self.beats: dict[str, int] = {}
        self.written: list[int] = []
        self.requested: list[str] = []
        self.keepalives: dict[str, list[ObservedKeepalive]] = {}

    def request_keepalives(self, member: Any) -> None:
        self.requested.append(member.name)

    def take_keepalives(self) -> dict[str, list[ObservedKeepalive]]:
        keepalives, self.keepalives = self.keepalives, {}
        return keepalives

    def has_keepalive(self, node: str) -> bool:
        return node in self.keepalives

    def wrote(self, beat: int) -> None:
        self.written.append(beat)

    def take_beats(self) -> dict[str, int]:
        beats, self.beats = self.beats, {}
        return beats

    def ask(self, member: Any, _times: int = 1) -> None:
        self.asked.append(member.name)

    def hint(self, targets: Any) -> None:
        self.hints.extend(targets)

    def listen(self, seconds: float) -> tuple[bool, set[str]]:
        return False, set()

    def answering_with_other_keys(self) -> set[str]:
        return set()

    def refused(self) -> tuple[int, str]:
        return 0, ""
