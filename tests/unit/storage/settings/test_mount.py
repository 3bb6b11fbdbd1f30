# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mount options of NFS: those that are safe for leases, and those that are refused."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.settings.mount import (
    Mount,
    check_nfs,
    mount_of,
)

OF_A_NODE = (
    "23 28 98:0 / / rw,relatime shared:1 - ext4 /dev/root rw\n"
    "91 23 0:52 / /srv/holdfast rw,noatime shared:50 - nfs4 10.0.0.9:/srv/nfs"
    " rw,vers=4.2,rsize=65536,hard,proto=tcp,timeo=50,retrans=2,sec=sys,addr=10.0.0.9\n"
    "92 23 0:53 / /srv/with\\040blank rw shared:51 - nfs 10.0.0.9:/srv/old rw,vers=3,soft\n"
)


def test_the_mount_of_a_path_is_the_deepest_one_above_it():
    assert mount_of("/srv/holdfast/rack1", OF_A_NODE).source == "10.0.0.9:/srv/nfs"
    assert mount_of("/srv/holdfast", OF_A_NODE).type == "nfs4"
    assert mount_of("/srv/holdfast2", OF_A_NODE).type == "ext4"
    assert mount_of("/srv/with blank/x", OF_A_NODE).options["vers"] == "3"


def test_of_two_mounts_in_one_place_the_later_counts():
    later = "93 91 0:54 / /srv/holdfast rw - tmpfs none rw\n"
    assert mount_of("/srv/holdfast/a", OF_A_NODE + later).type == "tmpfs"


@pytest.mark.parametrize(
    "words",
    [
        "rw,hard,vers=4.2,proto=tcp,sec=sys",
        "rw,hard,vers=3,proto=tcp,sec=sys,nolock",
        "rw,hard,vers=4.1,proto=rdma,sec=sys,acregmin=3,acdirmax=60",
        "rw,hard,vers=4.0,proto=tcp6,sec=sys,noac,lookupcache=none",
    ],
)
def test_options_that_are_safe(words):
    assert check_nfs(mounted(words)) == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("rw,soft", "is mounted soft: "),
        ("rw,softerr", "is mounted soft: "),
        ("ro,hard", "is mounted read-only"),
        ("rw,hard,sec=krb5", "is mounted with sec=krb5: "),
        ("rw,hard,sec=null", "is mounted with sec=null: "),
        ("rw,hard,proto=udp", "is mounted with proto=udp: "),
        ("rw,hard,vers=2", "is mounted with vers=2"),
    ],
)
def test_each_option_that_is_not_safe_is_named_with_the_mount(words, told):
    (problem,) = check_nfs(mounted(words))
    assert problem.startswith(f"/srv/ha (nas:/export) {told}")
    assert problem.endswith(".")


def test_all_problems_of_a_mount_are_shown_at_once():
    assert len(check_nfs(mounted("ro,soft,sec=krb5p,proto=udp,vers=2"))) == 5


def mounted(words):
    options = {one.partition("=")[0]: one.partition("=")[2] for one in words.split(",")}
    return Mount("/srv/ha", "nas:/export", "nfs", options)
