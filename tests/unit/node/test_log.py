# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A message reaches the journal with its fields, and standard error where there is no journal."""

from __future__ import annotations

import errno
import os
import socket
import struct

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node import log as node_log
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.log import (
    AGAIN,
    OVER,
    Repeating,
    log,
    name_daemon,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import Clock


@pytest.fixture
def journal(tmp_path, monkeypatch):
    """A journal that standard error leads to; returns the socket at which it is told."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(node_log, "JOURNAL", "journal")
    monkeypatch.setattr(node_log, "_common", {})
    found = os.fstat(2)
    monkeypatch.setenv("JOURNAL_STREAM", f"{found.st_dev}:{found.st_ino}")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind("journal")
        channel.setblocking(False)
        yield channel


def test_a_message_is_found_by_what_it_is_about(journal):
    name_daemon("lrm", "n1")
    log("start web 7.1", service="web", uid="7.1", epoch=7, reason="", node="")
    assert journal.recv(4096).splitlines() == [
        b"MESSAGE=start web 7.1",
        b"PRIORITY=6",
        b"SYSLOG_IDENTIFIER=holdfast-lrm",
        b"HOLDFAST_NODE=n1",
        b"HOLDFAST_SERVICE=web",
        b"HOLDFAST_UID=7.1",
        b"HOLDFAST_EPOCH=7",
    ]


def test_what_an_agent_said_cannot_add_a_field_of_its_own(journal):
    log("it failed", reason="a\nHOLDFAST_SERVICE=other")
    assert journal.recv(4096).endswith(b"\nHOLDFAST_REASON=a HOLDFAST_SERVICE=other\n")
    text = b"a\nHOLDFAST_SERVICE=other"
    expected = b"HOLDFAST_REASON\n" + struct.pack("<Q", len(text)) + text + b"\n"
    assert node_log._field("HOLDFAST_REASON", text.decode()) == expected


@pytest.mark.parametrize("how", ["no journal", "a redirected stream", "a journal that is gone"])
def test_without_a_journal_a_line_goes_to_standard_error(journal, monkeypatch, capfd, how):
    if how == "no journal":
        monkeypatch.delenv("JOURNAL_STREAM")
    elif how == "a redirected stream":
        monkeypatch.setenv("JOURNAL_STREAM", "1:1")
    else:
        found = os.fstat(2)
        monkeypatch.setenv("JOURNAL_STREAM", f"{found.st_dev}:{found.st_ino}")
        monkeypatch.setattr(node_log, "JOURNAL", "/no/such/journal")
    log("hello", service="web")
    assert capfd.readouterr().err.endswith(" hello\n")


@pytest.fixture
def clock():
    return Clock()


def test_what_is_met_all_night_is_said_at_once_and_then_now_and_then(clock, capsys):
    repeating = Repeating(clock)
    for _half_second in range(8 * 3600 * 2):
        repeating.log("round without result: no answer")
        repeating.log(f"the host lease was not renewed for {clock.now:.0f} s")
        clock.go(0.5)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 * 8 * 3600 / AGAIN
    assert lines[2].endswith("round without result: no answer (1200 times since this was said)")


def test_another_trouble_is_said_at_once_and_so_is_one_that_was_over(clock, capsys):
    repeating = Repeating(clock)
    met = ["no answer", "read-only", "no answer", "read-only"]
    for trouble in met:
        repeating.log(trouble)
        clock.go(OVER / 4)
    clock.go(OVER)
    repeating.log("no answer")
    repeating.forget()
    repeating.log("no answer")
    said = [line.split(maxsplit=2)[2] for line in capsys.readouterr().err.splitlines()]
    assert said == ["no answer", "read-only", "no answer", "no answer"]


def test_the_same_of_another_node_is_another_message(clock, capsys):
    repeating = Repeating(clock)
    for node in ("n3", "n4"):
        repeating.log(f"host lease of {node} not set free yet", node=node)
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_a_journal_that_hangs_loses_messages_and_holds_nobody_up(journal, monkeypatch, capfd):
    """Its stream, to which a daemon's standard error leads, would block once it is full."""
    found = os.fstat(2)
    monkeypatch.setenv("JOURNAL_STREAM", f"{found.st_dev}:{found.st_ino}")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.setblocking(False)
        with pytest.raises(BlockingIOError):
            while True:
                other.sendto(b"MESSAGE=of another\n", "journal")
    log("lost")
    assert capfd.readouterr().err == ""
    journal.recv(4096)
    log("taken")
    messages = []
    with pytest.raises(BlockingIOError):
        while True:
            messages.append(journal.recv(4096).splitlines()[0])
    assert messages[-1] == b"MESSAGE=taken"
    assert b"MESSAGE=lost" not in messages


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EPIPE, errno.EIO])
def test_a_log_that_cannot_be_written_ends_no_daemon(monkeypatch, number):
    class Full:
        tried = 0

        def write(self, _text):
            self.tried += 1
            raise OSError(number, "not now")

    monkeypatch.setattr("sys.stderr", Full())
    monkeypatch.delenv("JOURNAL_STREAM", raising=False)
    log("started")
    assert node_log.sys.stderr.tried == 1
