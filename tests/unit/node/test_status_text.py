# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status on a terminal: what an operator must be able to see at a glance, and to trust."""

from __future__ import annotations

import copy
import re

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    Failover,
    NodeState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report import wording
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.text import (
    render_failover,
    render_text,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.text import age
from ansible_collections.holdfast.ha.tests.unit.node import sample_status as sample
from hypothesis import given
from hypothesis import strategies as st


def plain(status, width=100):
    return render_text(status, colour=False, width=width)


def row_of(text, first_word):
    return next(line for line in text.splitlines() if line.startswith(first_word))


def table_below(text, heading):
    """The lines from the one that starts with *heading* to the next empty one."""
    lines = text.splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith(heading))
    end = next((i for i in range(begin, len(lines)) if not lines[i]), len(lines))
    return lines[begin:end]


def in_order(desired, shown):
    """Whether the words *desired* are among those *shown*, in their order; ";" may follow one."""
    rest = iter(shown)
    return all(any(word in (one, one.rstrip(";")) for one in rest) for word in desired)


def test_the_first_line_says_that_a_service_is_not_as_wanted():
    assert plain(sample.in_trouble()).splitlines()[0] == "Cluster demo: 4 errors, 2 warnings"


def test_what_a_disarm_waits_for_is_told():
    waits = "n2: it is offline and may start web again"
    status = sample.being_disarmed(waits)
    told = f"The cluster is not disarmed yet; it waits for {waits}."
    assert told in status["under_way"]
    assert told in " ".join(plain(status).split())


def test_a_disarmed_cluster_is_loud_and_says_who_asked_for_it_and_why():
    text = plain(sample.disarmed(Maintenance("new switches", "ada", sample.AT - 60)))
    loud = " ".join(text.split("\n\n")[1].split())
    assert loud.startswith(
        "? The cluster is disarmed (freeze) for 1m 0s by ada: new switches. Nothing is fenced,"
        " recovered, started or moved until the cluster is armed again."
    )


def test_each_problem_is_a_sentence_above_the_tables():
    status = sample.in_trouble()
    head = " ".join(plain(status).partition("NODE ")[0].split())
    assert status["problems"]
    for problem in status["problems"]:
        assert f"! {problem}" in head
        assert problem.endswith(".")


def test_a_service_whose_node_is_not_proved_dead_says_what_it_waits_for():
    assert (
        "Service db waits until the fencing of n2 is confirmed." in sample.in_trouble()["problems"]
    )


def test_a_service_that_is_not_as_wanted_says_how_it_is_wanted():
    status = sample.healthy()
    status["services"]["web"].update(state="started", wanted="stopped", reason="it was there last")
    (told,) = sample.with_problems(status)["problems"]
    assert told == "Service web is started, not stopped as configured: it was there last."


def test_a_fence_by_hand_that_failed_is_a_problem():
    status = sample.in_trouble()
    status["nodes"]["n3"]["maintenance"]["reason"] = "fenced: smoke (not proved off)"
    told = sample.with_problems(status)["problems"]
    assert any(one.startswith("Node n3 was to be fenced by hand, and may be on") for one in told)


def test_what_is_under_way_has_another_sign_than_a_problem():
    text = plain(sample.in_trouble())
    assert text.count("\n  ! ") == 4
    assert "\n  ~ Service vm:100 is being moved" in text


def test_a_secret_on_the_storage_is_a_warning_that_says_what_to_do():
    status = sample.healthy()
    status["services"]["web"]["inline_secrets"] = ["r0.password"]
    status = sample.with_problems(status)
    assert not status["problems"]
    told = " ".join(plain(status).split())
    assert "? Service web has r0.password with a secret on the shared storage: put it into" in told


def test_a_secret_file_that_a_node_lacks_is_a_problem_unless_the_node_is_off():
    status = sample.healthy()
    status["nodes"]["n2"]["secrets"] = {"web/r0/password_file": "it is another one"}
    (told,) = sample.with_problems(status)["problems"]
    assert told == "Node n2, service web, r0.password_file: it is another one."
    status["nodes"]["n2"].update(state="off", reason="")
    assert "password_file" not in str(sample.with_problems(status)["problems"])


def test_global_maintenance_is_loud_and_says_what_it_stops():
    text = plain(sample.on_hold(Maintenance("new switches", "ada", sample.AT - 60, sample.AT + 90)))
    assert "paused (global maintenance)" in text.splitlines()[0]
    loud = " ".join(text.split("\n\n")[1].split())
    assert loud == (
        "? The cluster is in global maintenance for 1m 0s by ada, until 2026-09-21T14:14:50Z"
        " (in 1m 30s): new switches."
        " Nothing is fenced, recovered, started or moved until global maintenance is ended."
        " next: holdfast resume"
    )


