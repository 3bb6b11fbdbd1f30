# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status page: well-formed, in need of nothing, harmless, and readable by all."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.policy import (
    Policy,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    Failover,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.forecast.rebalance import (  # noqa: E501
    Rebalance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report import (
    page_plan,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report import (
    page_style as style,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.page import (
    FAILOVERS_OPEN,
    MARKS_SHOWN,
    render_page,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.page_html import (  # noqa: E501
    STARTS_DRAWN,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.page_plan import (  # noqa: E501
    NODES_OPEN,
)
from ansible_collections.holdfast.ha.tests.unit.node import sample_status as sample
from hypothesis import given, settings
from hypothesis import strategies as st

VOID = {"meta", "rect", "br", "link", "img", "input", "hr"}
ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "header", "main", "footer", "section"),
    *("article", "figure", "details", "summary", "h1", "h2", "h3", "p", "div", "span", "strong"),
    *("time", "ul", "li", "dl", "dt", "dd", "table", "caption", "thead", "tbody", "tr", "th"),
    *("td", "svg", "text", "rect", "a", "code"),
}

MAKERS = [sample.healthy, sample.after_failover, sample.in_trouble]


class Page(HTMLParser):
    """A page taken apart: its elements with their attributes and all text in them."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.open, self.elements, self.text = [], [], ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        element = {"tag": tag, "text": "", "inside": [one["tag"] for one in self.open]}
        element.update({f"@{key}": value for key, value in attrs})
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attrs):
        assert tag in VOID
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop()["tag"] == tag

    def handle_data(self, data):
        self.text += data
        for element in self.open:
            element["text"] += data

    def all(self, tag, css_class=None):
        return [
            one
            for one in self.elements
            if one["tag"] == tag and (not css_class or css_class in one.get("@class", "").split())
        ]


def with_text_everywhere(value, text):
    """The same data with *text* added to each string in it, keys that are names included."""
    if isinstance(value, str):
        return value + text
    if isinstance(value, list):
        return [with_text_everywhere(one, text) for one in value]
    if isinstance(value, dict):
        fixed = set(sample.healthy()) | {
            *("state", "node", "nodes", "services", "epoch", "active", "seconds", "started"),
        }
        named = value and all(isinstance(one, dict) for one in value.values())
        named = named and not fixed & set(value)
        return {
            (key + text if named else key): with_text_everywhere(one, text)
            for key, one in value.items()
        }
    return value


@pytest.mark.parametrize("make", MAKERS)
def test_every_element_is_known_and_closed_in_its_place(make):
    page = Page(render_page(make()))
    assert page.open == []
    assert {one["tag"] for one in page.elements} <= ALLOWED


@pytest.mark.parametrize("make", MAKERS)
def test_the_page_needs_nothing_from_anywhere(make):
    source = render_page(make())
    assert "://" not in source
    assert not re.search(r"url\(|@import|<script|<link|<img|\son\w+=", source)
    assert "default-src 'none'" in source


@pytest.mark.parametrize(
    "hostile",
    ["<script>alert(1)</script>", '"><svg onload=alert(1)>', "' onmouseover='x", "</style><b>"],
)
@pytest.mark.parametrize("make", MAKERS)
def test_markup_in_any_name_or_reason_is_shown_as_text(make, hostile):
    page = Page(render_page(with_text_everywhere(make(), hostile)))
    assert page.open == []
    assert {one["tag"] for one in page.elements} <= ALLOWED
    assert not [key for one in page.elements for key in one if key.startswith("@on")]
    assert hostile in page.text


@settings(max_examples=30)
@given(st.text(max_size=30))
def test_no_text_whatever_breaks_the_page(text):
    page = Page(render_page(with_text_everywhere(sample.in_trouble(), text)))
    assert page.open == []
    assert {one["tag"] for one in page.elements} <= ALLOWED
    page.text.encode("utf-8")


@pytest.mark.parametrize("make", MAKERS)
def test_every_node_is_a_card_that_holds_its_services(make):
    status = make()
    cards = {card["text"]: card for card in Page(render_page(status)).all("li", "card")}
    for name, node in status["nodes"].items():
        card = next(text for text in cards if text.startswith(name))
        for service_id in node["services"]:
            assert service_id in card
        assert node["state"] in card


def test_services_that_are_on_no_node_have_a_place_too():
    cards = Page(render_page(sample.in_trouble())).all("li", "card")
    aside = next(card["text"] for card in cards if card["text"].startswith("On no node"))
    assert "mail" in aside
    assert "old" in aside
    assert "db" not in aside


@pytest.mark.parametrize("make", MAKERS)
def test_every_service_has_a_row_with_its_reason(make):
    status = make()
    text = Page(render_page(status)).text
    heads = [one["text"] for one in Page(render_page(status)).all("th") if one["@scope"] == "row"]
    for service_id, service in status["services"].items():
        assert service_id in heads
        assert service["reason"] in text


def test_all_leases_are_listed_with_holder_and_version():
    rows = [row["text"] for row in Page(render_page(sample.in_trouble())).all("tr")]
    assert "manager leasen1heldepoch 7" in rows
    assert "configuration leasen1 (the last)not heldversion 12" in rows
    assert "host lease 2n2failgeneration 35002" in rows


def test_the_verdict_and_each_problem_are_in_the_header():
    status = sample.in_trouble()
    header = Page(render_page(status)).all("header")[0]["text"]
    assert "4 errors, 2 warnings" in header
    assert all(problem in header for problem in status["problems"])


def test_global_maintenance_is_a_warning_only_while_it_holds():
    status = sample.healthy()
    assert not Page(render_page(status)).all("ul", "warnings")
    hold = Maintenance("<b>new</b> switches", "ada", sample.AT - 60, sample.AT + 90)
    (warnings,) = Page(render_page(sample.on_hold(hold))).all("ul", "warnings")
    assert "Nothing is fenced" in warnings["text"]
    assert "until 2026-09-21T14:14:50Z (in 1m 30s): <b>new</b> switches." in warnings["text"]


def test_a_disarmed_cluster_is_a_warning_that_says_who_asked_for_it_and_why():
    by = Maintenance("<b>new</b> switches", "ada", sample.AT - 60)
    (warnings,) = Page(render_page(sample.disarmed(by))).all("ul", "warnings")
    assert "for 1m 0s by ada: <b>new</b> switches. Nothing is fenced" in warnings["text"]


def test_times_are_utc_and_the_moment_of_the_page_is_stated():
    page = Page(render_page(sample.after_failover()))
    assert "As of 2026-09-21T14:13:20Z" in page.text
    assert "does not refresh itself" in page.text
    for one in page.all("time"):
        assert one["@datetime"] == one["text"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", one["text"])


def test_a_failover_is_a_picture_on_one_scale_with_its_seconds():
    page = Page(render_page(sample.after_failover()))
    bars = [one for one in page.all("rect") if one["@class"] != "track"]
    assert [one["@class"] for one in bars] == ["detect", "fence", "start", "start"]
    spans = [(float(one["@x"][:-1]), float(one["@width"][:-1])) for one in bars]
    assert spans[0] == (0.0, pytest.approx(3.21 / 6.45 * 100, abs=0.01))
    assert spans[1][0] == pytest.approx(sum(spans[0]), abs=0.02)
    assert sum(spans[-1]) == pytest.approx(100, abs=0.02)
    assert {"3.21 s", "1.64 s", "1.05 s", "1.60 s"} <= {one["text"] for one in page.all("text")}


def test_who_cannot_see_the_picture_gets_a_label_and_the_table_of_steps():
    page = Page(render_page(sample.after_failover()))
    label = page.all("svg")[0]["@aria-label"]
    assert label == (
        "Failover of n2, 6.45 s in all: Detection 3.21 s, Fence until proof 1.64 s,"
        " Start of web on n1 1.05 s, Start of vm:100 on n3 1.60 s"
    )
    assert page.all("svg")[0]["@role"] == "img"
    article = page.all("article")[0]["text"]
    assert "4.85 s" in article
    assert f"confirmed dead: {sample.PROOF}" in article


def test_a_failover_under_way_is_drawn_up_to_now():
    page = Page(render_page(sample.in_trouble()))
    assert "Fence, no proof yet 91.80 s so far" in page.all("svg")[1]["@aria-label"]


@pytest.mark.parametrize("skew", [-3.0, 0.0, 500.0])
def test_clocks_that_differ_never_draw_a_bar_outside_the_picture(skew):
    failover = Failover(
        "n2", "s", 100.0, 103.0, 103.0, 103.1, 104.0, "off", ("a",), {"a": ("n1", 104.0 + skew)}
    )
    status = {**sample.healthy(at=110.0), "failovers": [sample.failover_data(failover)]}
    page = Page(render_page(status))
    assert " -" not in page.all("svg")[0]["@aria-label"]
    for stroke in page.all("rect"):
        begin = float(stroke["@x"].rstrip("%"))
        assert begin >= 0
        assert begin + float(stroke["@width"].rstrip("%")) <= 100.01


def test_of_very_many_services_the_picture_is_short_and_the_table_whole():
    names = tuple(f"vm:{number}" for number in range(100, 200))
    started = {name: ("n1", 105.0 + place) for place, name in enumerate(names)}
    failover = Failover("n2", "s", 100.0, 103.0, 103.0, 103.1, 104.0, "off", names, started, 210.0)
    status = {**sample.healthy(at=300.0), "failovers": [sample.failover_data(failover)]}
    page = Page(render_page(status))
    assert len(page.all("rect")) == 2 * (STARTS_DRAWN + 2)
    assert "vm:199" in page.all("svg")[0]["text"]
    assert all(f"{name} started on n1" in page.text for name in names)


def test_older_failovers_wait_behind_a_click():
    status = sample.after_failover()
    status["failovers"] = status["failovers"] * (FAILOVERS_OPEN + 2)
    page = Page(render_page(status))
    hidden = [one for one in page.all("article") if "details" in one["inside"]]
    assert len(hidden) == 2
    assert len(page.all("article")) == FAILOVERS_OPEN + 2


@pytest.mark.parametrize("make", MAKERS)
def test_headings_tables_and_language_are_said_to_screen_readers(make):
    page = Page(render_page(make()))
    assert page.all("html")[0]["@lang"] == "en"
    assert len(page.all("h1")) == 1
    levels = [int(one["tag"][1]) for one in page.elements if re.fullmatch("h[1-6]", one["tag"])]
    assert all(after - before <= 1 for before, after in zip(levels, levels[1:]))
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(one["@scope"] in ("row", "col") for one in page.all("th"))
    assert all(one["@aria-label"] for one in page.all("svg"))


def test_a_wide_table_keeps_its_roles_when_it_becomes_a_list():
    page = Page(render_page(sample.in_trouble()))
    for table in page.all("table", "wide"):
        assert table["@role"] == "table"
    cells = [one for one in page.all("td") if "@data-label" in one]
    assert cells
    assert all(one["@role"] == "cell" and one["@data-label"] for one in cells)


def test_the_page_is_made_for_narrow_screens_and_for_both_colour_schemes():
    source = render_page(sample.healthy())
    assert 'name="viewport" content="width=device-width' in source
    assert "@media (max-width: 760px)" in source
    assert "@media (prefers-color-scheme: dark)" in source


def contrast(one, other):
    """The contrast ratio of two colours as WCAG 2.2 defines it."""

    def luminance(colour):
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
                  for part in parts]  # fmt: skip
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


TEXT_ON_GROUND = (
    ("text", "ground"),
    ("text", "surface"),
    ("text", "sunken"),
    ("text", "warn-ground"),
    ("text", "bad-ground"),
    ("muted", "ground"),
    ("muted", "surface"),
    ("good", "good-ground"),
    ("warn", "warn-ground"),
    ("bad", "bad-ground"),
    ("quiet", "quiet-ground"),
)
"""Each text colour with each ground that the style sheet puts it on."""

BAR_ON_TRACK = (("detect", "sunken"), ("fence", "sunken"), ("start", "sunken"))
"""Each bar of a timeline with the track that it lies in."""


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_every_text_and_every_bar_can_be_told_from_its_ground(scheme):
    colours = {name: values[scheme] for name, values in style.COLOURS.items()}
    for text, ground in TEXT_ON_GROUND:
        assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for stroke, track in BAR_ON_TRACK:
        assert contrast(colours[stroke], colours[track]) >= 3, (stroke, track)


def test_every_colour_that_the_rules_use_is_defined_in_both_schemes():
    used = set(re.findall(r"var\(--([\w-]+)\)", style.style_sheet()))
    assert used == set(style.COLOURS)


@pytest.mark.parametrize("make", MAKERS)
def test_the_map_has_a_tile_for_each_node_and_a_mark_for_each_service(make):
    status = make()
    page = Page(render_page(status))
    tiles = [one for one in page.elements if one.get("@class", "").startswith("tile is-")]
    assert len(tiles) == len(status["nodes"])
    leads = {one["@href"] for one in page.all("a")}
    assert leads == {f"#node-{name}" for name in status["nodes"]}
    assert leads == {f"#{one['@id']}" for one in page.all("li") if "@id" in one}
    titles = [one["@title"] for one in page.all("span") if "@title" in one]
    moving = sum(
        1 for one in status["services"].values() if one["target"] and one["state"] == "migrate"
    )
    assert len(titles) == len(status["services"]) + moving
    for name in status["services"]:
        assert any(title.startswith(f"{name}: ") for title in titles)


def test_of_very_many_services_on_a_node_the_tile_shows_the_worst():
    status = sample.healthy()
    services = {f"s{n}": dict(status["services"]["db"]) for n in range(200)}
    services["s150"]["state"] = "error"
    status["services"] = services
    status["nodes"]["n1"]["services"] = list(services)
    for name in ("n2", "n3"):
        status["nodes"][name]["services"] = []
    page = Page(render_page(status))
    titles = [one["@title"] for one in page.all("span") if "@title" in one]
    assert len(titles) == MARKS_SHOWN
    assert titles[0].startswith("s150: error")
    assert f"+{200 - MARKS_SHOWN}" in page.text
    assert "200 services: 1 in trouble, 199 as configured" in page.text


def test_each_mark_says_by_a_sign_what_its_colour_says():
    page = Page(render_page(sample.in_trouble()))
    marks = {one["@class"]: one["text"] for one in page.all("span") if "@title" in one}
    assert marks == {"mark warn": "~", "mark bad": "!", "mark quiet": "-"}


def test_the_last_failovers_are_compared_on_one_scale():
    status = sample.healthy()
    slow = sample.failover_data(sample.finished_failover(sample.AT - 500))
    slow["started"]["web"]["seconds"] = 12.9
    status["failovers"] = [slow, sample.failover_data(sample.finished_failover(sample.AT - 90))]
    page = Page(render_page(status))
    picture = page.all("svg")[0]
    assert picture["@aria-label"].startswith("The last failovers: n2, ")
    bars = [
        (one["@class"], float(one["@x"].rstrip("%")), float(one["@width"].rstrip("%")))
        for one in page.all("rect")
        if "figure" in one["inside"] and "article" not in one["inside"]
    ]
    newest, oldest = bars[1:4], bars[5:8]
    assert [kind for kind, _x, _width in newest] == ["detect", "fence", "start"]
    assert oldest[-1][1] + oldest[-1][2] == pytest.approx(100.0, abs=0.02)
    assert newest[-1][1] + newest[-1][2] == pytest.approx(50.0, abs=0.1)
    for (_kind, x, width), (_next, after, _width) in zip(newest, newest[1:]):
        assert after == pytest.approx(x + width, abs=0.02)


def test_one_failover_alone_is_not_compared():
    assert 'class="sheet overview"' not in render_page(sample.after_failover())


def test_a_kept_page_allows_its_own_script_and_no_other():
    source = render_page(sample.healthy(), refresh=10.0)
    (script,) = re.findall(r"<script>(.*?)</script>", source, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in source
    assert "<script" not in render_page(sample.healthy())
    assert "script-src" not in render_page(sample.healthy())


def test_the_browser_itself_loads_a_kept_page_again_only_where_no_script_may_and_less_often():
    source = render_page(sample.healthy(), refresh=2.0)
    assert source.count('http-equiv="refresh"') == 1
    assert '<noscript><meta http-equiv="refresh" content="60"></noscript>' in source
    assert 'content="300"></noscript>' in render_page(sample.healthy(), refresh=30.0)
    assert 'http-equiv="refresh"' not in render_page(sample.healthy())


def test_a_kept_page_has_a_button_that_says_whether_it_is_pressed():
    page = Page(render_page(sample.healthy(), refresh=2.0))
    (button,) = page.all("button")
    assert (button["text"], button["@type"], button["@aria-pressed"]) == (
        "Pause",
        "button",
        "false",
    )
    assert Page(render_page(sample.healthy())).all("button") == []


def plan_section(status, plan):
    """The text of the plan's section, and the section taken apart."""
    source = render_page(status, plan=plan)
    begin = source.index("<h2>Plan of a rebalance</h2>")
    page = Page(source[begin : source.index("</section>", begin)])
    return page.text.partition("Plan of a rebalance\n")[2], page


def test_the_plan_of_a_rebalance_has_the_imbalance_now_and_then_and_its_steps_with_reasons():
    text, page = plan_section(sample.uneven(), sample.plan())
    assert "2 steps would bring the imbalance from 1.08 to 0.00; 0 is even." in text
    assert "The load of a node is the number of its services." in text
    assert [one["text"] for one in page.all("caption")] == [
        "Services now and after the rebalance, of each node",
        "Steps of the rebalance, in this order",
    ]
    heads = [one["text"] for one in page.all("th") if one["@scope"] == "row"]
    assert heads == ["n1", "n2", "n3", "1. db, web", "2. mail"]
    told = [row["text"] for row in page.all("tr")]
    assert told[1:4] == [
        "n15 services2 services",
        "n21 service2 services",
        "n30 services2 services",
    ]
    assert told[5] == (
        "1. db, webn1n30.41n1 has 5 services, n3 has 0; they are kept together, so they move as one"
    )
    assert told[6] == "2. mailn1n20.00n1 has 3 services, n2 has 1"
    assert "None of it happens by itself" in text


def test_each_bar_of_the_plan_is_on_one_scale_and_left_out_for_who_reads_its_words():
    _text, page = plan_section(sample.uneven(), sample.plan())
    assert all(one["@aria-hidden"] == "true" for one in page.all("span", "bar"))
    bars = [(one["@class"], one["@style"]) for one in page.all("span") if "@style" in one]
    assert bars == [
        ("now", "width:100.00%"),
        ("then", "width:40.00%"),
        ("now", "width:20.00%"),
        ("then", "width:40.00%"),
        ("now", "width:0.00%"),
        ("then", "width:40.00%"),
    ]


ROOM = dict.fromkeys(("n1", "n2", "n3"), (8.0, 16384.0))
NEEDS = dict.fromkeys(("db", "mail", "vm:100", "vm:300", "web"), (1.0, 2048.0))


@pytest.mark.parametrize("placement", ["load", "score"])
def test_a_plan_by_load_shows_what_is_taken_of_cpu_and_memory(placement):
    policy = Policy(placement=placement, rebalance=True)
    plan = sample.plan(policy=policy, needs=NEEDS, room=ROOM)
    text, page = plan_section(sample.uneven(), plan)
    told = [row["text"] for row in page.all("tr")]
    assert told[1] == ("n162% (5 of 8 CPUs, 10 of 16 GiB)25% (2 of 8 CPUs, 4 of 16 GiB)")
    assert "n1 is 62% taken, n3 0%; they are kept together" in text
    assert "it moves 4 GiB of memory, and the imbalance falls by 0." in text
    assert "1 service does not declare what it needs and counts as nothing." in text
    assert "The manager makes such moves by itself" in text


def test_a_plan_that_moves_nothing_is_one_sentence():
    even = sample.plan(policy=Policy(rebalance_threshold=2.0))
    text, page = plan_section(sample.uneven(), even)
    assert text.strip() == (
        "Nothing would be moved: the imbalance is 1.08, and only above 2.00 a move is sought."
    )
    assert page.all("table") == []
    held_fast = sample.plan(policy=Policy(rebalance_margin=1.0), together=tuple(NEEDS))
    assert plan_section(sample.uneven(), held_fast)[0].strip() == (
        "Nothing would be moved: the imbalance is 1.08, but no move that rules and room allow"
        " takes away 100% of it."
    )


def test_nothing_would_be_moved_while_the_cluster_is_held_or_disarmed_or_without_a_manager():
    plan = sample.plan()
    held = {**sample.uneven(), "global_maintenance": True}
    assert plan_section(held, plan)[0].startswith("Nothing would be moved now. Nothing is fenced")
    assert "until the cluster is armed again" in plan_section(sample.disarmed(), plan)[0]
    alone = sample.uneven()
    alone["manager"]["active"] = False
    text, page = plan_section(alone, plan)
    assert text.strip() == "Nothing would be moved now: no node holds the manager lease."
    assert page.all("table") == []


def test_a_page_made_from_a_status_alone_says_that_it_has_no_plan():
    text, page = plan_section(sample.uneven(), None)
    assert text.startswith("This page was made from a status document")
    assert page.all("table") == []


def test_a_plan_that_is_left_out_says_why():
    plan = sample.plan(policy=Policy(placement="load"), needs=NEEDS, room={"n1": (8.0, 1.0)})
    assert plan_section(sample.uneven(), plan)[0].strip() == (
        "The plan is left out. Node n2 does not say how much CPU and memory it has, by which the"
        " policy compares nodes (placement=load)."
    )


def test_of_many_nodes_the_plan_shows_those_that_change_most_and_the_rest_on_a_click(monkeypatch):
    names = [f"n{number}" for number in range(1, NODES_OPEN + 2)]
    state = sample.uneven_state(names)
    plan = sample.plan(state)
    _text, page = plan_section(sample.build(state), plan)
    changed = {name for one in plan.steps for name in (one.step.source, one.step.target)}
    heads = [one for one in page.all("th") if one["@scope"] == "row"]
    folded = {one["text"] for one in heads if "details" in one["inside"]}
    assert {one["text"] for one in heads} >= set(names)
    assert folded == set(names) - changed
    assert page.all("summary")[0]["text"] == f"Nodes that stay as now: {len(folded)}"
    monkeypatch.setattr(page_plan, "NODES_OPEN", 1)
    _text, page = plan_section(sample.build(state), plan)
    heads = [one for one in page.all("th") if one["@scope"] == "row"]
    folded = {one["text"] for one in heads if "details" in one["inside"]}
    assert folded == set(names) - {"n1"}
    assert page.all("summary")[0]["text"] == f"Other nodes that change: {len(changed) - 1}"


def test_nodes_that_take_nothing_now_are_named_beside_the_plan():
    status = sample.uneven()
    status["nodes"]["n4"] = {**status["nodes"]["n3"], "services": []}
    assert "nothing can be moved there now: n4." in plan_section(status, sample.plan())[0]


@pytest.mark.parametrize("hostile", ["<script>alert(1)</script>", '"><svg onload=alert(1)>'])
def test_markup_in_a_name_of_the_plan_is_shown_as_text(hostile):
    state = sample.uneven_state([f"n1{hostile}", f"n2{hostile}"])
    services = {
        f"{key}{hostile}": replace(one, node=f"{one.node}{hostile}")
        for key, one in state.services.items()
    }
    state = replace(state, services=services)
    text, page = plan_section(sample.build(state), sample.plan(state, together=()))
    assert text.count(f"n1{hostile}") >= 3
    assert {one["tag"] for one in page.elements} <= ALLOWED
    left_out = Rebalance(left_out=f"It says {hostile}.")
    assert f"It says {hostile}." in plan_section(sample.uneven(), left_out)[0]
