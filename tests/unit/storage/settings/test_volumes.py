# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which logical volumes a cluster may use."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.settings.volumes import (  # noqa: E501
    check_volumes,
    targets_in,
)

LINEAR = "0 8192 linear 254:0 2048\n8192 8192 linear 254:0 20480\n"
TABLES = {
    LINEAR: "",
    "0 8192 striped 2 128 8:16 2048 8:32 2048\n": "",
    "0 8192 thin 254:3 1\n": "vg-ha is a thin volume: ",
    "0 8192 snapshot-origin 254:4\n": "vg-ha is a volume with a snapshot: ",
    "0 8192 raid raid1 3 0 region_size 4096 2 254:1 254:2 254:3 254:4\n": "vg-ha is a RAID volume",
    "0 8192 linear 254:0 2048\n8192 8192 mirror core 2 1024 block_on_error 2 254:1 0 8:16 0\n": (
        "vg-ha is a mirror, or its extents are being moved (pvmove): "
    ),
    "0 8192 cache 254:1 254:2 254:3 128 2 metadata2 writethrough smq 0\n": "volume with a cache",
    "0 4096 error \n4096 4096 linear 8:16 2048\n": "lacks a physical volume",
    "0 8192 vdo V4 /dev/dm-3 1048576 4096 32768 16380\n": "vg-ha is a volume of kind vdo: ",
}


@pytest.fixture
def system(tmp_path):
    """A sysfs with dm-1, a logical volume on the multipath device dm-0, and a partition of it."""
    blocks = tmp_path / "class/block"
    for name, uuid, shown in (("dm-0", "mpath-36", "ha-lun"), ("dm-1", "LVM-0Ngg", "vg-ha")):
        (blocks / name / "dm").mkdir(parents=True)
        (blocks / name / "dm/uuid").write_text(f"{uuid}\n")
        (blocks / name / "dm/name").write_text(f"{shown}\n")
    (blocks / "dm-1/slaves/dm-0").mkdir(parents=True)
    (blocks / "dm-1/dm-1p1").mkdir()
    (blocks / "dm-1/dm-1p1/partition").write_text("1\n")
    (blocks / "dm-1p1").symlink_to(blocks / "dm-1/dm-1p1")
    return tmp_path


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", ["dm-1", "dm-1p1"])
def test_only_a_volume_that_maps_straight_is_safe(system, table, name):
    asked = []

    def targets(volume):
        asked.append(volume)
        return targets_in(table)

    problems = check_volumes(name, system, targets)
    assert asked == ["vg-ha"]
    assert len(problems) == bool(TABLES[table])
    assert TABLES[table] in "".join(problems)


def test_a_device_without_logical_volumes_is_not_asked_about(system):
    assert check_volumes("dm-0", system, lambda _volume: ["thin"]) == []