@pytest.mark.parametrize(
    ("hold", "sentence"),
    [
        (
            Maintenance("set on the whiteboard"),
            "The cluster is in global maintenance: set on the whiteboard.",
        ),
        (
            Maintenance("", "eve", sample.AT - 5),
            "The cluster is in global maintenance for 5s by eve.",
        ),
        (
            Maintenance("x\x1b[31my", "", 0.0, sample.AT - 5),
            "The cluster is in global maintenance, over since 2026-09-21T14:13:15Z and not ended by"
            " a manager yet: x [31my.",
        ),
    ],
)
def test_what_is_not_known_of_a_maintenance_is_left_out(hold, sentence):
    assert wording.held(sample.on_hold(hold)) == sentence
    assert wording.held(sample.healthy()) == ""


def test_a_cluster_without_a_manager_does_not_pass_for_well():
    status = sample.healthy()
    status["manager"] = {"node": "n1", "epoch": 7, "active": False}
    text = plain(sample.with_problems(status))
    assert text.startswith("Cluster demo: 1 error\n")
    assert "No manager (the last was n1, epoch 7)" in text


def test_a_manager_lease_of_which_nothing_is_known_passes_neither_for_held_nor_for_free():
    status = sample.healthy()
    status["manager"] = {"node": "n1", "epoch": 7, "active": None}
    text = plain(sample.with_problems(status))
    assert text.startswith("Cluster demo: 1 warning\n")
    assert "Manager perhaps n1, epoch 7" in text
    told = "It is not known on this node whether node n1 still holds the manager lease: "
    assert told in " ".join(text.split())


def test_the_embedded_backend_is_said_to_be_on_one_machine_and_a_real_one_is_not():
    status = sample.healthy()
    assert "all nodes are on this one machine" in plain(status)
    assert "one machine" not in plain({**status, "backend": "sanlock"})


def test_a_well_cluster_says_so_and_who_is_manager():
    text = plain(sample.healthy())
    assert text.startswith(
        "Cluster demo: healthy\n"
        "Manager n1, epoch 7; 3 nodes, 3 online; 3 services, 3 as configured\n"
        "As of 2026-09-21T14:13:20Z, configuration version 12\n"
    )
    assert "!" not in text


def test_a_service_on_a_node_that_is_being_fenced_is_not_counted_as_well():
    text = plain(sample.in_trouble())
    assert row_of(text, "db ").endswith("waits until the fencing of n2 is confirmed")
    assert "4 services, 1 as configured" in text


def test_a_service_on_a_silent_node_is_not_counted_as_well():
    status = sample.healthy()
    status["nodes"]["n1"]["state"] = "suspect"
    text = plain(status)
    assert "its node n1 is not online" in row_of(text, "db ")
    assert "3 services, 2 as configured" in text


def test_a_service_reported_by_two_nodes_is_said_in_its_row():
    status = sample.healthy()
    status["services"]["web"]["running_on"] = ["n1", "n3"]
    text = plain(sample.with_problems(status))
    assert "reported by n1 and n3" in row_of(text, "web ")
    assert "Service web is reported by n1 and n3." in text


@pytest.mark.parametrize("heading", ["NODE ", "SERVICE ", "LAST EVENTS "])
@pytest.mark.parametrize("make", [sample.in_trouble, sample.after_failover])
def test_columns_stand_under_their_headings(make, heading):
    lines = table_below(plain(make(), width=220), heading)
    starts = [match.start() for match in re.finditer(r"(?:(?<=  )|^)\S", lines[0])]
    ends = [match.end() for match in re.finditer(r"\S(?:(?=  )|$)", lines[0])]
    for line in lines[1:]:
        padded = f"{line:<220}"
        for start, end in zip(starts, ends):
            left = padded[start] != " " and padded[max(0, start - 2) : start].strip() == ""
            right = padded[end - 1] != " " and padded[end : end + 2].strip() == ""
            assert left or right or not padded[start:end].strip(), (line, lines[0][start:end])


def test_numbers_of_different_length_end_in_one_column():
    lines = table_below(plain(sample.after_failover(), width=220), "NODE ")
    end = lines[0].index("SCORE") + len("SCORE")
    assert [line[end - 5 : end] for line in lines[1:]] == [" 3400", "    0", " 3400"]


def test_a_moving_service_shows_where_from_and_where_to():
    assert "n3 -> n1" in row_of(plain(sample.in_trouble()), "vm:100 ")


def test_a_drained_node_shows_for_how_long_by_whom_and_why():
    row = " ".join(" ".join(table_below(plain(sample.in_trouble()), "NODE ")).split())
    assert "in maintenance for 1m 0s by ada: new memory" in row


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_no_reason_is_cut_short_and_no_line_is_longer_than_asked(width):
    status = sample.in_trouble()
    text = plain(status, width)
    shown = " ".join(table_below(text, "SERVICE ")).split()
    for service in status["services"].values():
        assert in_order(service["reason"].split(), shown)
    wide = [line for line in text.splitlines() if len(line) > width]
    if width >= 80:
        assert not wide
    assert all(not line.startswith("    ") for line in wide)


