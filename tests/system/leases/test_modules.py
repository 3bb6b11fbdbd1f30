# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules of the shared storage, run by Ansible, beside a sanlock daemon at work on it."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import LeaseError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.delta_lease import (  # noqa: E501
    LeaseArea,
    initial_lockspace,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.file import (
    initialise,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.leader_record import (  # noqa: E501
    Layout,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.resource_lease import (  # noqa: E501
    initial_leases,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.block import (  # noqa: E501
    HostBlock,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.file import (
    Whiteboard,
)
from ansible_collections.holdfast.ha.tests.system.leases.lease_backends import (
    IO_TIMEOUT,
    Cluster,
    Kind,
    needs_sanlock,
)
from ansible_collections.holdfast.ha.tests.system.leases.playing import Play, play, task

pytestmark = needs_sanlock

RENEWAL = 2 * IO_TIMEOUT
IN_USE = r"is in use and nothing is (recreated|removed): node n1 \(host id 1\)"


@pytest.fixture
def cluster():
    """A machine whose sanlock runs; the files are for the modules to make."""
    made = Cluster(Kind("command"))
    for path in (made.lockspace, made.leases):
        Path(path).unlink()
    try:
        yield made
    finally:
        made.end()


@pytest.fixture
def options(cluster):
    return {"name": "c1", "path": str(cluster.folder)}


def _content(cluster):
    """Return all bytes of the cluster's files but the host lease of the host that renews it."""
    found = {path.name: path.read_bytes() for path in cluster.folder.glob("c1.*")}
    if "c1.lockspace" in found:
        found["c1.lockspace"] = found["c1.lockspace"][512:]
    return found


def _leave(cluster):
    cluster.machines[1].leave()


def test_a_lockspace_is_made_once_joined_shown_guarded_and_removed(cluster, options):
    create = task("lockspace", options)
    promised, made, again, checked = play(
        *(task("lockspace", options, check=True), create),
        *(create, task("lockspace", options, check=True)),
    )
    assert promised["changed"] and made["changed"]
    assert (promised["diff"], promised["lockspace"]) == (made["diff"], made["lockspace"])
    assert not again["changed"] and not checked["changed"]
    assert again["diff"]["before"] == again["diff"]["after"] == made["diff"]["after"]
    assert Path(cluster.lockspace).read_bytes() == initial_lockspace("c1", IO_TIMEOUT)
    assert Path(cluster.leases).read_bytes() == initial_leases("c1")

    cluster.join(1)
    before = _content(cluster)
    shown, kept, *refused = play(
        task("lockspace_info", {**options, "watch": 3 * RENEWAL}),
        create,
        *(
            task("lockspace", {**options, **change}, check=check)
            for change in ({"io_timeout": 5}, {"state": "absent"})
            for check in (True, False)
        ),
    )
    [host] = shown["hosts"]
    assert (host["host_id"], host["host_name"], host["generation"]) == (1, "n1", 1)
    assert (host["held"], host["live"], host["state"]) == (True, True, "live")
    assert (host["io_timeout"], host["dead_after"]) == (IO_TIMEOUT, 8 * IO_TIMEOUT + 60)
    told = re.search(r"h 1 gen 1 timestamp (\d+) LIVE", cluster.client(1, "gets", "-h", "1"))
    assert told is not None
    assert abs(int(told[1]) - host["timestamp"]) < 60
    assert not kept["changed"]
    for one in refused:
        assert one["failed"]
        assert re.search(IN_USE, one["msg"])
    with pytest.raises(LeaseError, match=r"nothing is recreated: node n1 \(host id 1\)"):
        initialise(cluster.lockspace, "c1", 10, Layout())
    assert _content(cluster) == before
    assert cluster.machines[1].host(1).active, "sanlock went on to renew all the while"

    _leave(cluster)
    shown, would, removed, gone = play(
        task("lockspace_info", options),
        task("lockspace", {**options, "state": "absent"}, check=True),
        *[task("lockspace", {**options, "state": "absent"})] * 2,
    )
    assert [host["state"] for host in shown["hosts"]] == ["free"]
    assert would["changed"] and removed["changed"] and not gone["changed"]
    assert would["diff"] == removed["diff"]
    assert _content(cluster) == {}


def test_a_node_that_died_keeps_its_lockspace_until_that_is_forced(cluster, options):
    play(task("lockspace", options), task("metadata", options))
    cluster.join(1)
    cluster.cut_power(1)
    refused, board, would, forced, again = play(
        task("lockspace", {**options, "io_timeout": 5}),
        task("metadata", {**options, "state": "absent"}),
        task("lockspace", {**options, "io_timeout": 5, "force": True}, check=True),
        task("lockspace", {**options, "io_timeout": 5, "force": True}),
        task("lockspace", options),
    )
    assert re.search(IN_USE, refused["msg"])
    assert re.search(IN_USE, board["msg"])
    assert would["changed"] and forced["changed"] and not again["changed"]
    assert would["diff"] == forced["diff"]
    assert forced["diff"]["before"] != forced["diff"]["after"]
    assert Path(cluster.lockspace).read_bytes() == initial_lockspace("c1", 5)


def test_a_lockspace_that_a_module_made_is_joined_whatever_its_geometry(cluster, options):
    play(task("lockspace", {**options, "sector_size": 4096, "area_size": "1M"}))
    cluster.join(1)
    shown, refused = play(
        task("lockspace_info", {**options, "watch": 3 * RENEWAL}),
        task("lockspace", {**options, "sector_size": 512, "force": False}),
    )
    assert (shown["sector_size"], shown["area_bytes"], shown["max_hosts"]) == (4096, 1 << 20, 250)
    assert [(one["host_name"], one["state"]) for one in shown["hosts"]] == [("n1", "live")]
    assert refused["failed"]
    _leave(cluster)


def test_of_modules_that_create_at_once_each_file_has_one_maker(cluster, options):
    plays = [Play(task("lockspace", options), task("metadata", options)) for _turn in range(3)]
    with ThreadPoolExecutor(len(plays)) as pool:
        found = list(pool.map(Play.results, plays))
    for module in (0, 1):
        results = [one[module] for one in found]
        assert not any(result.get("failed") for result in results)
        # Whiteboard and records may come from two modules, each whole.
        assert 1 <= [result["changed"] for result in results].count(True) <= 1 + module
    assert Path(cluster.lockspace).read_bytes() == initial_lockspace("c1", IO_TIMEOUT)
    assert Path(cluster.leases).read_bytes() == initial_leases("c1")


def test_of_modules_that_write_at_once_beside_a_running_node_nothing_is_lost(cluster, options):
    play(task("lockspace", options), task("metadata", {**options, "max_hosts": 16}))
    cluster.join(1)
    path = str(cluster.folder / "c1.metadata")
    with Whiteboard(path) as board:
        for host_id in range(1, 17):
            board.write_host(HostBlock(host_id, 10, 3400, f"n{host_id}"))
        kept = {number: board.read_block(number) for number in range(1, 17)}
    before = _content(cluster)["c1.leases"]
    changes = [{"maintenance": True}, *({"clear_host": host_id} for host_id in (7, 8, 9))]
    plays = [Play(task("metadata", {**options, "watch": 0.5, **change})) for change in changes]
    with ThreadPoolExecutor(len(plays)) as pool:
        found = [one for [one] in pool.map(Play.results, plays)]
    assert all(one.get("changed") for one in found), found
    with Whiteboard(path) as board:
        assert board.read().global_block.maintenance is True
        assert sorted(board.read().hosts) == [1, 2, 3, 4, 5, 6, *range(10, 17)]
        for host_id in sorted(board.read().hosts):
            assert board.read_block(host_id) == kept[host_id]
    assert _content(cluster)["c1.leases"] == before
    [refused] = play(task("metadata", {**options, "watch": 0.5, "clear_host": 1}))
    # Which of the two it is depends on whether a renewal falls into the half second.
    assert re.search("node n1 (holds|renewed) its host lease", refused["msg"])
    with LeaseArea(cluster.lockspace) as area:
        assert list(area.read().leases) == [1]
    _leave(cluster)


ENGINE_UP = (
    b'1|1|4262|1|3400|{"vm": "up", "health": "good", "detail": "Up"}|host1.example.com|0|0|'
    b"b0d6aef7|1|1000"
)
"""The machine part of a block as an agent of oVirt hosted engine writes it."""

EXTRA = b"metadata_parse_version=1\nhost-id=1\nscore=3400\nstate=EngineUp\n"


def test_tools_that_read_vm_status_of_hosted_engine_read_ours(cluster, options):
    play(task("metadata", {**options, "maintenance": True}))
    board = os.open(cluster.folder / "c1.metadata", os.O_WRONLY)
    os.pwrite(board, ENGINE_UP.ljust(512, b"\0") + EXTRA.ljust(3584, b"\0"), 4096)
    os.close(board)
    once, watched = play(
        task("metadata_info", options),
        task("metadata_info", {**options, "watch": 1}),
    )
    expected = {
        "host-id": 1,
        "host-ts": 4262,
        "score": 3400,
        "engine-status": {"vm": "up", "health": "good", "detail": "Up"},
        "hostname": "host1.example.com",
        "maintenance": False,
        "stopped": False,
        "crc32": "b0d6aef7",
        "conf_on_shared_storage": True,
        "local_conf_timestamp": 1000,
        "extra": EXTRA.decode(),
        "live-data": None,
    }
    assert once["vm_status"] == {"1": expected, "global_maintenance": True}
    assert list(once["vm_status"]["1"]) == list(expected)
    assert watched["vm_status"]["1"] == {**expected, "live-data": False}
    assert once["findings"] == once["problems"] == []
