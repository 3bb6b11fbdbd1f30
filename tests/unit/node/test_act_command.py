# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the command does to a cluster: it asks before it cuts, and says what it did and did not."""

from __future__ import annotations

import io
import json

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    NodeState,
    NodeStatus,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import FenceError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence import apply
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_storage import (
    ClusterStorage,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration_file import (
    load,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli import (
    fence,
    rehearse_fence,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.main import main
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations import (
    service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.result import Result
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.record_format import (
    Kind,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.records import (
    RecordFile,
)
from ansible_collections.holdfast.ha.tests.unit.fence.device_script import calls, write_device
from ansible_collections.holdfast.ha.tests.unit.node.declaring import RESOURCE, Cluster
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import configuration


@pytest.fixture
def cluster(tmp_path):
    """A cluster of which n1 is on."""
    made = Cluster(tmp_path)
    yield made
    made.close()


@pytest.fixture
def holdfast(cluster, capsys):
    """Run the command on n1; returns its exit status, what it said, and what it complained of."""

    def run(*words):
        status = main([*words, "--config", str(cluster.path)])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


@pytest.fixture
def device(cluster):
    """The folder of a fence device that does what it is told, for n1 and n2."""
    return write_devices(cluster)


def write_devices(cluster, **does):
    folder = cluster.folder / "device"
    agent = write_device(folder, **does)
    levels = {name: {"levels": [[{"device": "d", "plug": name[1]}]]} for name in ("n1", "n2")}
    devices = {"d": {"agent": agent, "parameters": {"ip": "x"}, "timeout": 3}}
    path = cluster.configuration.fence_configuration
    path.write_text(json.dumps({"devices": devices, "nodes": levels}))
    path.chmod(0o600)
    return folder


def test_a_node_is_drained_with_a_reason_and_used_again(holdfast, cluster):
    asked = ("maintenance", "drain", "n2", "--reason", "a new disk", "--for", "2h", "--no-wait")
    assert holdfast(*asked) == (0, "n2 is to be drained\n", "")
    found = cluster.desired().maintenance["n2"]
    assert (found.reason, round(found.until - found.since)) == ("a new disk", 7200)
    assert holdfast(*asked) == (0, "already requested; no change\n", "")
    assert holdfast("maintenance", "return", "n2", "--no-wait")[:2] == (
        0,
        "n2 is to be in use again\n",
    )
    assert not cluster.desired().maintenance


@pytest.mark.parametrize("action", [("drain", "n2"), ("hold",)])
def test_a_span_counts_from_the_beginning_and_the_help_says_so(holdfast, cluster, capsys, action):
    asked = ("maintenance", *action, "--reason", "disks", "--no-wait")

    def kept():
        desired = cluster.desired()
        return desired.maintenance.get("n2") or desired.global_maintenance

    holdfast(*asked)
    begun = kept().since
    holdfast(*asked, "--for", "2h")
    assert (kept().since, kept().until) == (begun, begun + 7200)
    assert holdfast(*asked, "--for", "2h")[1].startswith("already requested")
    with pytest.raises(SystemExit):
        holdfast("maintenance", action[0], "--help")
    helped = " ".join(capsys.readouterr().out.split())
    assert "7d after its beginning: of one in force, after that one's" in helped


def test_whoever_asks_why_a_node_is_drained_hears_who_became_root_for_it(
    holdfast, cluster, monkeypatch
):
    cluster.manager_says(1)
    monkeypatch.setenv("SUDO_USER", "alice")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    holdfast("maintenance", "drain", "n2", "--reason", "a new disk", "--no-wait")
    assert "by alice: a new disk" in holdfast("why", "n2")[1]


def on_n2(cluster, state=ServiceState.STARTED, **more):
    """Have the manager say that all nodes are online, and web is on n2."""
    if not cluster.desired().services:
        cluster.service("web", resources=[RESOURCE])
        for name in ("n1", "n2", "n3"):
            there = ClusterStorage(configuration(cluster.folder, name))
            there.write_report(Report(name))
            there.close()
    nodes = {name: NodeStatus(NodeState.ONLINE) for name in ("n1", "n2", "n3")}
    web = ServiceStatus(state, "n2", reason="so it is")
    cluster.manager_says(cluster.desired().version, {"web": web}, nodes, **more)


def test_a_node_that_would_not_be_emptied_is_not_drained_unless_that_is_meant(holdfast, cluster):
    asked = ("maintenance", "drain", "n2", "--reason", "a new disk", "--no-wait")
    refusals = []
    for state, more in (
        (ServiceState.STARTED, {"hold": Maintenance("new switches", "ada")}),
        (ServiceState.STARTED, {"disarm": "disarmed", "disarm_mode": "freeze"}),
        (ServiceState.ERROR, {}),
    ):
        on_n2(cluster, state, **more)
        for dry in ([], ["--dry-run"]):
            status, said, complained = holdfast(*asked, *dry)
            assert (status, said, not cluster.desired().maintenance) == (2, "", True)
        refusals.append(complained)
    assert "the cluster is in global maintenance (by ada: new switches), so that" in refusals[0]
    assert "the cluster is disarmed (freeze), so that" in refusals[1]
    assert "not everything can leave: web: it is in the state error: so it is." in refusals[2]
    assert all("use --yes" in one for one in refusals)
    assert holdfast(*asked, "--yes")[:2] == (0, "n2 is to be drained\n")
    # It is asked for already, so that whoever says so again only waits, or tells another reason.
    assert holdfast(*asked)[:2] == (0, "already requested; no change\n")
    holdfast("maintenance", "return", "n2", "--no-wait")
    on_n2(cluster)
    assert holdfast(*asked)[0] == 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            ("maintenance", "drain", "n9", "--reason", "disks"),
            "one of the cluster's nodes (n1, n2, n3)",
        ),
        (
            ("maintenance", "drain", "n2", "--reason", "disks", "--for", "soon"),
            "a span such as 90s, 30m, 2h or 7d",
        ),
        (("maintenance", "drain", "n2", "--reason", ""), "the reason, in a few words"),
        (("maintenance", "hold", "--reason", " "), "the reason, in a few words"),
        (("maintenance", "disarm", "--reason", "", "--yes"), "the reason, in a few words"),
        (("fence", "n2", "--reason", "", "--yes"), "the reason, in a few words"),
        (("service", "start", "web"), "the id of a declared service (there are none yet)"),
        (("service", "move", "web", "n2"), "the id of a declared service"),
        (("service", "move", "web"), "only --unpin needs none"),
        (("service", "move", "web", "--unpin"), "the id of a declared service"),
        (("fence", "n1", "--reason", "it hangs", "--yes"), "another node than this one"),
        (("fence", "n9", "--reason", "it hangs", "--yes"), "one of the cluster's nodes"),
        (("unfence", "n1"), "another node than this one"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence_and_nothing_is_done(
    holdfast, cluster, device, words, complaint
):
    status, said, complained = holdfast(*words)
    assert (status, said) == (2, "")
    assert complaint in complained
    assert len(complained.splitlines()) == 1
    assert cluster.desired().version == 0
    assert calls(device) == []


@pytest.mark.parametrize(
    "words", [("maintenance", "drain", "n2"), ("maintenance", "hold"), ("maintenance", "disarm")]
)
def test_nobody_takes_nodes_from_the_manager_without_saying_why(holdfast, cluster, words):
    status, _said, complained = holdfast(*words, "--no-wait")
    assert status == 2
    assert "the following arguments are required: --reason" in complained
    assert cluster.desired().version == 0


def test_a_dry_run_says_what_would_change_and_changes_nothing(holdfast, cluster, device):
    for words, expected in (
        (("maintenance", "drain", "n2", "--reason", "disks"), "n2 would be drained\n"),
        (
            ("maintenance", "disarm", "--mode", "ignore", "--reason", "new switches"),
            "the cluster would be disarmed (ignore)\n",
        ),
        (("fence", "n2", "--reason", "it hangs"), "n2 would be switched off\n"),
    ):
        status, said, complained = holdfast(*words, "--dry-run")
        assert (status, complained) == (0, "")
        assert expected in said
    assert cluster.desired().version == 0
    assert calls(device) == ["status 2"]


def test_the_cluster_is_paused_disarmed_and_managed_again(holdfast, cluster):
    assert holdfast("maintenance", "hold", "--reason", "storage", "--no-wait")[0] == 0
    assert cluster.desired().global_maintenance.reason == "storage"
    assert "managed again" in holdfast("maintenance", "end", "--no-wait")[1]
    assert cluster.desired().global_maintenance is None
    disarm = ("maintenance", "disarm", "--reason", "sanlock", "--yes", "--no-wait")
    assert holdfast(*disarm)[0] == 0
    assert cluster.desired().disarm == "freeze"
    assert cluster.desired().disarmed_by.reason == "sanlock"
    assert holdfast("maintenance", "end", "--no-wait")[0] == 0
    assert cluster.desired().disarm == ""


def test_no_cluster_is_disarmed_unless_somebody_agrees(holdfast, cluster, monkeypatch):
    asked = ("maintenance", "disarm", "--reason", "sanlock", "--no-wait")
    name = load(cluster.path).cluster
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{name}\n"))
    status, _said, complained = holdfast(*asked)
    assert (status, "no terminal to confirm; use --yes" in complained) == (2, True)
    terminal = io.StringIO("yes\n")
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stdin", terminal)
    status, said, complained = holdfast(*asked)
    assert (status, f"not disarming {name}: " in complained) == (2, True)
    assert "no service is recovered and no node is fenced" in said
    assert cluster.desired().disarm == ""
    terminal = io.StringIO(f"{name}\n")
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stdin", terminal)
    assert holdfast(*asked)[0] == 0
    assert cluster.desired().disarm == "freeze"


def test_a_service_is_stopped_and_started_by_its_name(holdfast, cluster):
    cluster.service("web", resources=[RESOURCE])
    assert holdfast("service", "stop", "web", "--no-wait") == (0, "web is to be stopped\n", "")
    assert cluster.desired().services["web"].state == "stopped"
    assert holdfast("service", "start", "web", "--no-wait") == (0, "web is to be started\n", "")
    assert cluster.desired().services["web"].state == "started"


def test_no_power_is_cut_unless_somebody_agrees(holdfast, cluster, device, monkeypatch):
    asked = ("fence", "n2", "--reason", "it hangs", "--no-wait")
    monkeypatch.setattr("sys.stdin", io.StringIO("n2\n"))
    status, _said, complained = holdfast(*asked)
    assert (status, "no terminal to confirm" in complained) == (2, True)
    terminal = io.StringIO("yes\n")
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stdin", terminal)
    status, said, complained = holdfast(*asked)
    assert (status, "not fencing n2: " in complained) == (2, True)
    assert said.startswith("This cuts the power of n2")
    assert (calls(device), cluster.desired().version) == ([], 0)
    terminal = io.StringIO("n2\n")
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stdin", terminal)
    assert holdfast(*asked)[0] == 0
    assert "off 2" in calls(device)


def test_a_node_is_fenced_with_its_reason_kept_and_comes_back_by_unfence(holdfast, cluster, device):
    holdfast("maintenance", "drain", "n2", "--reason", "disks", "--for", "2h", "--no-wait")
    status, said, _said = holdfast("fence", "n2", "--reason", "it hangs", "--yes", "--no-wait")
    assert (status, "n2 is off: " in said, "empty until 'holdfast unfence'" in said) == (
        0,
        True,
        True,
    )
    kept = cluster.desired().maintenance["n2"]
    assert (kept.reason, kept.until) == ("fenced: it hangs", 0.0)
    status, said, _said = holdfast("unfence", "n2", "--no-wait")
    assert (status, "n2 is to be in use again" in said) == (0, True)
    assert [one for one in calls(device) if one.startswith("o")] == ["off 2", "on 2"]
    assert not cluster.desired().maintenance


def test_a_node_that_was_fenced_by_hand_is_not_used_again_unless_that_is_meant(
    holdfast, cluster, device
):
    holdfast("fence", "n2", "--reason", "it hangs", "--yes", "--no-wait")
    asked = ("maintenance", "return", "n2", "--no-wait")
    for more in ([], ["--dry-run"]):
        status, said, complained = holdfast(*asked, *more)
        assert (status, said) == (2, "")
        assert "fenced: it hangs" in complained and "'holdfast unfence n2'" in complained
    assert "n2" in cluster.desired().maintenance
    assert holdfast(*asked, "--yes")[:2] == (0, "n2 is to be in use again\n")
    assert not cluster.desired().maintenance


@pytest.mark.parametrize("more", [[], ["--for", "1h"]])
def test_a_drain_takes_the_place_of_no_fence_by_hand(holdfast, cluster, device, more):
    holdfast("fence", "n2", "--reason", "it hangs", "--yes", "--no-wait")
    status, _said, complained = holdfast(
        "maintenance", "drain", "n2", "--reason", "new kernel", "--no-wait", *more
    )
    assert (status, "n2 was fenced by hand (fenced: it hangs)" in complained) == (0, True)
    kept = cluster.desired().maintenance["n2"]
    assert (kept.reason, kept.until) == ("fenced: it hangs", 0.0)
    assert holdfast("maintenance", "return", "n2", "--no-wait")[0] == 2


def test_no_power_is_cut_while_nothing_would_be_recovered_unless_that_is_meant(
    holdfast, cluster, device
):
    asked = ("fence", "n2", "--reason", "it hangs", "--yes")
    holdfast("maintenance", "hold", "--reason", "storage", "--no-wait")
    status, _said, complained = holdfast(*asked)
    assert (status, "in global maintenance, so that nothing would" in complained) == (2, True)
    holdfast("maintenance", "end", "--no-wait")
    cluster.manager_says(2, disarm="disarmed", disarm_mode="freeze")
    status, _said, complained = holdfast(*asked)
    assert (status, "is disarmed (freeze), so that nothing would" in complained) == (2, True)
    assert calls(device) == []
    status, said, _said = holdfast(*asked, "--while-paused")
    assert (status, said.splitlines()[-1]) == (
        0,
        "nothing is recovered: the cluster is disarmed (freeze)",
    )
    assert "off 2" in calls(device)


def test_a_fence_is_done_only_once_the_cluster_knows_of_it(holdfast, cluster, device):
    cluster.manager_says(1, nodes={"n2": NodeStatus(NodeState.ONLINE)})
    status, said, complained = holdfast("fence", "n2", "--reason", "x", "--yes", "--timeout", "0.1")
    assert (status, "recovered" in said) == (2, False)
    assert "Node n2 is not known to be off yet" in complained


def test_a_node_that_somebody_drained_for_something_else_is_not_switched_on(
    holdfast, cluster, device
):
    (device / "state-2").write_text("off")
    cluster.maintenance(reason="chassis open", owner="ada")
    for more in ([], ["--dry-run"]):
        status, said, complained = holdfast("unfence", "n2", "--no-wait", *more)
        assert (status, said) == (2, "")
        assert "by ada: chassis open" in complained and "--yes" in complained
    assert calls(device) == []
    assert cluster.desired().maintenance["n2"].reason == "chassis open"
    assert holdfast("unfence", "n2", "--yes", "--no-wait")[0] == 0
    assert "on 2" in calls(device)
    assert not cluster.desired().maintenance


def test_a_device_that_only_says_so_is_no_fence_and_the_node_stays_drained(holdfast, cluster):
    write_devices(cluster, off="echo 'Success: Powered OFF'")
    status, _said, complained = holdfast("fence", "n2", "--reason", "x", "--yes", "--no-wait")
    assert status == 1
    assert "not proved off" in complained
    assert "'holdfast undrain n2 --yes'" in complained
    assert cluster.desired().maintenance["n2"].reason == "fenced: x (not proved off)"


def test_a_node_whose_device_only_cuts_access_is_not_said_to_lose_its_power(
    holdfast, cluster, monkeypatch
):
    folder = write_devices(cluster, name="fence_scsi", automatic_on=True)
    asked = []
    monkeypatch.setattr(fence, "confirm", lambda *words: asked.extend(words[2:]))
    assert holdfast("fence", "n2", "--reason", "x", "--no-wait")[0] == 0
    assert asked[0].startswith("No device of n2 switches its power (d plug 2: it cuts access")
    before = calls(folder)
    for more in ([], ["--dry-run"]):
        status, said, complained = holdfast("unfence", "n2", "--no-wait", *more)
        assert (status, said) == (2, "")
        assert "Switch it on by hand" in complained
        assert "'holdfast undrain n2 --yes'" in complained
    assert calls(folder) == before
    assert cluster.desired().maintenance["n2"].reason == "fenced: x"


def test_a_node_that_is_in_use_is_not_said_to_be_used_again(holdfast, cluster, device):
    status, said, _said = holdfast("unfence", "n2", "--no-wait")
    assert (status, said.splitlines()[-1]) == (0, "n2 is already in use again")


def test_a_service_that_is_in_no_error_is_not_started_by_clearing_it(holdfast, cluster):
    cluster.service("web", resources=[RESOURCE], state="stopped")
    cluster.manager_says(1, {"web": ServiceStatus(ServiceState.STOPPED)})
    status, _said, complained = holdfast("service", "clear", "web", "--no-wait")
    assert (status, "web is in no error, but stopped" in complained) == (2, True)
    assert cluster.desired().services["web"].state == "stopped"


def test_a_report_of_rehearsals_makes_no_folders_of_a_mistyped_path(holdfast, device, tmp_path):
    status, _said, complained = holdfast("rehearse", "--report", str(tmp_path / "x" / "y"))
    assert (status, "a file in a folder that exists" in complained) == (2, True)
    assert not (tmp_path / "x").exists()


def no_configuration(path):
    path.unlink()


def open_to_all(path):
    path.chmod(0o644)


def without_the_node(path):
    document = json.loads(path.read_text())
    del document["nodes"]["n2"]
    path.write_text(json.dumps(document))


@pytest.mark.parametrize("spoil", [no_configuration, open_to_all, without_the_node])
@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_a_node_that_cannot_be_fenced_is_not_drained_for_it(holdfast, cluster, device, spoil, more):
    spoil(cluster.configuration.fence_configuration)
    status, said, complained = holdfast("fence", "n2", "--reason", "x", "--yes", *more)
    assert (status, said) == (2, "")
    assert len(complained.splitlines()) == 1
    assert (cluster.desired().version, calls(device)) == (0, [])


def test_a_fence_that_ends_in_an_error_says_that_the_node_stays_drained(
    holdfast, cluster, device, monkeypatch
):
    def broken(*_arguments):
        raise FenceError("The fence device cannot be asked.")

    monkeypatch.setattr(apply, "operate", broken)
    status, _said, complained = holdfast("fence", "n2", "--reason", "x", "--yes", "--no-wait")
    assert status == 2
    assert complained.splitlines() == [
        "holdfast: n2 stays drained; 'holdfast undrain n2 --yes' ends that",
        "holdfast: The fence device cannot be asked.",
    ]
    assert "n2" in cluster.desired().maintenance


NASTY = "agent said: \x1b[2Jno\nway"
TAMED = "agent said: [2Jno way"


def test_what_an_agent_printed_drives_no_terminal(holdfast, cluster, device, monkeypatch):
    cluster.service("web", resources=[RESOURCE])
    ends = {"state": "error", "node": "", "reason": NASTY}
    declared = Result(True, {"status": ends}, warnings=[NASTY])
    monkeypatch.setattr(service, "declare_service", lambda *_arguments: declared)
    said = holdfast("service", "start", "web")
    assert said == (0, f"web is started\n  error: {TAMED}\n", f"holdfast: {TAMED}\n")

    found = {"verdict": "fails", "problems": [NASTY], "remarks": [NASTY]}
    rehearsed = Result(values={"nodes": {"n2": found}}, failure=NASTY)
    monkeypatch.setattr(rehearse_fence, "rehearse_fence", lambda *_arguments: rehearsed)
    assert holdfast("rehearse") == (1, f"n2: fails\n    {TAMED}\n    {TAMED}\n", "")

    switched = {"after": "on", "reason": NASTY}
    for failure, told in (
        ("", (0, f"n2 is on: {TAMED}\n", "")),
        (NASTY, (1, "", f"holdfast: {TAMED}\n")),
    ):
        end = Result(True, {"nodes": {"n2": switched}}, failure=failure)
        monkeypatch.setattr(apply, "operate", lambda *_arguments, end=end: end)
        status, said, complained = holdfast("unfence", "n2", "--no-wait")
        assert (status, said[: len(told[1])], complained) == told


def test_a_rehearsal_asks_and_switches_nothing(holdfast, device, tmp_path):
    report = tmp_path / "report.json"
    status, said, _said = holdfast("rehearse", "n2", "--report", str(report))
    assert (status, said.splitlines()[0]) == (0, "n2: works")
    assert report.exists()
    assert not [one for one in calls(device) if one.startswith("o")]


def test_the_whiteboard_is_linted_without_being_told_where_it_is(holdfast, cluster):
    assert holdfast("lint")[:2] == (0, "nothing is wrong\n")
    with cluster.configuration.metadata_path.open("r+b") as board:
        board.seek(4096 * 2)
        board.write(b"x" * 4096)
    status, said, _said = holdfast("lint")
    assert status == 1
    assert "host id 2" in said


def test_damaged_records_are_linted_too_also_those_that_are_not_in_force(holdfast, cluster):
    cluster.manager_says(1)
    cluster.service("web", resources=[RESOURCE])
    assert json.loads(holdfast("lint", "--json")[1])["records"] == []
    spoilt = ((Kind.LRM, 2), (Kind.CRM, 3), (Kind.CONFIGURATION, 3))
    with RecordFile(str(cluster.configuration.state_path)) as records:
        for kind, host_id in spoilt:
            records.write(kind, host_id, 0, b"{")
    status, said, complained = holdfast("lint")
    assert (status, complained) == (1, "")
    for line, (kind, host_id) in zip(said.splitlines(), spoilt):
        assert line.startswith(f"The {kind.name} record of host id {host_id} in ")
    assert len(said.splitlines()) == len(spoilt)
    cluster.configuration.state_path.write_bytes(b"x" * 4096)
    status, said, _said = holdfast("lint")
    assert (status, len(said.splitlines())) == (1, 1)
    assert "is not a state file of holdfast" in said