def test_the_timeline_counts_from_the_last_heartbeat_in_the_order_of_time():
    lines = render_failover(sample.after_failover()["failovers"][0])
    assert lines == [
        "Failover of n2: services run again after 6.45 s",
        "  0.00 s  last heartbeat of n2 (2026-09-21T14:12:40Z)",
        f"  3.10 s  suspected: {sample.SILENT}",
        "  3.30 s  fence sent",
        f"  4.85 s  confirmed dead: {sample.PROOF}",
        "  5.90 s  web started on n1",
        "  6.45 s  vm:100 started on n3",
    ]


@pytest.mark.parametrize(
    ("failover", "title", "last"),
    [
        (
            Failover("n2", "silent", 100.0, 103.1, 103.2, services=("db",)),
            "under way",
            "...  no proof that it is dead yet: nothing is recovered without one",
        ),
        (
            Failover("n2", "silent", 100.0, 103.1, 103.2, 103.3, 104.0, "off", ("db",)),
            "under way",
            "...  still to start: db",
        ),
        (
            Failover("n2", "s", 100.0, 103.0, 103.0, 0.0, 104.0, "off", ("a", "b"),
                     {"a": ("n1", 105.0)}, 106.0),
            "1 of 2 services run again",
            "6.00 s  over: 1 of 2 services run again; not started: b",
        ),
        (
            Failover("n2", "s", 100.0, 103.0, 103.0, proof="none: its heartbeat came back",
                     services=("a",), finished=107.0),
            "called off after 7.00 s",
            "7.00 s  called off: its heartbeat came back",
        ),
        (
            Failover("n2", "s", 100.0, 103.0, 103.0, 0.0, 104.0, "lease ran out", finished=104.0),
            "confirmed dead after 4.00 s, no services on it",
            "4.00 s  over: no services were on it",
        ),
    ],
    ids=["no proof", "starting", "one missing", "false alarm", "empty node"],
)  # fmt: skip
def test_a_timeline_says_how_it_ended_or_what_is_awaited(failover, title, last):
    lines = render_failover(sample.failover_data(failover))
    assert lines[0] == f"Failover of n2: {title}"
    assert lines[-1].strip() == last


def test_a_failover_under_way_is_shown_and_an_older_one_that_is_over_is_not():
    text = plain(sample.in_trouble())
    assert text.count("Failover of n2") == 1
    assert "Failover of n2: under way" in text


def test_only_the_last_events_are_shown_the_newest_at_the_bottom():
    status = sample.healthy()
    status["events"] = [
        {"at": sample.AT - 100 + i, "kind": "note", "node": "n1", "service": "", "text": f"e{i}."}
        for i in range(30)
    ]
    shown = re.findall(r"e\d+\.", plain(status))
    assert shown == [f"e{i}." for i in range(20, 30)]


def test_colour_is_on_state_words_only_and_changes_no_other_character():
    status = sample.in_trouble()
    coloured = render_text(status, colour=True)
    assert re.sub(r"\x1b\[\d+m", "", coloured) == plain(status)
    painted = set(re.findall(r"\x1b\[3[123]m(.*?)\x1b\[0m", coloured))
    states = {one.value for one in (*NodeState, *ServiceState)} | {"live", "fail", "dead"}
    assert painted - states == {"4 errors, 2 warnings"}


@pytest.mark.parametrize(
    ("word", "code"), [("online", "32"), ("unknown", "33"), ("fence", "31"), ("error", "31")]
)
def test_a_state_has_the_colour_of_how_it_is_to_be_taken(word, code):
    assert f"\x1b[{code}m{word}\x1b[0m" in render_text(sample.in_trouble(), colour=True)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-5, "0s"), (0.9, "0s"), (59.9, "59s"), (192, "3m 12s"), (3600, "1h 0m"), (90061, "1d 1h")],
)
def test_an_age_has_two_units_and_is_never_negative(seconds, shown):
    assert age(seconds) == shown


@given(st.text(), st.sampled_from(["reason", "proof", "problem"]))
def test_nothing_an_agent_printed_can_drive_the_terminal(text, key):
    status = copy.deepcopy(sample.healthy())
    status["nodes"]["n2"][key] = f"\x1b[2J{text}\u202e\r\n"
    shown = plain(sample.with_problems(status))
    assert all(one.isprintable() or one == "\n" for one in shown)


def test_a_cluster_without_services_and_history_is_told_too():
    status = sample.healthy()
    status.update(services={}, events=[], failovers=[])
    for node in status["nodes"].values():
        node["services"] = []
    text = plain(status)
    assert "no services declared" in text
    assert text.endswith("No services are declared yet.\n")
