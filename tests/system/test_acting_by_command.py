# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Without Ansible: an operator drains, moves, fences and brings back by the command alone."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.main import main
from cluster import NODES, EmbeddedCluster


def other_than(*nodes: str) -> str:
    return next(name for name in NODES if name not in nodes)


def test_a_service_is_drained_moved_fenced_away_and_stopped_by_the_command_alone(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    def holdfast(*words: str, on: str) -> str:
        status = main([*words, "--config", str(cluster.config(on))])
        said = capsys.readouterr()
        assert status == 0, said.err
        return said.out

    first = cluster.status()["services"]["web"]["node"]
    speaker = other_than(first)

    said = holdfast("maintenance", "drain", first, "--reason", "a new disk", on=speaker)
    second = cluster.status()["services"]["web"]["node"]
    assert second not in ("", first)
    assert said.startswith(f"{first} is drained\n")
    assert f"  web is on {second}\n" in said
    holdfast("maintenance", "return", first, on=speaker)

    cluster.wait_settled()
    target = other_than(cluster.status()["services"]["web"]["node"])
    assert f"web is on {target}" in holdfast("service", "move", "web", target, on=speaker)
    speaker = other_than(target)
    said = holdfast("fence", target, "--reason", "it hangs", "--yes", on=speaker)
    assert "recovered" in said
    status = cluster.status()
    assert status["services"]["web"]["node"] not in ("", target)
    assert status["nodes"][target]["maintenance"]["reason"] == "fenced: it hangs"
    assert not cluster.running().get("web", []).count(target)

    said = holdfast("unfence", target, on=speaker)
    assert cluster.status()["nodes"][target]["state"] == "online"
    assert f"{target} is in use again" in said
    assert holdfast("service", "stop", "web", on=speaker).startswith("web is stopped\n")
    assert "web" not in cluster.running()
    holdfast("service", "start", "web", on=speaker)
