# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's configuration: what is wrong with it is said before anything runs on it."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Timing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.profiles import (
    FAST,
    LARGE,
    PROFILES,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    InputError,
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import (
    BOOT_ID,
    SanlockSettings,
    run_directory,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration_file import (
    check_declared,
    from_document,
    load,
    to_document,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import configuration, document
from hypothesis import given, settings
from hypothesis import strategies as st

BASE = Path("/srv")


def members(*changes):
    """Return the members of the sample, each with the given changes."""
    rows = document(BASE)["members"]
    return [{**row, **change} for row, change in zip(rows, (*changes, {}, {}, {}))]


@pytest.mark.parametrize(
    ("change", "option", "value", "expected"),
    [
        ({"cluster": "a b"}, "cluster", "a b", "a cluster name of letters"),
        ({"cluster": ".hidden"}, "cluster", ".hidden", "starts with a letter or digit"),
        ({"cluster": "c" * 41}, "cluster", "c" * 41, "at most 40 characters"),
        ({"cluster": None}, "cluster", None, "a cluster name"),
        ({"node": "n/1"}, "node", "n/1", "a node name"),
        ({"node": "n9"}, "node", "n9", "one of the members (n1, n2, n3)"),
        ({"backend": "magic"}, "backend", "magic", "one of embedded, sanlock"),
        ({"sanlock": [2]}, "sanlock", [2], "a dictionary of io_timeout"),
        ({"sanlock": {"io": 2}}, "sanlock", "io", "one of io_timeout, watchdog_timeout"),
        ({"sanlock": {"io_timeout": "2"}}, "sanlock.io_timeout", "2", "a whole number"),
        ({"sanlock": {"io_timeout": True}}, "sanlock.io_timeout", True, "a whole number"),
        ({"sanlock": {"watchdog_timeout": 9.5}}, "sanlock.watchdog_timeout", 9.5, "a whole"),
        ({"sanlock": {"io_timeout": 1}}, "io_timeout", 1, "healthy nodes are reset"),
        (
            {"sanlock": {"io_timeout": 1, "watchdog_timeout": 0}},
            "io_timeout",
            1,
            "healthy nodes are reset",
        ),
        ({"sanlock": {"watchdog_timeout": 30}}, "watchdog_timeout", 30, "10/60, 5/30, 2/10"),
        (
            {"sanlock": {"watchdog_timeout": 0, "run_directory": "run"}},
            "sanlock.run_directory",
            "run",
            "an absolute path",
        ),
        (
            {"sanlock": {"watchdog_timeout": 0, "run_directory": "/" + 95 * "r"}},
            "sanlock.run_directory",
            "/" + 95 * "r",
            "at most 94 bytes",
        ),
        (
            {"sanlock": {"run_directory": "/run/n1"}},
            "sanlock.watchdog_timeout",
            60,
            "has no watchdog",
        ),
        (
            {"members": members({"lease_proof": "no"})},
            "members.lease_proof",
            "no",
            "true, false, or nothing",
        ),
        ({"members": members({"lease_proof": 1})}, "members.lease_proof", 1, "true, false"),
        ({"storage": "srv"}, "storage", "srv", "an absolute path"),
        ({"storage": None}, "storage", None, "an absolute path"),
        ({"folder": "./here"}, "folder", "./here", "an absolute path"),
        ({"fence_configuration": "f"}, "fence_configuration", "f", "an absolute path"),
        ({"agent_directories": "/usr"}, "agent_directories", "/usr", "a list of absolute paths"),
        ({"agent_directories": ["ocf"]}, "agent_directories", "ocf", "an absolute path"),
        ({"members": []}, "members", [], "a list of nodes"),
        ({"members": {"n1": 1}}, "members", {"n1": 1}, "a list of nodes"),
        ({"members": ["n1"]}, "members", "n1", "a dictionary with name, host_id"),
        ({"members": members({"host_id": 0})}, "members.host_id", 0, "from 1 to 2000"),
        ({"members": members({"host_id": 2001})}, "members.host_id", 2001, "from 1 to 2000"),
        ({"members": members({"host_id": True})}, "members.host_id", True, "a whole number"),
        ({"members": members({"host_id": "1"})}, "members.host_id", "1", "a whole number"),
        ({"members": members({"host_id": 2})}, "members.host_id", 2, "'n1' and 'n2' share it"),
        ({"members": members({"name": "n2"})}, "members.name", "n2", "no other node has"),
        ({"members": members({"address": "node1"})}, "members.address", "node1", "an IP address"),
        ({"members": members({"address": "1.2.3"})}, "members.address", "1.2.3", "an IP address"),
        ({"members": members({"port": 80})}, "members.port", 80, "from 1024 to 65535"),
        ({"members": members({"port": 65534})}, "members.port", 65534, "at most 65533"),
        ({"members": members({"port": "21003"})}, "members.port", "21003", "a port number"),
        ({"members": members({"port": 21004})}, "members.port", 21006, "node 'n1' uses 21006"),
        ({"members": members({}, {"port": 21003})}, "members.port", 21003, "node 'n1' uses 21003"),
        ({"timing": {"sometime": 3}}, "timing", "sometime", "suspect_after"),
        ({"timing": [3]}, "timing", [3], "a dictionary of"),
        ({"timing": {"profile": "slow"}}, "timing.profile", "slow", "one of default, fast"),
        ({"timing": {"heartbeat": 0}}, "timing.heartbeat", 0, "a number above 0"),
        ({"timing": {"keepalive": -1}}, "timing.keepalive", -1, "a number above 0"),
        ({"timing": {"suspect_after": -1}}, "timing.suspect_after", -1, "a number above 0"),
        ({"timing": {"suspect_after": 0}}, "timing.suspect_after", 0, "a number above 0"),
        ({"timing": {"suspect_after": "3"}}, "timing.suspect_after", "3", "a number above 0"),
        ({"timing": {"fence_retry": True}}, "timing.fence_retry", True, "a number above 0"),
        ({"timing": {"fence_retry": 1e999}}, "timing.fence_retry", 1e999, "a number above 0"),
        ({"timing": {"fence_limit": 0.5}}, "timing.fence_limit", 0.5, "a whole number above 0"),
        (
            {"timing": {"power_on_after_fence": "no"}},
            "timing.power_on_after_fence",
            "no",
            "true or false",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_value_and_what_was_expected(
    change, option, value, expected
):
    with pytest.raises(InputError) as caught:
        from_document(document(BASE, **change))
    assert (caught.value.option, caught.value.value) == (option, value)
    assert expected in caught.value.expected
    assert str(caught.value) == f"{option}: {value!r} is not accepted; expected" + (
        f" {caught.value.expected}."
    )


def many(number):
    """Return so many members."""
    return [
        {"name": f"n{i}", "host_id": i, "address": "127.0.0.1", "port": 20000 + 3 * i}
        for i in range(1, number + 1)
    ]


def test_a_large_cluster_has_a_slower_default():
    assert from_document(document(BASE, members=many(LARGE))).timing == Timing()
    timing = from_document(document(BASE, members=many(LARGE + 1))).timing
    assert (timing.suspect_after, timing.heartbeat, timing.look) == (3.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("timing", "more", "option"),
    [
        ({}, {}, ""),
        ({"suspect_after": 1.0}, {}, ""),
        ({"suspect_after": 0.9}, {}, "timing.heartbeat"),
        ({"look": 1.1}, {}, "timing.look"),
        ({"profile": FAST}, {"authentication": "enforce"}, ""),
        ({"profile": FAST}, {"authentication": "warn", "members": many(LARGE)}, ""),
        ({"profile": FAST}, {}, "timing.keepalive"),
        (
            {"profile": FAST},
            {"authentication": "warn", "members": many(LARGE + 1)},
            "timing.keepalive",
        ),
        (
            {"profile": FAST, "suspect_soonest": 0.6},
            {"authentication": "warn"},
            "timing.suspect_soonest",
        ),
        (
            {"profile": FAST, "suspect_soonest": 2.1},
            {"authentication": "warn"},
            "timing.suspect_soonest",
        ),
        ({"profile": FAST, "keepalive": 0}, {}, ""),
    ],
)
def test_times_that_would_make_healthy_nodes_suspects_are_not_declared(timing, more, option):
    found = from_document(document(BASE, timing=timing, **more))
    if not option:
        check_declared(found)
        return
    with pytest.raises(InputError) as caught:
        check_declared(found)
    assert caught.value.option == option


def test_a_time_that_is_no_number_is_refused():
    with pytest.raises(InputError, match=r"timing.daemon_grace: nan is not accepted"):
        from_document(document(BASE, timing={"daemon_grace": float("nan")}))


def test_two_nodes_may_use_the_same_ports_on_two_machines():
    rows = members({"address": "192.0.2.1"}, {"address": "192.0.2.2", "port": 21003})
    assert from_document(document(BASE, members=rows)).members["n2"].port == 21003


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "the readable configuration of a node (No such file or directory)"),
        (b"{", "a file of valid JSON"),
        (b"\xff\xfe", "a file of valid JSON"),
        (b"[]", "a file that holds one JSON object"),
        (b"{}", "a list of nodes with name, host_id, address and port"),
    ],
)
def test_a_file_that_cannot_be_the_configuration_is_refused_in_one_sentence(
    tmp_path, content, expected
):
    path = tmp_path / "node.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load(path)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,30}", fullmatch=True)
paths = st.lists(names, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))


