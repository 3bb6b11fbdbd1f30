# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``holdfast key``: which keys a node has, and what they did not sign."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_key import (
    fingerprint,
    keys_text,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_storage import (
    CONFIGURATION_LEASE,
    ClusterStorage,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import (
    NodeConfiguration,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration_file import (
    to_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.main import main
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations.change import (  # noqa: E501
    change_desired,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.authentication import (
    KEY_BYTES,
    Policy,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import (
    configuration,
    create_storage,
    join,
)

OLD, NEW = b"1" * KEY_BYTES, b"2" * KEY_BYTES
Run = Callable[..., tuple[int, str]]


class Node:
    """Node n1 of a cluster that enforces authentication, with its report and a configuration."""

    def __init__(self, folder: Path) -> None:
        create_storage(folder)
        self.key = folder / "cluster.key"
        self.put(OLD)
        found = configuration(folder)
        self.configuration: NodeConfiguration = replace(
            found, authentication=Policy.ENFORCE, cluster_key=self.key
        )
        self.path = folder / "node.json"
        self.path.write_text(json.dumps(to_document(self.configuration)))
        self._lease = join(self.configuration)
        change_desired(self.configuration, lambda desired: desired, check=False, again=True)
        with closing(ClusterStorage(self.configuration)) as storage:
            storage.write_report(Report("n1", "boot"))

    def put(self, *keys: bytes) -> None:
        """Put keys into the file, the one that signs first."""
        self.key.write_text(keys_text(keys))
        self.key.chmod(0o600)

    def desired(self) -> DesiredState:
        """Return the configuration on storage."""
        with closing(ClusterStorage(self.configuration)) as storage:
            return storage.read_desired()[0]

    def close(self) -> None:
        """Give the host lease back."""
        self._lease.close()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    found = Node(tmp_path)
    yield found
    found.close()


@pytest.fixture
def key(node: Node, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str) -> tuple[int, str]:
        status = main(["key", *words, "--config", str(node.path)])
        return status, capsys.readouterr().out

    return run


def test_a_key_that_signed_everything_is_shown_by_its_fingerprint(key: Run) -> None:
    status, said = key("show")
    assert status == 0
    assert said.splitlines() == [
        "authentication: enforce",
        f"key {fingerprint(OLD)} signs, and is accepted",
    ]
    assert OLD.hex() not in said


def test_what_the_new_first_key_has_not_signed_yet_is_named(node: Node, key: Run) -> None:
    node.put(NEW, OLD)
    status, said = key("show", "--json")
    shown = json.loads(said)
    assert status == 1
    assert shown["fingerprints"] == [fingerprint(NEW), fingerprint(OLD)]
    assert not shown["not_authentic"]
    assert [one.split(" is ")[0] for one in shown["not_signed"]] == [
        "The LRM record of n1",
        "The CONFIGURATION record of n1",
    ]


def test_the_configuration_is_signed_once_and_stays_what_it_was(node: Node, key: Run) -> None:
    assert key("sign") == (0, "already signed; no change\n")
    before = node.desired()
    node.put(NEW, OLD)
    assert key("sign") == (0, "signed\n")
    assert key("sign") == (0, "already signed; no change\n")
    after = node.desired()
    again = replace(after, version=before.version, changed_by=before.changed_by)
    assert again == before
    assert after.version == before.version + 1
    with closing(ClusterStorage(node.configuration)) as storage:
        assert storage.leases.holder(CONFIGURATION_LEASE).version == after.version


def test_a_record_that_only_the_dropped_key_signed_is_not_believed(node: Node, key: Run) -> None:
    node.put(NEW)
    status, said = key("show")
    assert status == 1
    assert "The LRM record of n1 is not authentic and counts as blank" in said
