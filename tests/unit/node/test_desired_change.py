# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of the desired configuration on a real storage: one at a time, and never half of one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    Resource,
    Service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    FormatError,
    InputError,
    LeaseError,
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_storage import (
    CONFIGURATION_LEASE,
    ClusterStorage,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations import (
    author,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations.change import (  # noqa: E501
    change_desired,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.record_format import (
    Kind,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.records import (
    RecordFile,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import (
    configuration,
    create_storage,
    join,
)


def service(name):
    return Service(name, (Resource("r", "ocf:test:thing"),))


def add(name):
    """Return a plan that adds a service."""
    return lambda desired: desired.with_service(service(name))


@pytest.fixture
def nodes(tmp_path):
    """The configurations of three nodes of which n1 and n2 are on."""
    create_storage(tmp_path)
    found = {name: configuration(tmp_path, name) for name in ("n1", "n2", "n3")}
    held = [join(found[name]) for name in ("n1", "n2")]
    yield found
    for leases in held:
        leases.close()


@pytest.fixture
def rival(nodes):
    """The storage as a second change on n2 uses it."""
    storage = ClusterStorage(nodes["n2"])
    storage.adopt_host_lease()
    yield storage
    storage.close()


def newest(nodes):
    storage = ClusterStorage(nodes["n3"])
    try:
        return storage.read_desired()
    finally:
        storage.close()


def content(nodes):
    """Return all that stands on the storage but for who holds leases and since when."""
    return Path(nodes["n1"].state_path).read_bytes()


def test_a_lease_that_another_node_holds_ends_the_change_at_the_deadline(nodes, rival):
    assert rival.leases.acquire(CONFIGURATION_LEASE) == 1
    before = content(nodes)
    with pytest.raises(LeaseError) as caught:
        change_desired(nodes["n1"], add("web"), check=False, wait=0.1)
    assert str(caught.value) == (
        "The configuration lease is still held by host id 2 after 0.1 s;"
        " nothing was changed, try again."
    )
    assert content(nodes) == before
    rival.leases.release(CONFIGURATION_LEASE)
    assert change_desired(nodes["n1"], add("web"), check=False, wait=0.1).changed


def test_a_change_names_its_author(nodes, monkeypatch):
    monkeypatch.setenv("SUDO_USER", "alice")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    client = "192.0.2.7 50000 192.0.2.1 22"
    code = "import time; print(flush=True); time.sleep(60)"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        env={**os.environ, "SSH_CONNECTION": client},
    ) as child:
        # What sudo removes is found in the environment of an ancestor.
        child.stdout.readline()
        monkeypatch.setattr(author.os, "getpid", lambda: child.pid)
        change_desired(nodes["n1"], add("web"), check=False)
        child.kill()
    made = newest(nodes)[0].changed_by
    assert (made.user, made.origin, made.node) == ("alice", "192.0.2.7", "n1")
    assert made.what == "service web"
    assert abs(made.at - time.time()) < 600
    change_desired(nodes["n1"], lambda desired: desired.without_service("web"), check=False)
    assert newest(nodes)[0].changed_by.what == "service web"
    assert not change_desired(nodes["n1"], lambda desired: desired, check=False).changed


def test_a_node_that_is_off_can_change_nothing(nodes):
    before = content(nodes)
    with pytest.raises(LeaseError, match="host id 3 is not held for node n3; start the node's"):
        change_desired(nodes["n3"], add("web"), check=False)
    assert content(nodes) == before


def test_a_change_that_was_overtaken_says_so(nodes, rival, monkeypatch):
    write = ClusterStorage.write_desired

    def overtaken(storage, desired):
        write(storage, desired)
        write(rival, DesiredState(desired.version + 5, {"other": service("other")}))

    monkeypatch.setattr(ClusterStorage, "write_desired", overtaken)
    with pytest.raises(LeaseError) as caught:
        change_desired(nodes["n1"], add("web"), check=False)
    assert str(caught.value) == (
        "The change to version 1 of the desired configuration lost against version 6 and is not"
        " applied; try again."
    )


def test_a_change_whose_lease_was_lost_while_it_wrote_is_not_called_applied(nodes, monkeypatch):
    write = ClusterStorage.write_desired

    def losing(storage, desired):
        write(storage, desired)
        storage.leases.release(CONFIGURATION_LEASE)

    monkeypatch.setattr(ClusterStorage, "write_desired", losing)
    with pytest.raises(LeaseError, match="is not applied; try again"):
        change_desired(nodes["n1"], add("web"), check=False)


@pytest.mark.parametrize("error", [StorageError("full"), InputError("name", "x", "another")])
def test_a_change_that_fails_gives_the_lease_back(nodes, rival, error):
    calls = []

    def fails_the_second_time(desired):
        calls.append(desired)
        if len(calls) == 2:
            raise error
        return add("web")(desired)

    with pytest.raises(type(error)):
        change_desired(nodes["n1"], fails_the_second_time, check=False)
    assert newest(nodes) == (DesiredState(), 0)
    assert rival.leases.acquire(CONFIGURATION_LEASE) == 2


def test_the_plan_is_applied_to_what_stands_there_once_the_lease_is_had(nodes, monkeypatch):
    adopt = ClusterStorage.adopt_host_lease

    def slowly(storage):
        monkeypatch.setattr(ClusterStorage, "adopt_host_lease", adopt)
        change_desired(nodes["n2"], add("first"), check=False)
        return adopt(storage)

    monkeypatch.setattr(ClusterStorage, "adopt_host_lease", slowly)
    change = change_desired(nodes["n1"], add("second"), check=False)
    assert sorted(change.before.services) == ["first"]
    assert sorted(newest(nodes)[0].services) == ["first", "second"]


def test_a_change_that_another_was_faster_with_reports_the_version_that_stands(nodes, monkeypatch):
    adopt = ClusterStorage.adopt_host_lease

    def slowly(storage):
        monkeypatch.setattr(ClusterStorage, "adopt_host_lease", adopt)
        change_desired(nodes["n2"], add("web"), check=False)
        return adopt(storage)

    monkeypatch.setattr(ClusterStorage, "adopt_host_lease", slowly)
    change = change_desired(nodes["n1"], add("web"), check=False)
    assert not change.changed
    assert change.after == newest(nodes)[0]
    assert change.after.version == 1


def test_changes_from_several_nodes_follow_each_other(nodes):
    change_desired(nodes["n1"], add("a"), check=False)
    change_desired(nodes["n2"], add("b"), check=False)
    last = change_desired(nodes["n1"], add("c"), check=False)
    desired, slot = newest(nodes)
    assert (sorted(desired.services), desired.version, slot) == (["a", "b", "c"], 3, 1)
    assert last.after == desired


def test_what_changes_nothing_writes_nothing_and_takes_no_lease(nodes, rival):
    change_desired(nodes["n1"], add("web"), check=False)
    assert rival.leases.acquire(CONFIGURATION_LEASE) == 2
    before = content(nodes)
    for node in ("n1", "n3"):
        change = change_desired(nodes[node], add("web"), check=False, wait=0.0)
        assert (change.changed, change.after.version) == (False, 1)
    assert content(nodes) == before


def test_check_mode_shows_the_same_change_and_writes_nothing(nodes):
    before = content(nodes)
    told = change_desired(nodes["n1"], add("web"), check=True)
    assert (told.changed, content(nodes)) == (True, before)
    done = change_desired(nodes["n1"], add("web"), check=False)
    assert (told.before, told.after.services) == (done.before, done.after.services)
    assert not change_desired(nodes["n1"], add("web"), check=True).changed


@pytest.mark.parametrize(
    "payload",
    [
        b"[]",
        b"nonsense",
        b'{"version": "x"}',
        b'{"version": 3, "services": [{"name": "a b"}]}',
        b'{"version": 3, "services": [{"name": "web"}]}',
        b'{"version": 3, "maintenance": {"n1": {}}}',
    ],
)
def test_a_configuration_that_is_whole_but_makes_no_sense_names_its_record(nodes, payload):
    with RecordFile(str(nodes["n1"].state_path)) as records:
        records.write(Kind.CONFIGURATION, 2, 3, payload)
    with pytest.raises(FormatError, match=r"The CONFIGURATION record of host id 2 in .* is whole"):
        change_desired(nodes["n1"], add("web"), check=False)


@pytest.mark.parametrize("damaged", [1, 2, 3])
def test_a_damaged_configuration_that_is_not_in_use_stands_in_the_way_of_no_change(nodes, damaged):
    writer, other = ("n2", "n1") if damaged == 1 else ("n1", "n2")
    for name in ("a", "b"):
        change_desired(nodes[writer], add(name), check=False)
    with RecordFile(str(nodes["n1"].state_path)) as records:
        records.write(Kind.CONFIGURATION, damaged, 1, b"{")
    change_desired(nodes[writer], add("c"), check=False)
    assert sorted(newest(nodes)[0].services) == ["a", "b", "c"]
    change_desired(nodes[other], add("d"), check=False)
    assert sorted(newest(nodes)[0].services) == ["a", "b", "c", "d"]


def test_the_same_configuration_is_written_again_where_that_is_asked_for(nodes):
    change_desired(nodes["n1"], add("web"), check=False)
    assert not change_desired(nodes["n2"], add("web"), check=False, again=True).changed
    desired, slot = newest(nodes)
    assert (desired.version, slot, list(desired.services)) == (2, 2, ["web"])


def test_leases_that_were_made_anew_without_the_records_change_nothing(nodes, rival):
    rival.write_desired(DesiredState(7, {"old": service("old")}))
    before = content(nodes)
    with pytest.raises(LeaseError, match=r"lease is older \(version 1\) than .* \(version 7\)"):
        change_desired(nodes["n1"], add("web"), check=False)
    assert content(nodes) == before
