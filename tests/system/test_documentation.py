# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples of the documentation: commands are run, YAML is read, tasks and plays are checked.

A block that begins with ``sh run`` is run on a cluster, with the commands and files of which
its page speaks; ``sh run=01`` may end with either status.  A block of YAML whose first line
names a file is that file.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster import CHECKOUT, EmbeddedCluster
from module_archives import shared_in
from playing import ansible_environment, write_inventory

PAGES = sorted(
    [CHECKOUT / "README.md", *CHECKOUT.glob("docs/*.md"), *CHECKOUT.glob("roles/*/*.md")]
)
BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<kind>\w*)(?P<run> run(=(?P<ends>\d+))?)?\n"
    r"(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """One block of a page: its kind, its text, and the exit statuses that it may end with."""

    kind: str
    text: str
    ends: tuple[int, ...]


def blocks(page: Path) -> list[Block]:
    found = []
    for one in BLOCK.finditer(page.read_text(encoding="utf-8")):
        text = re.sub(f"^{one['indent']}", "", one["text"], flags=re.MULTILINE)
        ends = tuple(int(digit) for digit in one["ends"] or "0") if one["run"] else ()
        found.append(Block(one["kind"], text, ends))
    return found


RUN = [page for page in PAGES if any(block.ends for block in blocks(page))]
WITH_YAML = [page for page in PAGES if any(block.kind == "yaml" for block in blocks(page))]


def test_there_are_examples_to_run() -> None:
    assert {page.name for page in RUN} >= {"first-hour.md", "runbooks.md", "playbooks.md"}


@pytest.fixture
def shell(cluster: EmbeddedCluster, tmp_path: Path) -> dict[str, str]:
    """The environment of a shell that has the commands, beside an inventory of the cluster."""
    inventory = tmp_path / "hosts.yml"
    write_inventory(cluster, inventory)
    hosts = yaml.safe_load(inventory.read_text())
    # On a real node it is kept where only root can write.
    hosts["holdfast"]["vars"] = {"fence_rehearsal_report": str(tmp_path / "rehearsal.json")}
    inventory.write_text(yaml.safe_dump(hosts))
    commands = tmp_path / "bin"
    commands.mkdir()
    library = cluster.folder / "lib" / "holdfast.pyz"
    for name, module in (("holdfast", "holdfast"), ("ansible-playbook", "ansible.cli.playbook")):
        path = commands / name
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n')
        path.chmod(0o755)
    return ansible_environment(
        tmp_path,
        PATH=f"{commands}:{os.environ['PATH']}",
        PYTHONPATH=str(library),
        HOLDFAST_CONFIG=str(cluster.config("n1")),
        **shared_in(tmp_path.parent / "module-archives"),
    )


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.name)
def test_the_commands_of_a_page_do_what_it_says(
    page: Path, cluster: EmbeddedCluster, shell: dict[str, str], tmp_path: Path
) -> None:
    before = set(cluster.status()["services"])
    try:
        for block in blocks(page):
            named = re.match(r"# (\w+\.yml)\n", block.text)
            if block.kind == "yaml" and named and not (tmp_path / named[1]).exists():
                (tmp_path / named[1]).write_text(block.text)
            if block.ends:
                found = subprocess.run(
                    ["bash", "-euo", "pipefail", "-c", block.text],
                    cwd=tmp_path,
                    env=shell,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    timeout=600,
                    check=False,
                )
                assert found.returncode in block.ends, block.text + found.stdout + found.stderr
    finally:
        for rule in cluster.status("n2")["rules"]:
            if rule["name"] not in ("sides",):
                cluster.declare_rule(rule["name"], rule["services"], state="absent")
        for service in set(cluster.status("n2")["services"]) - before:
            cluster.remove(service)
    cluster.wait_settled()


def as_plays(document: Any) -> list[dict[str, Any]]:
    """Return plays as they are and tasks as a play; nothing for what is neither."""
    if not isinstance(document, list) or not all(isinstance(one, dict) for one in document):
        return []
    if all("hosts" in one or "import_playbook" in one for one in document):
        return [one for one in document if "hosts" in one]
    if any("." in key for one in document for key in one):
        return [{"name": "Example", "hosts": "all", "gather_facts": False, "tasks": document}]
    return []


def examples() -> list[tuple[str, str]]:
    """Return each text of YAML with where it stands: pages, and the examples of modules."""
    found = [
        (str(page.relative_to(CHECKOUT)), block.text)
        for page in WITH_YAML
        for block in blocks(page)
        if block.kind == "yaml"
    ]
    for path in sorted(CHECKOUT.glob("plugins/modules/*.py")):
        spec = importlib.util.spec_from_file_location(
            f"ansible_collections.holdfast.ha.plugins.modules.{path.stem}", path
        )
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found.append((path.name, module.EXAMPLES))
    return found


def test_each_example_in_yaml_is_read_and_its_tasks_and_plays_are_taken(tmp_path: Path) -> None:
    plays: list[dict[str, Any]] = []
    for place, text in examples():
        try:
            documents = list(yaml.safe_load_all(text))
        except yaml.YAMLError as error:
            raise AssertionError(f"{place}: {error}") from error
        for document in documents:
            plays.extend(as_plays(document))
    assert len(plays) > 30
    book = tmp_path / "examples.yml"
    book.write_text(yaml.safe_dump(plays, sort_keys=False))
    found = subprocess.run(
        [sys.executable, "-m", "ansible.cli.playbook", "--syntax-check", str(book)],
        env=ansible_environment(tmp_path),
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr


LINK = re.compile(r"\]\((?!https?:)(?P<path>[^)#\s]*)(?:#(?P<part>[\w-]+))?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_each_link_of_a_page_leads_somewhere(page: Path) -> None:
    for link in LINK.finditer(page.read_text(encoding="utf-8")):
        target = (page.parent / link["path"]).resolve() if link["path"] else page
        assert target.exists(), link[0]
        if link["part"]:
            titles = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            parts = {re.sub(r"[^\w -]", "", one).lower().replace(" ", "-") for one in titles}
            assert link["part"] in parts, link[0]
