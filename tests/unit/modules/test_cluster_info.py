# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module cluster_info: it tells what stands on the storage, and no password of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.tests.unit.module_runner import run_failing, run_ok


def declare(config):
    parameters = {"path": "/srv/x", "password": "7777777"}
    resource = {"name": "r", "agent": "ocf:test:thing", "parameters": parameters}
    run_ok("service", {"config": config, "name": "web", "resources": [resource]})


def test_a_storage_that_is_gone_fails_the_task(node_config, tmp_path):
    (tmp_path / "storage" / "c1.metadata").unlink()
    assert "c1.metadata" in run_failing("cluster_info", {"config": node_config})


@pytest.mark.parametrize("until", ["settled", "recovered"])
def test_a_wait_that_is_in_vain_ends_with_what_is_missing(node_config, until):
    message = run_failing(
        "cluster_info",
        {"config": node_config, "until": until, "failover_of": "n2", "timeout": 0.1},
    )
    assert message.startswith("The cluster is not as asked after 0.1 s: ")
    assert "No node holds the manager lease" in message
    assert "There was no failover of node n2 yet." in message
    assert ("Node n1 is unknown" in message) == (until == "settled")


@pytest.mark.usefixtures("an_earlier_version")
def test_without_a_manager_the_state_is_told_as_it_is(node_config):
    declare(node_config)
    result = run_ok("cluster_info", {"config": node_config, "failover_of": "n2"})
    assert not result["changed"]
    assert result["manager"]["active"] is False
    assert sorted(result["nodes"]) == ["n1", "n2", "n3"]
    assert result["config_version"] == 1
    assert result["problems"]
    assert any("No node holds the manager lease" in line for line in result["text"])
    assert "running_here" not in result
    assert "7777777" not in json.dumps(result)


@pytest.mark.usefixtures("an_earlier_version")
def test_the_agents_are_asked_only_when_told_to(node_config):
    declare(node_config)
    result = run_ok("cluster_info", {"config": node_config, "probe": True})
    assert result["running_here"] == {"web": "stopped"}


@pytest.mark.usefixtures("an_earlier_version")
def test_the_page_is_written_but_for_in_check_mode(node_config, tmp_path):
    page = tmp_path / "page.html"
    options = {"config": node_config, "page": str(page)}
    assert not run_ok("cluster_info", options, check=True)["changed"]
    assert not page.exists()
    declare(node_config)
    run_ok("cluster_info", options)
    text = Path(page).read_text()
    assert "n1" in text
    assert "Nothing would be moved now: no node holds the manager lease." in text
    assert "7777777" not in text
