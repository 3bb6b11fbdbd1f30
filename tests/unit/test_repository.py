# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The project's address is that of ``galaxy.yml`` in each file, and is replaced in all at once."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "repository.py"

if not SCRIPT.exists():
    pytest.skip("only a checkout has the script", allow_module_level=True)

sys.path.insert(0, str(SCRIPT.parent))
spec = importlib.util.spec_from_file_location("holdfast_repository", SCRIPT)
repository = importlib.util.module_from_spec(spec)
spec.loader.exec_module(repository)
sys.path.remove(str(SCRIPT.parent))

NEW = "https://git.example.org/team/holdfast.ha"


def test_each_file_has_the_address_of_galaxy_yml():
    address = repository.address(ROOT)
    host = re.match(r"https://[^/]+", address)[0]
    paths = repository.having(host, repository.words.tracked(ROOT))
    assert len(paths) > 5
    for path in paths:
        text = path.read_text(encoding="utf-8")
        assert text.count(host) == text.count(address), path


def test_all_links_of_the_collection_are_below_its_repository():
    galaxy = yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))
    for name in ("homepage", "documentation", "issues"):
        assert galaxy[name].startswith(galaxy["repository"])
    links = yaml.safe_load((ROOT / "docs" / "docsite" / "links.yml").read_text(encoding="utf-8"))
    for link in links["extra_links"]:
        assert link["url"].startswith(galaxy["repository"])
    for address in (galaxy["documentation"], *(link["url"] for link in links["extra_links"])):
        name = address.partition("/blob/main/")[2]
        assert not name or (ROOT / name).is_file()


def test_a_new_address_replaces_the_old_one_in_all_files(tmp_path):
    old = repository.address(ROOT)
    (tmp_path / "docs").mkdir()
    (tmp_path / "galaxy.yml").write_text((ROOT / "galaxy.yml").read_text())
    (tmp_path / "docs" / "a.md").write_text(f"[a]({old}/issues) and {old}\n")
    (tmp_path / "docs" / "b.md").write_text("no address\n")
    changed = repository.replace(tmp_path, f"{NEW}/")
    assert [path.name for path in changed] == ["a.md", "galaxy.yml"]
    assert (tmp_path / "docs" / "a.md").read_text() == f"[a]({NEW}/issues) and {NEW}\n"
    assert repository.address(tmp_path) == NEW
    assert old not in (tmp_path / "galaxy.yml").read_text()
