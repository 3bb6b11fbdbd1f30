# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``holdfast membership``: what it shows, and when it accepts nothing."""

from __future__ import annotations

import json

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.membership import (  # noqa: E501
    Place,
    make_membership,
    with_version,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_storage import (
    ClusterStorage,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration_file import (
    to_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.own_membership import (  # noqa: E501
    OwnMembership,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.main import main
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import (
    NODES,
    configuration,
    create_storage,
    join,
)


class Cluster:
    """Three nodes that are on; their LRMs report the membership of their configuration."""

    def __init__(self, folder):
        create_storage(folder)
        self.nodes = [configuration(folder, name) for name in NODES]
        self.config = folder / "node.json"
        self.config.write_text(json.dumps(to_document(self.nodes[0])))
        self.leases = [join(node) for node in self.nodes]
        self.storages = [ClusterStorage(node) for node in self.nodes]
        self.own = OwnMembership(self.nodes[0]).get()
        for node, storage in zip(self.nodes, self.storages):
            storage.adopt_host_lease()
            storage.write_report(Report(node.node, "boot", membership=self.own.digest))

    def record(self, version=4, services=(), **members):
        """Let n2 be the manager, with a membership that has other *members* as well."""
        other = make_membership({**self.own.members, **members}, self.own.fence)
        found = {name: ServiceStatus(ServiceState.STARTED, node) for name, node in services}
        state = ClusterState(version, "n2", membership=with_version(other, version), services=found)
        self.storages[1].write_manager(state)

    def run(self, *words):
        return main(["membership", *words, "--config", str(self.config)])

    def accepted(self):
        return self.storages[0].read_desired()[0].membership

    def close(self):
        for one in (*self.storages, *self.leases):
            one.close()


@pytest.fixture
def cluster(tmp_path):
    found = Cluster(tmp_path)
    yield found
    found.close()


def test_nodes_that_agree_are_shown(cluster, capsys):
    cluster.record()
    assert cluster.run() == 0
    text = capsys.readouterr().out
    assert "membership version 4" in text
    assert "n3 (host id 3): agrees" in text
    assert cluster.run("--json") == 0
    assert json.loads(capsys.readouterr().out)["nodes"]["n1"]["agrees"]


def test_nodes_that_differ_are_shown_with_what_to_do(cluster, capsys):
    assert cluster.run() == 1
    assert "no manager has recorded a membership yet" in capsys.readouterr().out
    cluster.record(n4=Place(4))
    cluster.storages[2].write_report(Report("n9", "boot"))
    assert cluster.run() == 1
    text = capsys.readouterr().out
    assert "n1 (host id 1): it differs" in text
    assert "n3 (host id 3): no report under this name; last: n9" in text
    assert "n4 (host id 4): no report under this name; last: none" in text
    assert "the configuration of this node differs: it lacks n4" in text
    assert "holdfast membership accept" in text


def test_a_membership_is_accepted_for_the_recorded_version_alone(cluster, capsys):
    cluster.record(n4=Place(4))
    asked = ("accept", "--reason", "n4 is gone")
    assert cluster.run(*asked, "--dry-run") == 0
    assert cluster.accepted() is None
    assert cluster.run(*asked) == 2
    assert "no terminal to confirm; use --yes" in capsys.readouterr().err
    assert cluster.run(*asked, "--yes") == 0
    assert (cluster.accepted().digest, cluster.accepted().after) == (cluster.own.digest, 4)
    assert cluster.accepted().by.reason == "n4 is gone"
    assert cluster.run(*asked, "--yes") == 0
    assert "already requested; no change" in capsys.readouterr().out


def test_a_recorded_membership_needs_no_acceptance(cluster, capsys):
    cluster.record()
    assert cluster.run("accept", "--reason", "x", "--yes") == 0
    assert "already recorded as version 4" in capsys.readouterr().out
    assert cluster.accepted() is None


def test_a_node_that_is_removed_must_not_have_services(cluster, capsys):
    cluster.record(services=[("web", "n4")], n4=Place(4))
    assert cluster.run("accept", "--reason", "x", "--yes") == 2
    assert "n4 has web in the manager's record" in capsys.readouterr().err


def test_nothing_is_accepted_that_no_daemon_runs_with(cluster, capsys):
    cluster.record(n4=Place(4))
    cluster.storages[0].write_report(Report("n1", "boot", membership="0" * 32))
    assert cluster.run("accept", "--reason", "x", "--yes") == 2
    assert "restart holdfast-lrm and holdfast-crm" in capsys.readouterr().err


def test_the_configuration_file_may_be_named_before_the_action(cluster):
    cluster.record()
    asked = ["membership", "--config", str(cluster.config), "accept", "--reason", "x"]
    assert main(asked) == 0
    assert cluster.run("accept", "--yes") == 2, "it has no reason"
