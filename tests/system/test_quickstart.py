# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two commands of the README as a new user runs them: a fresh copy, a path with a space.

As root the commands run as an ordinary user, who has nothing but what every user has.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cluster import CHECKOUT, free_ports

NOBODY = 65534
LINES = 40
"""The most lines of the first run on the screen."""

PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass
class Checkout:
    """A copy of the checkout, and how its commands are run."""

    folder: Path
    home: Path
    first_port: int

    @property
    def web_port(self) -> int:
        return self.first_port + 9

    @property
    def cluster(self) -> Path:
        return self.folder / ".quickstart"

    def settings(self, **more: object) -> str:
        nodes = [
            {
                "name": f"n{i}",
                "host_id": i,
                "address": "127.0.0.1",
                "port": self.first_port + 3 * i - 3,
            }
            for i in (1, 2, 3)
        ]
        return json.dumps({"quickstart_web_port": self.web_port, "quickstart_nodes": nodes, **more})

    def quickstart(
        self, *arguments: str, timeout: float = 900.0
    ) -> subprocess.CompletedProcess[str]:
        root = os.geteuid() == 0
        return subprocess.run(
            [str(self.folder / "quickstart"), *arguments],
            cwd="/",
            env={"PATH": PATH, "HOME": str(self.home), **_package_index()},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            user=NOBODY if root else None,
            group=NOBODY if root else None,
            extra_groups=[] if root else None,
        )

    def status(self) -> dict[str, Any]:
        return dict(json.loads(self.holdfast("status", "--json").stdout))

    def holdfast(self, *words: str) -> subprocess.CompletedProcess[str]:
        root = os.geteuid() == 0
        return subprocess.run(
            [str(self.cluster / "nodes" / "n1" / "holdfast"), *words],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
            user=NOBODY if root else None,
            group=NOBODY if root else None,
            extra_groups=[] if root else None,
        )

    def machine(self, what: str, name: str) -> None:
        self.holdfast("machine", what, str(self.cluster / "nodes" / name / "node.json"))

    @property
    def log(self) -> str:
        """The output of the playbook in the last run."""
        return (self.folder / ".cache/quickstart/quickstart.log").read_text(encoding="utf-8")


