# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A message reaches the journal with its fields, and standard error where there is no journal."""

from __future__ import annotations

import os
import socket
import struct

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node import log as log_module
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.log import (
    log,
    name_daemon,
)


@pytest.fixture
def journal(tmp_path, monkeypatch):
    """A journal that standard error leads to; returns the socket at which it is told."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(log_module, "JOURNAL", "journal")
    monkeypatch.setattr(log_module, "_common", {})
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
    text = b"a\nHOLDFAST_SERVICE=other"
    expected = b"HOLDFAST_REASON\n" + struct.pack("<Q", len(text)) + text + b"\n"
    assert journal.recv(4096).endswith(expected)


@pytest.mark.parametrize("how", ["no journal", "a redirected stream", "a journal that is gone"])
def test_without_a_journal_a_line_goes_to_standard_error(journal, monkeypatch, capfd, how):
    if how == "no journal":
        monkeypatch.delenv("JOURNAL_STREAM")
    elif how == "a redirected stream":
        monkeypatch.setenv("JOURNAL_STREAM", "1:1")
    else:
        found = os.fstat(2)
        monkeypatch.setenv("JOURNAL_STREAM", f"{found.st_dev}:{found.st_ino}")
        monkeypatch.setattr(log_module, "JOURNAL", "/no/such/journal")
    log("hello", service="web")
    assert capfd.readouterr().err.endswith(" hello\n")
