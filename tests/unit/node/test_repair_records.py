# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Repairing records on a real storage: what is planned, what is written, and what is refused."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    LocalService,
    LocalState,
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    Resource,
    Service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import LeaseError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node import record_faults
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_storage import (
    CONFIGURATION_LEASE,
    MANAGER_LEASE,
    ClusterStorage,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.record_guard import (  # noqa: E501
    Records,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.main import main
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations.change import (  # noqa: E501
    change_desired,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations.repair_records import (  # noqa: E501
    Keep,
    describe,
    plan_repair,
    repair_records,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.status import (
    read_status,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.record_format import (
    COPY_HEADER,
    Kind,
    Record,
    encode_record,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.records import (
    RecordFile,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import (
    configuration,
    create_storage,
    document,
    join,
)

BY = Maintenance("a test", "ada", 1.0)
OLDER = ("the manager's record is older (command 1) than what n2 acted on (command 3)",)


def service(name, version="1", **changes):
    return Service(name, (Resource("r", "ocf:test:thing", {"version": version}),), **changes)


def reporting(node, *services, state=LocalState.RUNNING, **versions):
    local = {one.id: LocalService(one, state, "5.1") for one in services}
    return Report(node, "boot1", services=local, **versions)


def records(*declared, older=True):
    desired = DesiredState(4, {one.id: one for one in declared})
    return Records(ClusterState(epoch=5), desired, 1, OLDER, 2, configuration_older=older)


WEB, NEWER, DB = service("web"), service("web", "2"), service("db")


@pytest.mark.parametrize(
    ("found", "reports", "keep", "services", "taken", "stopped"),
    [
        (records(WEB), [reporting("n1", WEB)], "running", {"web": WEB}, {}, {}),
        (records(), [reporting("n1", WEB)], "running", {"web": WEB}, {"web": "n1"}, {}),
        (records(), [reporting("n1", WEB)], "file", {}, {}, {"web": "n1"}),
        (records(WEB), [reporting("n2", NEWER)], "running", {"web": NEWER}, {"web": "n2"}, {}),
        (records(WEB), [reporting("n2", NEWER)], "file", {"web": WEB}, {}, {}),
        (
            records(replace(WEB, state="stopped")),
            [reporting("n1", WEB)],
            "running",
            {"web": WEB},
            {"web": "n1"},
            {},
        ),
        (
            records(),
            [reporting("n1", WEB, commands=1), reporting("n2", NEWER, commands=3)],
            "running",
            {"web": NEWER},
            {"web": "n2"},
            {},
        ),
        (
            records(DB),
            [reporting("n1", WEB, state=LocalState.STOPPED)],
            "running",
            {"db": DB},
            {},
            {},
        ),
        (records(WEB, older=False), [reporting("n1", NEWER)], "running", {"web": WEB}, {}, {}),
    ],
    ids=[
        "what is declared as it runs stays",
        "what runs and is lost is declared again",
        "what runs and is lost is stopped",
        "what runs newer than the file has it",
        "what the file has older than it runs",
        "what runs and was declared stopped before",
        "of two definitions that of the later command",
        "what does not run is not declared",
        "a configuration that did not go back counts",
    ],
)
def test_a_repair_keeps_what_it_is_told_to(found, reports, keep, services, taken, stopped):
    repair = plan_repair(found, {one.node: one for one in reports}, Keep(keep), BY)
    assert repair.after.services == services
    assert (repair.taken, repair.stopped) == (taken, stopped)
    assert repair.after.generation == 3
    assert repair.after.repaired_by.reason == f"keep {keep}: a test"
    told = "\n".join(describe(repair, Keep(keep)))
    assert OLDER[0] in told
    assert all(one in told for one in (*taken, *stopped))


def test_what_was_to_run_is_declared_again_although_its_node_was_started_since():
    was = {
        "web": ServiceStatus(ServiceState.STARTED, "n1"),
        "db": ServiceStatus(ServiceState.RECOVERY, "n2"),
        "done": ServiceStatus(ServiceState.STOPPED),
    }
    found = replace(records(), state=ClusterState(epoch=5, config_version=9, services=was))
    reports = {"n1": reporting("n1", WEB, state=LocalState.STOPPED)}
    repair = plan_repair(found, reports, Keep.RUNNING, BY)
    assert (repair.after.services, repair.taken) == ({"web": WEB}, {"web": "n1"})
    assert repair.lost == ("db",)
    assert "db: its definition is lost; declare it again" in describe(repair, Keep.RUNNING)
    assert plan_repair(found, reports, Keep.FILE, BY).after.services == {}
    older = replace(found, state=replace(found.state, config_version=4))
    assert plan_repair(older, reports, Keep.RUNNING, BY).after.services == {}
    more = {"n1": replace(reports["n1"], epoch=5, commands=1)}
    assert plan_repair(older, more, Keep.RUNNING, BY).after.services == {"web": WEB}


class Cluster:
    """The storage of a cluster of which n1 and n2 are on, with what n2 acted on."""

    def __init__(self, folder):
        create_storage(folder)
        self.n1, self.n2 = configuration(folder, "n1"), configuration(folder, "n2")
        self.held = [join(self.n1), join(self.n2)]
        self.path = self.n1.folder / "node.json"
        self.path.write_text(json.dumps(document(folder)))
        change_desired(self.n1, lambda desired: desired.with_service(WEB), check=False)
        with closing(ClusterStorage(self.n1)) as storage:
            storage.adopt_host_lease()
            self.epoch = storage.leases.acquire(MANAGER_LEASE)
            storage.write_manager(ClusterState(self.epoch, "n1", 1, 1, commands=1))
        with closing(ClusterStorage(self.n2)) as storage:
            storage.write_report(
                reporting("n2", NEWER, epoch=self.epoch, commands=3, config_version=2)
            )

    def close(self):
        for leases in self.held:
            leases.close()

    def newest(self):
        with closing(ClusterStorage(self.n2)) as storage:
            return storage.readable_desired()[0]

    def flip(self, kind, host_id, copy):
        """Flip a bit of the payload of one copy."""
        with RecordFile(str(self.n1.state_path)) as file:
            place = file.geometry().offset(kind, host_id, copy) + COPY_HEADER.size + 5
        with self.n1.state_path.open("r+b") as raw:
            raw.seek(place)
            byte = raw.read(1)[0]
            raw.seek(place)
            raw.write(bytes([byte ^ 1]))

    def misplace(self, host_id):
        """Write a record of another slot over both copies of a configuration."""
        with RecordFile(str(self.n1.state_path)) as file:
            places = [file.geometry().offset(Kind.CONFIGURATION, host_id, one) for one in (0, 1)]
        page = encode_record(Record(Kind.CONFIGURATION, 4, 9, 1, b"{}"))
        with self.n1.state_path.open("r+b") as raw:
            for place in places:
                raw.seek(place)
                raw.write(page)


def named(node):
    """Return the beginning of what the status says of damaged records, and why it is paused."""
    status = read_status(node)
    return [*status["regressions"], *(one.split(" (")[0] for one in status["damaged_copies"])]


@pytest.fixture
def cluster(tmp_path):
    found = Cluster(tmp_path)
    yield found
    found.close()


def test_the_status_names_what_is_older_than_what_and_the_way_out(cluster):
    status = read_status(cluster.n1)
    assert any("what n2 acted on (command 3)" in one for one in status["regressions"])
    assert any("what n2 acted on (version 2)" in one for one in status["regressions"])
    assert status["problems"][0].startswith("Paused: ")
    assert "holdfast records repair" in status["problems"][0]


def test_a_dry_run_writes_nothing(cluster, capsys):
    before = cluster.n1.state_path.read_bytes()
    words = ["records", "repair", "--keep", "running", "--dry-run", "--config", str(cluster.path)]
    assert main(words) == 0
    assert cluster.n1.state_path.read_bytes() == before
    told = capsys.readouterr().out
    assert "web: declared as n2 runs it" in told
    assert told.endswith("dry run: nothing was changed\n")


def test_without_a_terminal_nobody_is_asked_and_nothing_is_done(cluster, capsys):
    before = cluster.n1.state_path.read_bytes()
    assert main(["records", "repair", "--keep", "file", "--config", str(cluster.path)]) == 2
    assert "no terminal to confirm; use --yes" in capsys.readouterr().err
    assert cluster.n1.state_path.read_bytes() == before


def test_a_repair_writes_a_configuration_of_a_new_generation(cluster):
    repair_records(cluster.n1, Keep.RUNNING, BY, check=False, timeout=0.0)
    newest = cluster.newest()
    assert newest.generation == 1
    assert newest.services == {"web": NEWER}
    with closing(ClusterStorage(cluster.n2)) as storage:
        assert storage.leases.holder(CONFIGURATION_LEASE).active is False


def test_what_is_current_is_not_repaired(cluster, capsys):
    with closing(ClusterStorage(cluster.n2)) as storage:
        storage.write_report(reporting("n2", WEB, epoch=cluster.epoch, commands=1))
    before = cluster.n1.state_path.read_bytes()
    words = ["records", "repair", "--keep", "file", "--yes", "--config", str(cluster.path)]
    assert main(words) == 0
    assert capsys.readouterr().out == "the records are current\n"
    assert cluster.n1.state_path.read_bytes() == before


@pytest.mark.parametrize("elsewhere", [(), (1,), (3,)], ids=["whole", "own slot", "third slot"])
@pytest.mark.parametrize("writer", [1, 2])
def test_a_damaged_copy_of_the_configuration_is_named_and_written_again_from_any_node(
    cluster, capsys, writer, elsewhere
):
    with closing(ClusterStorage(cluster.n2)) as storage:
        storage.write_report(reporting("n2", WEB, epoch=cluster.epoch, commands=1))
    for change in (WEB, DB):
        node = cluster.n1 if writer == 1 else cluster.n2
        change_desired(node, lambda desired, one=change: desired.with_service(one), check=False)
    for host_id in {*elsewhere} - {writer}:
        cluster.misplace(host_id)
    cluster.flip(Kind.CONFIGURATION, writer, 0)
    assert named(cluster.n2) == [f"The CONFIGURATION record of n{writer} is damaged"]
    words = ["records", "repair", "--keep", "running", "--yes", "--config", str(cluster.path)]
    before = cluster.n1.state_path.read_bytes()
    assert main([*words, "--dry-run"]) == 0
    assert capsys.readouterr().out.endswith("damaged: it would be written again\n")
    assert cluster.n1.state_path.read_bytes() == before
    assert main(words) == 0
    assert capsys.readouterr().out.endswith("damaged: it was written again\n")
    assert named(cluster.n1) == named(cluster.n2) == []
    assert cluster.newest().services == {"web": WEB, "db": DB}
    assert main(words) == 0
    assert capsys.readouterr().out == "the records are current\n"


def test_a_repair_writes_the_own_slot_again_also_where_it_is_not_in_use(cluster, capsys):
    with closing(ClusterStorage(cluster.n2)) as storage:
        storage.write_report(reporting("n2", WEB, epoch=cluster.epoch, commands=1))
    change_desired(cluster.n2, lambda desired: desired.with_service(DB), check=False)
    cluster.misplace(1)
    assert named(cluster.n1) == []
    words = ["records", "repair", "--keep", "running", "--yes", "--config", str(cluster.path)]
    assert main(words) == 0
    assert capsys.readouterr().out.endswith("damaged: it was written again\n")
    with closing(ClusterStorage(cluster.n2)) as storage:
        assert record_faults.damaged_records(storage) == []
        assert sorted(storage.read_desired_from(1).services) == ["db", "web"]


def test_one_damaged_copy_of_a_configuration_loses_nothing(cluster):
    for copy in (0, 1):
        cluster.flip(Kind.CONFIGURATION, 1, copy)
        assert cluster.newest().services == {"web": WEB}
        cluster.flip(Kind.CONFIGURATION, 1, copy)


def test_a_change_is_not_built_on_a_configuration_that_went_back(cluster):
    with closing(ClusterStorage(cluster.n1)) as storage:
        storage.write_manager(ClusterState(cluster.epoch, "n1", 7, 1, commands=3))
    before = cluster.n1.state_path.read_bytes()
    with pytest.raises(LeaseError) as caught:
        change_desired(cluster.n1, lambda desired: desired.with_service(DB), check=False)
    assert "older (version 1) than the one that the manager works from (version 7)" in str(
        caught.value
    )
    assert "holdfast records repair" in str(caught.value)
    assert cluster.n1.state_path.read_bytes() == before


def test_a_number_that_is_far_too_high_is_lowered_by_the_repair(cluster):
    with closing(ClusterStorage(cluster.n2)) as storage:
        forged = reporting("n2", WEB, epoch=10**9, commands=10**12, config_version=10**9)
        storage.write_report(forged)
    repair_records(cluster.n1, Keep.FILE, BY, check=False, timeout=0.0)
    newest = cluster.newest()
    assert (newest.generation, newest.version) == (1, 2)
