# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status page in a real browser: wide and narrow, light and dark, seen, heard, and old."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import browser as browsers
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.manager.state import (
    ClusterState,
    NodeState,
    NodeStatus,
    ServiceState,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.status_page import (
    render_page,
)
from ansible_collections.holdfast.ha.tests.unit.node import sample_status as sample
from browser import Browser

PHONE, DESK = 360, 1200


def large() -> dict[str, Any]:
    """A hundred nodes with ten services each, and three failovers behind them."""
    nodes = {f"node{n:03}": NodeStatus(NodeState.ONLINE, sample.AT - 9000) for n in range(100)}
    nodes["node007"] = NodeStatus(NodeState.OFF, sample.AT - 40, sample.PROOF, proof=sample.PROOF)
    services = {
        f"vm:{n}": ServiceStatus(
            ServiceState.STARTED, f"node{n % 100:03}", since=sample.AT - 500, reason="most room"
        )
        for n in range(1000)
        if n % 100 != 7
    }
    failovers = tuple(sample.finished_failover(sample.AT - 9000 * n) for n in (3, 2, 1))
    state = ClusterState(
        epoch=7, manager="node000", nodes=nodes, services=services, failovers=failovers
    )
    return dict(sample.build(state))


STATUSES = {
    "healthy": sample.healthy,
    "after a failover": sample.after_failover,
    "in trouble": sample.in_trouble,
    "large": large,
}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if browsers.program() is None:
        pytest.skip("chromium is not installed")
    with Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "page.html"


@pytest.mark.parametrize("width", [PHONE, 760, DESK])
@pytest.mark.parametrize("name", STATUSES)
def test_nothing_is_wider_than_the_screen(
    browser: Browser, page: Path, name: str, width: int
) -> None:
    page.write_text(render_page(STATUSES[name]()), encoding="utf-8")
    browser.show(page, width)
    assert browser.ask("document.documentElement.scrollWidth") <= width
    outside = """[...document.querySelectorAll('main *, header *')].filter(one => {
        const box = one.getBoundingClientRect();
        return box.width && !one.closest('.spoken, caption, thead') &&
            (box.right > innerWidth + 1 || box.left < -1);
    }).map(one => one.outerHTML.slice(0, 80))"""
    assert browser.ask(outside) == []


def test_nothing_is_loaded_and_nothing_is_complained_of(browser: Browser, page: Path) -> None:
    for refresh in (0.0, 30.0):
        page.write_text(render_page(sample.in_trouble(), refresh=refresh), encoding="utf-8")
        browser.show(page, DESK)
        assert browser.requests() == [page.as_uri()]
        assert browser.complaints() == []


@pytest.mark.parametrize("name", STATUSES)
def test_each_text_can_be_told_from_its_ground_in_both_schemes(
    browser: Browser, page: Path, name: str
) -> None:
    page.write_text(render_page(STATUSES[name]()), encoding="utf-8")
    grounds = {}
    for scheme in ("light", "dark"):
        browser.show(page, DESK, scheme)
        grounds[scheme] = browser.ask("getComputedStyle(document.body).backgroundColor")
        assert browser.ask(LOW_CONTRAST) == []
    assert grounds["light"] != grounds["dark"]


def test_a_screen_reader_finds_each_node_with_its_state_and_how_its_services_are(
    browser: Browser, page: Path
) -> None:
    page.write_text(render_page(sample.in_trouble()), encoding="utf-8")
    browser.show(page, DESK)
    heard = browser.spoken()
    links = [" ".join(name.split()) for role, name in heard if role == "link"]
    assert links == ["n1 manager online", "n2 fence", "n3 online maintenance", "n4 unknown"]
    texts = [name for role, name in heard if role == "StaticText"]
    assert "1 service: 1 on the way, or in doubt" in texts
    assert "2 services: 1 in trouble, 1 stopped, as wanted" in texts
    headings = [name for role, name in heard if role == "heading"]
    assert headings[:3] == ["Cluster demo", "Map", "Nodes and what runs on them"]
    pictures = [name for role, name in heard if role == "image"]
    assert pictures[0].startswith("The last failovers: n2, ")
    assert {name for role, name in heard if role == "table"} >= {"Services", "Leases"}


def test_a_tile_leads_to_its_card_even_where_the_cards_are_folded(
    browser: Browser, page: Path
) -> None:
    page.write_text(render_page(large()), encoding="utf-8")
    browser.show(page, DESK)
    assert browser.ask("document.querySelectorAll('.tile').length") == 100
    assert not browser.ask("document.querySelector('details').open")
    browser.ask("document.querySelector('.map a[href=\"#node-node042\"]').click()")
    until = time.monotonic() + 10.0
    while not browser.ask("document.querySelector('details').open"):
        assert time.monotonic() < until
        time.sleep(0.05)
    assert browser.ask("document.querySelector('#node-node042').getBoundingClientRect().top") < 900


def test_a_kept_page_says_its_age_and_warns_once_nobody_writes_it(
    browser: Browser, page: Path
) -> None:
    hidden = "document.getElementById('stale').hidden"
    page.write_text(render_page(sample.healthy(time.time()), refresh=60.0), encoding="utf-8")
    browser.show(page, PHONE)
    assert browser.ask(hidden) is True
    assert browser.ask("document.getElementById('age').textContent").endswith(" s ago")
    assert not [role for role, _name in browser.spoken() if role == "alert"]
    page.write_text(render_page(sample.healthy(time.time() - 900), refresh=60.0), encoding="utf-8")
    browser.show(page, PHONE)
    assert browser.ask(hidden) is False
    assert "This page is 15 min old." in browser.ask("document.body.innerText")
    assert [role for role, _name in browser.spoken() if role == "alert"]


def test_a_kept_page_is_loaded_again_by_itself(browser: Browser, page: Path) -> None:
    page.write_text(render_page(sample.healthy(time.time()), refresh=1.0), encoding="utf-8")
    browser.show(page, DESK)
    # As a whole: it may be loaded at any moment.
    new = page.with_name("new.html")
    new.write_text(render_page(sample.in_trouble(time.time()), refresh=1.0), encoding="utf-8")
    os.replace(new, page)  # noqa: PTH105
    until = time.monotonic() + 30.0
    while "3 problems" not in (browser.ask("document.title") or ""):
        assert time.monotonic() < until
        time.sleep(0.1)


def test_a_page_that_nobody_keeps_has_no_script(browser: Browser, page: Path) -> None:
    page.write_text(render_page(sample.healthy()), encoding="utf-8")
    browser.show(page, DESK)
    assert browser.ask("document.scripts.length") == 0


LOW_CONTRAST = """(() => {
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(
      v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
      .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
  const ground = one => {
    for (; one; one = one.parentElement) {
      const found = parse(getComputedStyle(one).backgroundColor);
      if (found.length < 4 || found[3] > 0) { return found; }
    }
    return [255, 255, 255];
  };
  const low = new Set();
  for (const one of document.querySelectorAll('body *')) {
    const text = [...one.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!text || one.closest('script, .spoken')) { continue; }
    const style = getComputedStyle(one);
    const drawn = one.closest('svg') ? style.fill : style.color;
    const pair = [light(parse(drawn)), light(ground(one))].sort((a, b) => b - a);
    if ((pair[0] + 0.05) / (pair[1] + 0.05) < 4.5) {
      low.add(one.className.baseVal || one.className || one.tagName);
    }
  }
  return [...low];
})()"""
"""The classes of elements whose text has a contrast below 4.5 to 1 (WCAG 2.2, 1.4.3)."""
