# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file of the cluster key: only root's is used, and a daemon follows its changes."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import StorageError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_key import (
    ClusterKey,
    fingerprint,
    keys_text,
    make_key,
    parse_keys,
    read_keys,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_storage import (
    ClusterStorage,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import (
    NodeConfiguration,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.authentication import (
    KEY_BYTES,
    Policy,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import configuration

FIRST, SECOND = b"1" * KEY_BYTES, b"2" * KEY_BYTES


def put(path: Path, text: str, mode: int = 0o600) -> None:
    """Replace the file as a whole, as those who distribute keys do."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.chmod(mode)
    new.replace(path)


@pytest.fixture
def node(tmp_path: Path) -> NodeConfiguration:
    path = tmp_path / "cluster.key"
    put(path, keys_text([FIRST]))
    return replace(configuration(tmp_path), authentication=Policy.ENFORCE, cluster_key=path)


def test_a_new_key_is_random_and_has_a_name_that_does_not_tell_it() -> None:
    first, second = make_key(), make_key()
    assert first != second
    assert len(first) == KEY_BYTES
    assert fingerprint(first) != fingerprint(second)
    assert first.hex() not in fingerprint(first)


def test_keys_come_back_from_their_text() -> None:
    assert parse_keys(keys_text([FIRST]), "x") == (FIRST,)
    assert parse_keys(keys_text([FIRST, SECOND]), "x") == (FIRST, SECOND)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing\n",
        FIRST.hex()[:-1],
        FIRST.hex() + "0",
        FIRST.hex().upper().replace("3", "A"),
        "\n".join([FIRST.hex(), FIRST.hex()]),
        "\n".join([FIRST.hex(), SECOND.hex(), "3" * 64]),
        FIRST.hex() + " " + SECOND.hex(),
        "secret",
    ],
)
def test_what_is_no_key_is_refused_without_telling_it(text: str) -> None:
    with pytest.raises(StorageError) as caught:
        parse_keys(text, "/etc/holdfast/cluster.key")
    assert "/etc/holdfast/cluster.key" in str(caught.value)
    assert FIRST.hex()[:8] not in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_a_key_that_others_can_read_is_not_used(node: NodeConfiguration, mode: int) -> None:
    node.cluster_key.chmod(mode)
    with pytest.raises(StorageError, match="0600"):
        ClusterKey(node)


def test_without_a_key_nothing_begins_unless_the_policy_is_off(node: NodeConfiguration) -> None:
    node.cluster_key.unlink()
    for policy in (Policy.WARN, Policy.ENFORCE):
        with pytest.raises(StorageError, match="cluster key"):
            ClusterStorage(replace(node, authentication=policy))
    authentication = ClusterKey(replace(node, authentication=Policy.OFF)).authentication()
    assert not authentication.signs


def test_a_key_file_that_is_a_pipe_or_endless_is_refused_at_once(node: NodeConfiguration) -> None:
    node.cluster_key.unlink()
    os.mkfifo(node.cluster_key, 0o600)
    with pytest.raises(StorageError):
        read_keys(node.cluster_key)
    node.cluster_key.unlink()
    put(node.cluster_key, "#" * 10_000)
    with pytest.raises(StorageError, match="longer than"):
        read_keys(node.cluster_key)


def test_a_daemon_follows_the_file_and_keeps_its_keys_while_it_cannot_be_read(
    node: NodeConfiguration,
) -> None:
    key = ClusterKey(node)
    first = key.authentication()
    assert first.keys == (FIRST,)
    assert key.authentication() is first
    put(node.cluster_key, keys_text([SECOND, FIRST]))
    assert key.authentication().keys == (SECOND, FIRST)
    for damage in (lambda: put(node.cluster_key, "no key"), node.cluster_key.unlink):
        damage()
        assert key.authentication().keys == (SECOND, FIRST)
        assert str(node.cluster_key) in key.problem
    put(node.cluster_key, keys_text([SECOND]))
    assert key.authentication().keys == (SECOND,)
    assert not key.problem


def test_a_key_is_in_no_text_about_it(node: NodeConfiguration) -> None:
    key = ClusterKey(node)
    assert FIRST.hex() not in repr(key.authentication())
    assert repr(FIRST) not in repr(key.authentication())