def a_value(kind):
    """Return values that a time or limit of this type may have."""
    if kind is bool:
        return st.booleans()
    if kind is int:
        return st.integers(1, 1000)
    return st.floats(0.001, 1e6)


timings = st.fixed_dictionaries(
    {}, optional={item.name: a_value(type(getattr(Timing(), item.name))) for item in fields(Timing)}
)


@settings(deadline=None)
@given(
    cluster=names,
    nodes=st.lists(names, min_size=1, max_size=6, unique=True),
    first_port=st.integers(1024, 60000),
    first_id=st.integers(1, 1990),
    storage=paths,
    folder=paths,
    directories=st.lists(paths, min_size=1, max_size=3),
    timing=timings,
    profile=st.sampled_from(sorted(PROFILES)),
    sanlock=st.sampled_from(
        [
            {},
            {"io_timeout": 10, "watchdog_timeout": 60, "run_directory": None},
            {"io_timeout": 2, "watchdog_timeout": 10},
            {"io_timeout": 7, "watchdog_timeout": 0, "run_directory": "/run/of/n1"},
        ]
    ),
    data=st.data(),
)
def test_a_configuration_is_the_same_after_it_was_written_and_read(
    cluster,
    nodes,
    first_port,
    first_id,
    storage,
    folder,
    directories,
    timing,
    profile,
    sanlock,
    data,
):
    given_document = {
        "cluster": cluster,
        "node": data.draw(st.sampled_from(nodes)),
        "storage": storage,
        "folder": folder,
        "members": [
            {"name": name, "host_id": first_id + place, "port": first_port + 3 * place}
            for place, name in enumerate(nodes)
        ],
        "agent_directories": directories,
        "timing": {"profile": profile, **timing},
        "backend": data.draw(st.sampled_from(["embedded", "sanlock"])),
        "sanlock": sanlock,
    }
    first = from_document(given_document)
    written = json.loads(json.dumps(to_document(first)))
    assert from_document(written) == first
    assert to_document(from_document(written)) == written
    assert asdict(first.timing) == {**asdict(PROFILES[profile]), **timing}
    assert [first.members[name].port for name in nodes] == [
        row["port"] for row in given_document["members"]
    ]


