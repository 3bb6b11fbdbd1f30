# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module cluster_key: a key is made once, replaced as a whole, and told to nobody."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_key import (
    fingerprint,
    read_keys,
)
from ansible_collections.holdfast.ha.tests.unit.module_runner import run_failing, run_ok

FIRST, SECOND = "a" * 64, "b" * 64


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "etc" / "cluster.key"


def run(path: Path, *keys: str, check: bool = False) -> dict[str, Any]:
    given = {"keys": list(keys)} if keys else {}
    done: dict[str, Any] = run_ok("cluster_key", {"path": str(path), **given}, check, diff=True)
    return done


def test_a_key_is_made_once_for_its_owner_only(path: Path) -> None:
    told = run(path, check=True)
    assert (told["changed"], told["fingerprints"], path.exists()) == (True, [], False)
    made = run(path)
    assert made["changed"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert made["fingerprints"] == [fingerprint(key) for key in read_keys(path)]
    for check in (True, False):
        again = run(path, check=check)
        assert not again["changed"]
        assert again["fingerprints"] == made["fingerprints"]


def test_given_keys_replace_what_is_there_in_their_order(path: Path) -> None:
    run(path)
    for keys in ((FIRST,), (FIRST, SECOND), (SECOND, FIRST), (SECOND,)):
        told = run(path, *keys, check=True)
        done = run(path, *keys)
        assert told["diff"] == done["diff"]
        assert done["changed"]
        assert [key.hex() for key in read_keys(path)] == list(keys)
        assert not run(path, *keys)["changed"]
        assert not {FIRST, SECOND} & set(json.dumps([told, done]).split('"'))


@pytest.mark.parametrize("content", ["", "nonsense\n", FIRST[:-1] + "\n"])
def test_a_file_that_holds_no_key_is_replaced(path: Path, content: str) -> None:
    path.parent.mkdir()
    path.write_text(content)
    path.chmod(0o600)
    assert run(path)["changed"]
    assert len(read_keys(path)) == 1


def test_a_key_that_others_could_read_is_not_kept(path: Path) -> None:
    run(path, FIRST)
    path.chmod(0o644)
    assert run(path)["changed"]
    assert read_keys(path)[0].hex() != FIRST


@pytest.mark.parametrize(
    "keys", [["short"], [FIRST, FIRST], [FIRST, SECOND, "c" * 64], [FIRST.upper()], [""]]
)
def test_what_is_no_key_is_refused_without_telling_it(path: Path, keys: list[str]) -> None:
    message = run_failing("cluster_key", {"path": str(path), "keys": keys}, False)
    assert "64 hexadecimal digits" in message
    assert not any(key and key in message for key in keys)
    assert not path.exists()
