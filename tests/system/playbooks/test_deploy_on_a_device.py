# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deploy and remove for a cluster on a block device: all nodes must see the same one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.device_header import (
    GRAIN,
    HEADER_BYTES,
    Area,
    DeviceHeader,
    decode_copies,
    encode_header,
)
from ansible_collections.holdfast.ha.tests.loop_device import loop_device
from ansible_collections.holdfast.ha.tests.system.playbooks.test_deploy_and_remove import (
    FILES,
    NODES,
    Machines,
)

SIZE = 160 << 20
ROOM = {"storage_max_hosts": 4}
ID = "6fa459ea-ee8a-3ca4-894e-db77e160355e"


class Lab(Machines):
    """Nodes whose way to the storage is a link each to a device."""

    def __init__(self, folder: Path, devices: ExitStack) -> None:
        super().__init__(folder)
        self._devices = devices
        self.lun = self.device("lun")
        for node in NODES:
            self.attach(node, self.lun)

    def device(self, name: str, content: bytes = b"") -> str:
        """Make a further device."""
        (self.folder / name).write_bytes(content)
        return self._devices.enter_context(loop_device(self.folder / name, SIZE))

    def attach(self, node: str, device: str) -> None:
        """Let the node's path lead to *device*."""
        (self.folder / node / "ha").unlink()
        (self.folder / node / "ha").symlink_to(device)

    def areas(self, device: str) -> list[str]:
        """Return the files on a device, as a folder would have them."""
        header = decode_copies(Path(device).read_bytes()[:HEADER_BYTES], device).header
        return [] if header is None else sorted(f"{header.cluster}.{kind}" for kind in header.areas)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with ExitStack() as devices:
        yield Lab(tmp_path, devices)


def test_a_cluster_is_made_once_and_removed_once_and_check_mode_says_so_before(lab: Lab) -> None:
    small = lab.deploy("--check", fails=True, storage_max_hosts=9).text
    assert "has 160 MiB, and cluster c1 with 9 host ids needs" in small
    said = lab.deploy("--check", **ROOM)
    assert said.changed > 0
    assert not any(Path(lab.lun).read_bytes())
    assert lab.deploy(**ROOM).changed > 0
    assert lab.areas(lab.lun) == FILES
    lab.configure(*NODES)
    before = Path(lab.lun).read_bytes()
    assert lab.deploy(**ROOM).changed == 0
    assert lab.deploy("--limit", "n3", **ROOM).changed == 0
    assert lab.remove("--check").changed > len(NODES)
    assert Path(lab.lun).read_bytes() == before
    assert lab.remove().changed > len(NODES)
    assert not any(Path(lab.lun).read_bytes()[:GRAIN])
    assert lab.remove().changed == len(NODES), "only what stands for the role node"


@pytest.mark.parametrize("words", [["--check"], []], ids=["check", "run"])
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (bytes(1 << 20) + b"x", "has data in its first 8 MiB that no known program wrote"),
        (encode_header(DeviceHeader("c2", ID, 512)) * 2, "belongs to cluster c2, not to c1"),
    ],
    ids=["data", "another cluster"],
)
def test_nothing_is_written_where_one_node_has_a_device_with_anything_else(
    lab: Lab, content: bytes, reason: str, words: list[str]
) -> None:
    other = lab.device("other", content)
    lab.attach("n2", other)
    before = Path(other).read_bytes()
    assert reason in lab.deploy(*words, fails=True, **ROOM).text
    assert not any(Path(lab.lun).read_bytes())
    assert Path(other).read_bytes() == before


def test_another_blank_device_under_the_same_name_is_found_before_a_daemon_runs(lab: Lab) -> None:
    lab.attach("n3", lab.device("other"))
    said = lab.deploy(fails=True, **ROOM).text
    assert "on n1 and are not there on n3: the storage is not mounted or attached" in said
    assert (
        "and not on n3: mount the same storage there, or attach the same device"
        in lab.deploy(fails=True, **ROOM).text
    )
    lab.attach("n3", lab.lun)
    assert lab.deploy(**ROOM).changed == 0


def test_the_device_of_a_cluster_of_the_same_name_is_found_by_its_id(lab: Lab) -> None:
    areas = {"lockspace": Area(GRAIN, GRAIN)}
    other = lab.device("other", encode_header(DeviceHeader("c1", ID, 512, areas)) * 2)
    lab.deploy(**ROOM)
    lab.attach("n2", other)
    before = Path(other).read_bytes()
    for words in (["--check"], []):
        said = lab.deploy(*words, fails=True, **ROOM).text
        assert "is not the same device on all nodes, by the id in its header" in said
        assert f"n2 has {ID}" in said
    assert Path(other).read_bytes() == before


def test_a_node_without_the_device_is_refused_and_no_folder_is_made(lab: Lab) -> None:
    missing = "/dev/mapper/holdfast-test-no-such-device"
    for words in (["--check"], []):
        said = lab.deploy(*words, fails=True, holdfast_storage=missing, **ROOM).text
        assert f"{missing} is not a block device on n1: attach the device there" in said
    assert not Path(missing).exists()
