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
import picture
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.policy import (
    Policy,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    NodeState,
    NodeStatus,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.forecast.rebalance import (  # noqa: E501
    Rebalance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.page import (
    render_page,
)
from ansible_collections.holdfast.ha.tests.unit.node import sample_status as sample
from browser import Browser

PHONE, DESK = 360, 1200


def large() -> dict[str, Any]:
    """A hundred nodes with ten services each, and three failovers behind them."""
    nodes = {f"node{n:03}": NodeStatus(NodeState.ONLINE, sample.AT - 9000) for n in range(100)}
    nodes["node007"] = NodeStatus(
        NodeState.OFF, sample.AT - 40, sample.PROOF, proof=sample.verified_off(sample.PROOF)
    )
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


def large_plan() -> Rebalance:
    """A plan for a hundred nodes of which a few carry twice what the others do."""
    online = {f"node{n:03}": NodeStatus(NodeState.ONLINE) for n in range(100)}
    services = {
        f"vm:{n}": ServiceStatus(ServiceState.STARTED, f"node{n % 100 // (1 + n // 550):03}")
        for n in range(600)
    }
    state = ClusterState(epoch=7, manager="node000", nodes=online, services=services)
    return sample.plan(
        state, policy=Policy(rebalance_threshold=0.1, rebalance_margin=0.0), together=()
    )


def plan_by_load() -> Rebalance:
    """A plan by CPU and memory, with odd figures."""
    needs = dict.fromkeys(("db", "mail", "vm:100", "vm:300", "web"), (1.25, 3333.0))
    room = dict.fromkeys(("n1", "n2", "n3"), (8.0, 16000.0))
    return sample.plan(policy=Policy(placement="load"), needs=needs, room=room)


STATUSES = {
    "healthy": sample.healthy,
    "after a failover": sample.after_failover,
    "in trouble": sample.in_trouble,
    "uneven": sample.uneven,
    "uneven by load": sample.uneven,
    "large": large,
}
PLANS = {"uneven": sample.plan, "uneven by load": plan_by_load, "large": large_plan}


def rendered(name: str, refresh: float = 0.0) -> str:
    """The page of one of the statuses, with its plan of a rebalance where it has one."""
    plan = PLANS[name]() if name in PLANS else None
    return str(render_page(STATUSES[name](), refresh=refresh, plan=plan))


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
    page.write_text(rendered(name, refresh=60.0), encoding="utf-8")
    browser.show(page, width)
    browser.ask("document.querySelectorAll('details').forEach(one => { one.open = true; })")
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
    page.write_text(rendered(name, refresh=60.0), encoding="utf-8")
    grounds = {}
    for scheme in ("light", "dark"):
        browser.show(page, DESK, scheme)
        browser.ask("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        browser.ask("document.getElementById('pause').click()")
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
    assert "2 services: 1 in trouble, 1 stopped, as configured" in texts
    headings = [name for role, name in heard if role == "heading"]
    assert headings[:3] == ["Cluster demo", "Map", "Nodes and what runs on them"]
    pictures = [name for role, name in heard if role == "image"]
    assert pictures[0].startswith("The last failovers: n2, ")
    assert {name for role, name in heard if role == "table"} >= {"Services", "Leases"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, DESK])
def test_the_bars_of_a_plan_are_drawn_on_one_scale_and_heard_as_words(
    browser: Browser, page: Path, width: int, scheme: str
) -> None:
    page.write_text(rendered("uneven"), encoding="utf-8")
    browser.show(page, width, scheme)
    drawn = browser.ask(BARS)
    shares = [round(one["width"] / one["track"], 2) for one in drawn]
    assert shares == [1.0, 0.4, 0.2, 0.4, 0.0, 0.4]
    assert min(one["track"] for one in drawn) > 150
    assert len({one["colour"] for one in drawn}) == 2
    grounds = {one["ground"] for one in drawn} | {"rgba(0, 0, 0, 0)"}
    assert not {one["colour"] for one in drawn} & grounds
    heard = browser.spoken()
    tables = [name for role, name in heard if role == "table"]
    assert "Services now and after the rebalance, of each node" in tables
    assert "Steps of the rebalance, in this order" in tables
    cells = [
        # Where the table is a list its headers are heard too.
        name.removeprefix("Now ").removeprefix("Then ")
        for role, name in heard
        if role in ("cell", "rowheader")
    ]
    place = cells.index("1. db, web")
    assert cells[place - 9 : place + 4] == [
        *("n1", "5 services", "2 services", "n2", "1 service", "2 services"),
        *("n3", "0 services", "2 services"),
        "1. db, web",
        *(("n1", "n3", "0.41") if width > 760 else ("From n1", "To n3", "Imbalance then 0.41")),
    ]


def test_a_tile_leads_to_its_card_even_where_the_cards_are_folded(
    browser: Browser, page: Path
) -> None:
    page.write_text(render_page(large()), encoding="utf-8")
    browser.show(page, DESK)
    assert browser.ask("document.querySelectorAll('.tile').length") == 100
    assert not browser.ask("document.querySelector('details').open")
    browser.ask("document.querySelector('.map a[href=\"#node-node042\"]').click()")
    until = time.monotonic() + 60.0
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
    browser.ask("scrollTo(0, 600)")
    assert browser.ask("document.getElementById('stale').getBoundingClientRect().top") == 0
    assert [role for role, _name in browser.spoken() if role == "alert"]


def test_a_kept_page_is_loaded_again_by_itself(browser: Browser, page: Path) -> None:
    page.write_text(render_page(sample.healthy(time.time()), refresh=1.0), encoding="utf-8")
    browser.show(page, DESK)
    # As a whole: it may be loaded at any moment.
    new = page.with_name("new.html")
    new.write_text(render_page(sample.in_trouble(time.time()), refresh=1.0), encoding="utf-8")
    os.replace(new, page)  # noqa: PTH105
    until = time.monotonic() + 30.0
    while "4 errors" not in (browser.ask("document.title") or ""):
        assert time.monotonic() < until
        time.sleep(0.1)


MARKED = "window.stillTheSame === true"
"""Whether the page was not loaded again since it was marked."""


def keep_reading(
    browser: Browser,
    page: Path,
    status: dict[str, Any],
    width: int = DESK,
    *,
    first: str = "true",
) -> None:
    """Show a page that is loaded again every two seconds, and mark it.

    What its reader does *first*, an expression that is true when it is done, comes with the mark:
    on a slow machine the page may be loaded again between two questions.
    """
    page.write_text(render_page(status, refresh=2.0, plan=large_plan()), encoding="utf-8")
    browser.show(page, width)
    until = time.monotonic() + 60.0
    there = "document.readyState === 'complete'"
    while not browser.ask(f"{there} && (window.stillTheSame = true) && ({first})"):
        assert time.monotonic() < until, "the page is never there"
        time.sleep(0.05)


def stays(browser: Browser) -> bool:
    """Whether the page is not loaded again for twice as long as it would be."""
    until = time.monotonic() + 4.0
    while time.monotonic() < until:
        if not browser.ask(MARKED):
            return False
        time.sleep(0.2)
    return True


def is_loaded_again(browser: Browser) -> bool:
    """Whether the page is loaded again soon; it is there then."""
    until = time.monotonic() + 60.0
    while browser.ask(f"{MARKED} || document.readyState !== 'complete'"):
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


def press(browser: Browser, key: str, code: int, text: str = "") -> None:
    for kind in ("keyDown", "keyUp"):
        more = {"text": text} if text and kind == "keyDown" else {}
        browser.call(
            "Input.dispatchKeyEvent",
            **{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, **more},
        )


def told(browser: Browser) -> str:
    return str(browser.ask("document.getElementById('keeping-told').textContent"))


def test_a_kept_page_is_paused_and_resumed_by_its_button_with_the_keyboard(
    browser: Browser, page: Path
) -> None:
    keep_reading(browser, page, sample.healthy(time.time()), PHONE)
    press(browser, "Tab", 9)
    assert browser.ask("document.activeElement.id") == "pause"
    press(browser, "Enter", 13, "\r")
    assert browser.ask("document.activeElement.getAttribute('aria-pressed')") == "true"
    assert stays(browser)
    assert told(browser).startswith("Paused; press again to go on. It shows how things were ")
    assert ("button", "Pause") in browser.spoken()
    # Its word stands on one line.
    assert browser.ask("document.getElementById('pause').offsetHeight") < 36
    press(browser, "Enter", 13, "\r")
    assert is_loaded_again(browser)


def test_an_opened_part_outlives_the_time_until_it_is_closed(browser: Browser, page: Path) -> None:
    card = "document.querySelector('.map a[href=\"#node-node042\"]')"
    keep_reading(browser, page, large(), first=f"({card}.click(), true)")
    assert stays(browser)
    assert browser.ask("document.querySelector('details').open")
    assert told(browser).startswith("Not loaded again while a part of it is opened.")
    # It covers the top of the screen, and the card is below it.
    tops = (
        "['.keeping', '#node-node042'].map(a => document.querySelector(a).getBoundingClientRect())"
    )
    assert browser.ask(f"(([bar, card]) => bar.top === 0 && card.top >= bar.bottom)({tops})")
    browser.ask("document.querySelector('details').open = false")
    assert is_loaded_again(browser)
    assert not browser.ask("document.querySelector('details').open")


def test_a_kept_page_is_not_loaded_again_while_text_is_selected_or_the_keyboard_is_in_it(
    browser: Browser, page: Path
) -> None:
    keep_reading(browser, page, sample.healthy(time.time()))
    browser.ask("getSelection().selectAllChildren(document.querySelector('h1'))")
    assert stays(browser)
    browser.ask("getSelection().removeAllRanges()")
    assert is_loaded_again(browser)
    browser.ask("window.stillTheSame = true")
    for _count in range(2):
        press(browser, "Tab", 9)
    assert browser.ask("document.activeElement.tagName") == "A"
    assert stays(browser)
    browser.ask("document.activeElement.blur()")
    assert is_loaded_again(browser)


def test_a_kept_page_stays_where_it_was_scrolled_to(browser: Browser, page: Path) -> None:
    scrolled = "Math.round(scrollY) === 3000"
    keep_reading(browser, page, large(), PHONE, first=f"(scrollTo(0, 3000), {scrolled})")
    assert is_loaded_again(browser)
    until = time.monotonic() + 60.0
    while not browser.ask(scrolled):
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_page_that_its_reader_holds_does_not_say_that_nobody_writes_it(
    browser: Browser, page: Path
) -> None:
    told_and_held = (
        "document.getElementById('stale').hidden === false"
        " && (document.getElementById('pause').click(), true)"
    )
    keep_reading(browser, page, sample.healthy(time.time() - 900), first=told_and_held)
    assert browser.ask("document.getElementById('stale').hidden") is True
    assert told(browser).endswith("It shows how things were 15 min ago.")


def test_without_scripts_the_browser_itself_would_load_a_kept_page_again(
    browser: Browser, page: Path
) -> None:
    page.write_text(render_page(sample.healthy(), refresh=2.0), encoding="utf-8")
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.show(page, DESK)
        found = "document.querySelector('noscript meta[http-equiv=refresh]').content"
        assert browser.ask(found) == "60"
        assert browser.ask("document.getElementById('pause').checkVisibility()") is False
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


def test_a_page_that_nobody_keeps_has_no_script(browser: Browser, page: Path) -> None:
    page.write_text(render_page(sample.healthy()), encoding="utf-8")
    browser.show(page, DESK)
    assert browser.ask("document.scripts.length") == 0


BARS = """[...document.querySelectorAll('.bar')].map(bar => ({
  track: bar.getBoundingClientRect().width,
  width: bar.firstElementChild.getBoundingClientRect().width,
  colour: getComputedStyle(bar.firstElementChild).backgroundColor,
  ground: getComputedStyle(bar).backgroundColor,
}))"""
"""How wide each bar of the plan is, of how much, and its colours."""

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


def test_the_picture_of_the_readme_is_what_the_page_looks_like(
    browser: Browser, tmp_path: Path
) -> None:
    made = picture.screenshot(browser, tmp_path)
    kept = picture.PICTURE.read_bytes()
    # Width and height in the header; the pixels depend on the machine's fonts.
    assert kept[:24] == made[:24]
    said = browser.ask("document.body.innerText")
    assert "n2" in said and "vm:100" in said
    assert browser.ask("document.documentElement.scrollHeight") >= picture.HEIGHT
    assert len(kept) < 200_000
