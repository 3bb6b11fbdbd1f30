# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The execution environment's definition is one that ansible-builder takes, and asks for enough."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from cluster import CHECKOUT

pytest.importorskip("ansible_builder", reason="ansible-builder is not installed")


def build(*words: str | Path) -> str:
    found = subprocess.run(
        [str(Path(sys.executable).with_name("ansible-builder")), *map(str, words)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


def test_the_definition_makes_a_context_for_an_image(tmp_path: Path) -> None:
    context = tmp_path / "context"
    definition = CHECKOUT / "execution-environment.yml"
    build("create", "-f", definition, "-c", context, "--output-filename", "Containerfile")
    text = (context / "Containerfile").read_text()
    assert "quay.io/centos/centos:stream9" in text
    assert "netaddr" in (context / "_build" / "requirements.txt").read_text()


def test_the_collection_says_itself_what_it_needs(tmp_path: Path) -> None:
    place = tmp_path / "ansible_collections" / "holdfast"
    place.mkdir(parents=True)
    (place / "ha").symlink_to(CHECKOUT)
    told = yaml.safe_load(build("introspect", tmp_path))
    assert any("netaddr" in one for one in told["python"])
    assert any("openssh-client" in one for one in told["system"])


def test_awx_has_nothing_to_install_for_the_checkout(tmp_path: Path) -> None:
    found = subprocess.run(
        [
            *(sys.executable, "-m", "ansible.cli.galaxy", "collection", "install"),
            *("-r", str(CHECKOUT / "collections" / "requirements.yml"), "-p", str(tmp_path)),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert not (tmp_path / "ansible_collections").exists()
