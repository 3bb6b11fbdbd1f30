# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read from sysfs and multipathd, and an export that squashes root."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import StorageError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.host_timing import (  # noqa: E501
    LeaseTiming,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.settings import look
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.settings.paths import (
    QUEUE,
    DevicePath,
    PathsOfDevice,
)

FAST = LeaseTiming(2, 10)
MAPS = "ha-lun|4 chk  \nother |on\n"
CONFIG = 'defaults {\n\tverbosity 2\n\tpolling_interval 2\n\tmax_polling_interval "20"\n}\n'


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n", encoding="utf-8")


@pytest.fixture
def system(tmp_path):
    """A sysfs with a volume on a multipath device that has a path over iSCSI and one over FC."""
    place = tmp_path / "sys"
    devices = {
        "sda": "devices/platform/host0/session1/target0:0:0/0:0:0:0",
        "sdb": "devices/pci0/host2/rport-2:0-1/target2:0:0/2:0:0:0",
        "vda": "devices/pci0/virtio1",
    }
    for name, where in devices.items():
        (place / where).mkdir(parents=True)
        (place / "class/block" / name).mkdir(parents=True)
        (place / "class/block" / name / "device").symlink_to(place / where)
    put(place / "class/iscsi_session/session1/recovery_tmo", 120)
    put(place / "class/iscsi_connection/connection1:0/recv_tmo", 5)
    put(place / "class/iscsi_connection/connection1:0/ping_tmo", 7)
    put(place / "class/fc_remote_ports/rport-2:0-1/fast_io_fail_tmo", "off")
    put(place / "class/block/dm-0/dm/uuid", "mpath-36001405")
    put(place / "class/block/dm-0/dm/name", "ha-lun")
    put(place / "class/block/dm-1/dm/uuid", "LVM-0Ngg")
    for device, slaves in {"dm-0": ["sda", "sdb"], "dm-1": ["dm-0"]}.items():
        for slave in slaves:
            (place / "class/block" / device / "slaves" / slave).mkdir(parents=True)
    return place


@pytest.fixture
def multipathd(monkeypatch):
    def answer(*words):
        return MAPS if "maps" in words else CONFIG

    monkeypatch.setattr(look, "_multipathd", answer)


def test_the_luns_of_a_logical_volume_are_found_with_the_times_of_their_paths(system, multipathd):
    paths = [DevicePath("sda", "iscsi", 5, 7, 120), DevicePath("sdb", "fc", 0, 0, QUEUE)]
    expected = [PathsOfDevice("ha-lun", paths, True, 4, 2)]
    assert list(look.luns_below("dm-1", system)) == expected
    assert list(look.luns_below("dm-0", system)) == expected


def test_a_lun_without_multipath_is_its_only_path(system):
    (found,) = look.luns_below("sda", system)
    assert (found.multipath, [path.name for path in found.paths]) == (False, ["sda"])


def test_a_device_over_iscsi_is_refused_where_nothing_logs_in_again(monkeypatch):
    paths = [DevicePath("sda", "iscsi", 2, 2, 5)]
    lun = PathsOfDevice("ha-lun", paths, True, 3, 2)
    monkeypatch.setattr(look, "luns_below", lambda *_words: iter([lun]))
    monkeypatch.setattr(look, "check_volumes", lambda *_words: [])
    monkeypatch.setattr(look, "_answer", lambda *_words, **_more: "LoadState=loaded\nRestart=no\n")
    (told,) = look._device("/dev/dm-0", FAST).problems
    assert "Restart=no" in told


def test_the_lun_of_a_partition_is_found(system):
    disk = system / "class/block/sda"
    put(disk / "sda1/partition", 1)
    (system / "class/block/sda1").symlink_to(disk / "sda1")
    (found,) = look.luns_below("sda1", system)
    assert found.name == "sda"


def test_a_local_disk_has_no_path(system):
    assert list(look.luns_below("vda", system)) == []


@pytest.mark.parametrize(
    ("word", "number"), [("on", QUEUE), ("off", 0), ("-", 0), ("4 chk", 4), ("12 sec  ", 12)]
)
def test_words_of_multipathd_for_waiting_without_a_path(word, number):
    assert look.retries_in(word) == number


def test_a_device_that_multipathd_does_not_know_is_an_error(multipathd):
    with pytest.raises(StorageError, match="multipathd does not know mpathz"):
        look.retries_of("mpathz")


def test_without_multipathd_nothing_can_be_checked(monkeypatch, tmp_path):
    monkeypatch.setattr(look.shutil, "which", lambda *_words, **_more: None)
    with pytest.raises(StorageError, match="no multipathd"):
        look.polling_interval()
    program = tmp_path / "multipathd"
    program.write_text("#!/bin/sh\necho 'connection refused' >&2\nexit 1\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(look.shutil, "which", lambda *_words, **_more: str(program))
    with pytest.raises(StorageError, match=r"does not answer \(connection refused\); start it"):
        look.polling_interval()


def test_a_stale_handle_is_recognised(monkeypatch):
    def stale(_path):
        raise OSError(errno.ESTALE, "Stale file handle")

    monkeypatch.setattr(look, "_nearest", stale)
    with pytest.raises(StorageError, match="/srv/ha has a stale file handle: "):
        look.look_settings("/srv/ha", FAST, probe=False)


def test_a_folder_that_is_not_there_yet_is_checked_by_the_one_above(tmp_path):
    found = look.look_settings(str(tmp_path / "a" / "b"), FAST, probe=True)
    assert found == look.look_settings(str(tmp_path), FAST, probe=False)
    assert found.problems == []
    assert list(tmp_path.iterdir()) == []


class Owner:
    """What fstat returns for a file of *uid*."""

    def __init__(self, uid):
        self.st_uid = uid


@pytest.mark.parametrize(
    ("writable", "uid", "probe", "squashed"),
    [
        (False, 0, False, True),
        (True, 65534, True, True),
        (True, 0, True, False),
        (True, 65534, False, False),
    ],
)
def test_root_is_squashed_if_it_may_not_write_or_its_files_belong_to_another_user(
    monkeypatch, tmp_path, writable, uid, probe, squashed
):
    # Only for this call: pytest uses them, too.
    with monkeypatch.context() as server:
        server.setattr(os, "geteuid", lambda: 0)
        server.setattr(os, "access", lambda *_words: writable)
        server.setattr(os, "fstat", lambda _file: Owner(uid))
        found = look.is_root_squashed(tmp_path, probe=probe)
    assert found is squashed
    assert list(tmp_path.iterdir()) == []


def test_a_squashed_export_and_a_soft_mount_are_shown_with_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(look, "is_root_squashed", lambda _folder, probe: True)
    for options, told in (("rw,hard", "squashes root"), ("rw,soft", "is mounted soft")):
        text = f"91 23 0:52 / {tmp_path} rw - nfs4 nas:/export {options}\n"
        monkeypatch.setattr(Path, "read_text", lambda *_words, text=text, **_more: text)
        found = look.look_settings(str(tmp_path), FAST, probe=True)
        assert found.kind == "nfs"
        assert [told in problem for problem in found.problems] == [True]
