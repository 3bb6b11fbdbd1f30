# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The picture of the status page in the README: a cluster in the middle of a failover.

``python3 tests/system/page/picture.py`` writes ``docs/pictures/status-page.png`` again; it needs
Chromium.  Do so whenever the page looks different.  With a folder as its argument it writes there
instead how the page looks in five states: light, dark, and as wide as a phone.
"""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / ".collections"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    HostState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    Event,
    Failover,
    NodeState,
    NodeStatus,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.page import (
    render_page,
)
from ansible_collections.holdfast.ha.tests.unit.node import sample_status as sample
from browser import Browser

PICTURE = Path(__file__).resolve().parents[3] / "docs" / "pictures" / "status-page.png"
WIDTH, HEIGHT = 1000, 720


def during_failover(at: float = sample.AT) -> dict[str, Any]:
    """Return a status: n2 died five seconds ago, web runs on n1 again, vm:100 is starting on n3."""
    began = at - 5.6
    services = {
        "db": ServiceStatus(ServiceState.STARTED, "n1", since=at - 7300, reason="least services"),
        "vm:100": ServiceStatus(
            ServiceState.REQUEST_START,
            "n3",
            since=began + 4.9,
            reason="recovered from n2; preferred",
        ),
        "web": ServiceStatus(
            ServiceState.STARTED,
            "n1",
            since=began + 5.5,
            reason="recovered from n2; least services",
        ),
    }
    off = NodeStatus(
        NodeState.OFF,
        began + 4.85,
        sample.PROOF,
        proof=sample.verified_off(sample.PROOF),
        fenced=(began + 4.8,),
    )
    online = NodeStatus(NodeState.ONLINE, at - 90000)
    failover = Failover(
        "n2",
        sample.SILENT,
        began,
        began + 3.1,
        began + 3.2,
        began + 3.3,
        began + 4.85,
        sample.PROOF,
        services=("vm:100", "web"),
        started={"web": ("n1", began + 5.5)},
    )
    state = ClusterState(
        epoch=7,
        manager="n1",
        nodes={"n1": online, "n2": off, "n3": online},
        services=services,
        failovers=(failover,),
        events=(
            Event(began + 3.1, "suspected", "n2", "", sample.SILENT),
            Event(began + 3.2, "fence", "n2", "", f"{sample.SILENT}; to be fenced for vm:100, web"),
            Event(began + 4.85, "proof", "n2", "", sample.PROOF),
            Event(began + 4.9, "start", "n1", "web", "recovered from n2; least services"),
            Event(began + 5.5, "started", "n1", "web", "started in 0.6 s"),
        ),
    )
    status = sample.build(state, leases={2: HostState.FAIL}, scores={2: 0}, at=at)
    return {**status, "backend": "sanlock"}


STATES = {
    "healthy": sample.healthy,
    "failover": during_failover,
    "recovered": sample.after_failover,
    "trouble": sample.in_trouble,
    "disarmed": sample.disarmed,
}
"""States of a cluster that an operator has to tell apart at a glance."""

PHONE = 400
LOOKS = {"light": (WIDTH, "light"), "dark": (WIDTH, "dark"), "phone": (PHONE, "light")}
"""Width in pixels and colour scheme of each look."""


def screenshot(browser: Browser, folder: Path) -> bytes:
    """Return the first screen of the page, which is written into *folder*, as a PNG."""
    return _shot(browser, folder, during_failover(), "light", WIDTH, HEIGHT)


def write_states(browser: Browser, folder: Path) -> None:
    """Write a PNG of the whole page into *folder* for each state and look."""
    folder.mkdir(parents=True, exist_ok=True)
    for state, status in STATES.items():
        for look, (width, scheme) in LOOKS.items():
            shot = _shot(browser, folder, status(), scheme, width)
            (folder / f"{state}-{look}.png").write_bytes(shot)


def _shot(
    browser: Browser,
    folder: Path,
    status: dict[str, Any],
    scheme: str,
    width: int,
    height: int | None = None,
) -> bytes:
    """Return a PNG of the page of *status*, by default of all of its height."""
    page = folder / "page.html"
    page.write_text(str(render_page(status)), encoding="utf-8")
    browser.show(page, width, scheme)
    height = height or browser.ask("document.documentElement.scrollHeight")
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    whole = {"captureBeyondViewport": True} if height > HEIGHT else {}
    shot = browser.call("Page.captureScreenshot", format="png", clip=clip, **whole)
    return base64.b64decode(shot["data"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch, Browser(Path(scratch)) as opened:
        if sys.argv[1:]:
            write_states(opened, Path(sys.argv[1]))
        else:
            PICTURE.write_bytes(screenshot(opened, Path(scratch)))