def test_what_is_left_out_has_the_documented_defaults():
    bare = {key: document(BASE)[key] for key in ("cluster", "node", "storage", "folder")}
    rows = [{"name": "n1", "host_id": 1, "port": 7410}]
    found = from_document({**bare, "members": rows})
    assert (found.backend, found.me.address, found.timing) == ("embedded", "127.0.0.1", Timing())
    assert found.sanlock == SanlockSettings(2, 60, "")
    assert found.agent_directories == ("/usr/lib/ocf",)
    assert str(found.fence_configuration) == "/etc/holdfast/fence.json"


def test_the_clusters_files_carry_its_name():
    found = from_document(document(BASE, cluster="rack1"))
    assert {
        str(path)
        for path in (
            found.lockspace_path,
            found.leases_path,
            found.metadata_path,
            found.state_path,
        )
    } == {f"/srv/storage/rack1.{kind}" for kind in ("lockspace", "leases", "metadata", "state")}


def test_agents_never_see_a_blank_in_the_path_of_their_run_directory(tmp_path):
    assert run_directory(tmp_path / "plain") == tmp_path / "plain" / "run"
    spaced = [run_directory(tmp_path / name) for name in ("a folder", "another folder")]
    assert not any(character.isspace() for path in spaced for character in str(path))
    assert spaced[0] != spaced[1]
    assert spaced == [run_directory(tmp_path / name) for name in ("a folder", "another folder")]


def test_the_run_directory_is_the_same_by_a_link_as_by_the_real_path(tmp_path):
    real = configuration(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "nodes")
    linked = from_document(document(tmp_path, folder=str(tmp_path / "link" / "n1")))
    assert linked.run_directory == real.run_directory


@pytest.mark.parametrize("content", [None, b"\xff\xfe\xfd"])
def test_a_boot_that_cannot_be_read_says_to_start_the_machine(tmp_path, content):
    found = configuration(tmp_path)
    path = found.folder / "boot"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StorageError, match=f"{path} cannot be read .*so start the machine"):
        found.boot()


def test_the_boot_is_what_the_machine_wrote(tmp_path):
    assert configuration(tmp_path).boot() == "n1-boot1"


def test_a_computer_of_its_own_is_told_from_a_machine_by_its_sanlock(tmp_path):
    on_one_computer = {"watchdog_timeout": 0, "run_directory": "/tmp/n1"}
    machine = from_document(document(tmp_path, backend="sanlock", sanlock=on_one_computer))
    computer = from_document(document(tmp_path, backend="sanlock"))
    assert (machine.is_machine, computer.is_machine) == (True, False)
    assert machine.run_directory == tmp_path / "nodes" / "n1" / "run"
    assert str(computer.run_directory) == "/run/holdfast", "it is empty after a power cut"
    assert computer.boot() == BOOT_ID.read_text().strip()


@pytest.mark.parametrize("lease_proof", [None, True, False])
def test_whether_a_lease_is_a_proof_is_in_the_file_only_where_it_is_set(lease_proof):
    given_document = document(BASE, members=members({"lease_proof": lease_proof}))
    read = from_document(given_document)
    assert read.members["n1"].lease_proof is lease_proof
    rows = to_document(read)["members"]
    kept = {} if lease_proof is None else {"lease_proof": lease_proof}
    assert {key: one for key, one in rows[0].items() if key == "lease_proof"} == kept
    assert all("lease_proof" not in row for row in rows[1:])
    assert from_document(to_document(read)) == read
