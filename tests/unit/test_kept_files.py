# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of each released version are read, and mean what they meant; newer ones are refused."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import HoldfastError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.topology import (
    load_fence_configuration,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration_file import (
    load,
)
from ansible_collections.holdfast.ha.tests.kept.meaning import meaning, place

KEPT = Path(__file__).resolve().parents[1] / "kept"
VERSIONS = sorted(path.name.removesuffix(".tar.gz") for path in KEPT.glob("*.tar.gz"))


OWN = ("nodes/", "fence.json")
"""A node's own files; what is on the storage has 100 MB, nearly all of it zeros."""


def unpacked(version: str, folder: Path, beginning: tuple[str, ...] = ("",)) -> Path:
    with tarfile.open(KEPT / f"{version}.tar.gz") as archive:
        archive.extractall(folder, [one for one in archive if one.name.startswith(beginning)])
    place(folder)
    return folder


def lacking(kept: Any, found: Any, where: str = "") -> list[str]:
    """Return where *found* lacks something of *kept*; what is new in it is no matter."""
    if isinstance(kept, dict) and isinstance(found, dict):
        missing = [f"{where}.{key}" for key in kept if key not in found]
        return missing + [
            one
            for key in kept
            if key in found
            for one in lacking(kept[key], found[key], f"{where}.{key}")
        ]
    if isinstance(kept, list) and isinstance(found, list) and len(kept) == len(found):
        pairs = enumerate(zip(kept, found))
        return [one for n, (old, new) in pairs for one in lacking(old, new, f"{where}[{n}]")]
    return [] if kept == found else [f"{where}: {kept!r} became {found!r}"]


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_version_wrote_means_what_it_meant(version: str, tmp_path: Path) -> None:
    kept = json.loads((KEPT / f"{version}.json").read_text(encoding="utf-8"))
    assert lacking(kept, meaning(unpacked(version, tmp_path))) == []


def test_a_set_of_this_or_an_earlier_version_is_kept() -> None:
    assert VERSIONS


@pytest.mark.parametrize("found", [2, 0, "1", True, None])
@pytest.mark.parametrize("what", ["node", "fence"])
def test_a_format_that_is_not_known_is_refused_with_its_number(
    what: str, found: object, tmp_path: Path
) -> None:
    folder = unpacked(VERSIONS[-1], tmp_path, OWN)
    paths = {"node": folder / "nodes" / "n1" / "node.json", "fence": folder / "fence.json"}
    document = json.loads(paths[what].read_text(encoding="utf-8"))
    paths[what].write_text(json.dumps({**document, "format": found}), encoding="utf-8")
    with pytest.raises(HoldfastError) as error:
        if what == "node":
            load(paths["node"])
        else:
            load_fence_configuration(str(paths["fence"]))
    assert f"has format version {found!r}" in str(error.value)
    assert "update it" in str(error.value)


@pytest.mark.parametrize("what", ["node", "fence"])
def test_a_file_without_a_format_is_of_the_first(what: str, tmp_path: Path) -> None:
    folder = unpacked(VERSIONS[-1], tmp_path, OWN)
    path = folder / "fence.json" if what == "fence" else folder / "nodes" / "n1" / "node.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document.pop("format") == 1
    path.write_text(json.dumps(document), encoding="utf-8")
    path.chmod(0o600)
    found = load_fence_configuration(str(path)).levels if what == "fence" else load(path).members
    assert set(found) == {"n1", "n2", "n3"}