def _package_index() -> dict[str, str]:
    """Return what the environment says about where packages come from."""
    return {key: value for key, value in os.environ.items() if key.startswith(("PIP_", "HTTP"))}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    """Copy what belongs to the checkout, as a clone would."""
    base = Path("/tmp") / f"holdfast quickstart {os.getpid()}"
    folder, home = base / "a checkout", base / "home"
    home.mkdir(parents=True)
    ignore = shutil.ignore_patterns(
        ".git", ".venv", ".cache", ".quickstart", "__pycache__", ".hypothesis", "output"
    )
    shutil.copytree(CHECKOUT, folder, symlinks=True, ignore=ignore)
    if os.geteuid() == 0:
        for path in (base, *base.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    copy = Checkout(folder, home, free_ports(10))
    try:
        yield copy
        copy.quickstart("--remove", "-e", copy.settings())
    finally:
        shutil.rmtree(base, ignore_errors=True)


@pytest.fixture(scope="module")
def first_run(checkout: Checkout) -> subprocess.CompletedProcess[str]:
    """Run the whole quickstart once."""
    return checkout.quickstart("-e", checkout.settings())


def recap(output: str) -> dict[str, dict[str, int]]:
    """Return Ansible's closing figures by host."""
    rows = re.findall(r"^(\S+)\s+: (ok=.*)$", output, re.MULTILINE)
    return {
        host: {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", figures)}
        for host, figures in rows
    }


def test_the_quickstart_shows_two_failovers_and_every_service_runs_once(
    checkout: Checkout, first_run: subprocess.CompletedProcess[str]
) -> None:
    assert first_run.returncode == 0, first_run.stdout[-4000:] + first_run.stderr
    text = first_run.stdout
    for part in ("the power of its node is cut", "its node hangs"):
        shown = text[text.index(part) :]
        for step in ("last heartbeat", "suspected: ", "fence sent", "web"):
            assert step in shown
    assert checkout.log.count("runs exactly once.") >= 8
    assert "is drained" in text
    assert "Cluster quickstart: healthy" in text
    for step in ("Build a cluster of three nodes", "Declare services", "Drain a node"):
        assert re.search(rf"^ +[0-9]+ s  {step}", text, re.MULTILINE)
    assert len(text.splitlines()) <= LINES
    status = checkout.status()
    assert not status["problems"]
    assert len(status["failovers"]) == 2


def test_the_web_service_answers_and_the_status_page_stands_alone(
    checkout: Checkout, first_run: subprocess.CompletedProcess[str]
) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{checkout.web_port}/", timeout=60) as answer:
        assert answer.read().startswith(b"web runs on n")
    page = (checkout.cluster / "status.html").read_text(encoding="utf-8")
    assert "resolver-a" in page
    assert "src=" not in page


def test_a_second_run_changes_nothing(
    checkout: Checkout, first_run: subprocess.CompletedProcess[str]
) -> None:
    settings = checkout.settings(quickstart_demonstrate=False)
    second = checkout.quickstart("-e", settings)
    assert second.returncode == 0, second.stdout[-3000:]
    assert {host: row["changed"] for host, row in recap(checkout.log).items()} == dict.fromkeys(
        ("localhost", "n1", "n2", "n3"), 0
    )


@pytest.mark.parametrize(
    "between",
    [
        ("stop web", "drain n2 --reason test --no-wait", "machine cut n3"),
        ("machine cut n2", "pause --reason test", "machine shutdown n1"),
        ("machine freeze n3", "disarm --reason test --yes --mode ignore --no-wait"),
    ],
    ids=["stopped, drained and cut", "cut, paused and shut down", "frozen and disarmed"],
)
def test_a_run_works_whatever_was_done_since_the_last_one(
    checkout: Checkout, first_run: subprocess.CompletedProcess[str], between: tuple[str, ...]
) -> None:
    for words in between:
        verb, *more = words.split()
        if verb == "machine":
            checkout.machine(*more)
        else:
            checkout.holdfast(verb, *more)
    again = checkout.quickstart("-e", checkout.settings(quickstart_demonstrate=False))
    assert again.returncode == 0, again.stdout[-3000:] + again.stderr
    status = checkout.status()
    assert not status["problems"] and status["disarm"] is None
    assert all(one["maintenance"] is None for one in status["nodes"].values())
    assert {one["state"] for one in status["services"].values()} == {"started"}


def test_a_machine_that_was_shut_down_starts_again(
    checkout: Checkout, first_run: subprocess.CompletedProcess[str]
) -> None:
    checkout.machine("shutdown", "n3")
    checkout.machine("start", "n3")
    info = checkout.quickstart("-e", checkout.settings(quickstart_demonstrate=False))
    assert info.returncode == 0
    assert checkout.status()["nodes"]["n3"]["state"] == "online"


def members(**changed: object) -> list[dict[str, object]]:
    nodes: list[dict[str, object]] = [
        {"name": f"n{i}", "host_id": i, "address": "127.0.0.1", "port": 7400 + 10 * i}
        for i in (1, 2, 3)
    ]
    nodes[2].update(changed)
    return nodes


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"quickstart_cluster": "a/b"}, "cluster: 'a/b' is not accepted; expected a cluster name"),
        ({"quickstart_nodes": members(host_id=0)}, "members.host_id: 0 is not accepted"),
        ({"quickstart_nodes": members(host_id=2001)}, "members.host_id: 2001 is not accepted"),
        ({"quickstart_nodes": members(host_id=2)}, "nodes 'n2' and 'n3' share it"),
        ({"quickstart_nodes": members(port=7411)}, "members.port: 7411 is not accepted"),
        ({"quickstart_folder": "/sys/kernel/here"}, "quickstart_folder: /sys/kernel/here is not"),
        ({"quickstart_folder": "here"}, "quickstart_folder: here is not accepted"),
    ],
    ids=["slash", "host id 0", "host id 2001", "same host id", "same port", "sysfs", "relative"],
)
def test_bad_settings_get_one_sentence_and_leave_nothing(
    checkout: Checkout,
    first_run: subprocess.CompletedProcess[str],
    settings: dict[str, object],
    said: str,
) -> None:
    folder = checkout.folder / "other"
    everything = {"quickstart_folder": str(folder), **settings}
    failed = checkout.quickstart("-e", checkout.settings(**everything))
    assert failed.returncode != 0
    assert said in " ".join(failed.stdout.split())
    assert not folder.exists()


def test_a_port_in_use_is_named(
    checkout: Checkout, first_run: subprocess.CompletedProcess[str]
) -> None:
    folder = checkout.folder / "other"
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        settings = checkout.settings(quickstart_folder=str(folder), quickstart_web_port=port)
        failed = checkout.quickstart("-e", settings)
    assert failed.returncode != 0
    assert f"quickstart_web_port: {port} is in use" in " ".join(failed.stdout.split())
    assert not folder.exists()


def test_removing_leaves_no_file_and_no_process(
    checkout: Checkout, first_run: subprocess.CompletedProcess[str]
) -> None:
    removed = checkout.quickstart("--remove", "-e", checkout.settings())
    assert removed.returncode == 0, removed.stdout[-3000:] + removed.stderr
    left = {path.name for path in checkout.folder.iterdir()}
    assert left <= {path.name for path in CHECKOUT.iterdir()} - {".venv", ".quickstart"}
    mark = os.fsencode(str(checkout.cluster))
    assert not [line for line in map(command_line, processes()) if mark in line]
    again = checkout.quickstart("--remove")
    assert again.returncode == 0


def processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
