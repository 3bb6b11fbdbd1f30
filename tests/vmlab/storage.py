# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The storage backends that are tested: what the storage machine serves, and how nodes attach it.

The storage machine exports a folder over NFS and two LUNs over iSCSI.  Each LUN has a portal on
both networks.  The nodes use the distribution's programs and units, as an operator does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from testbed.network import address
from testbed.node import wait_until
from vmlab import network
from vmlab.node import Machine

T = TypeVar("T")

NUMBER = 9
"""The number of the storage machine."""

SETUP = 600.0
"""Seconds to attach the storage to the nodes on a busy host; on an idle host it takes 60 s."""

MAX_HOSTS = 16
LUNS = {"cluster": 400 << 20, "data": 640 << 20}
"""The LUNs with their sizes in bytes: one for the cluster, one for a volume group."""

VOLUMES = {"cluster": "352M", "alpha": "64M", "beta": "64M"}
"""The logical volumes on the second LUN: a cluster's storage, and a file system per service."""

IQN = "iqn.2026-01.lab.test"
PORTALS = tuple(address(path, NUMBER) for path in network.PATHS)
MOUNT = "/srv/holdfast"
FOLDER = f"{MOUNT}/test"
VOLUME = "/dev/ha/cluster"

RIDES_OUT = 3.0
"""The longest storage outage, in I/O timeouts, that no host lease fails in.  A host lease lives for
eight, and was renewed up to two before the outage.  I/O continues some seconds after the storage is
back: TCP doubles its wait after each retry, and iSCSI sessions that failed have to log in again."""

SERVE = f"""#!/bin/sh
# Export the folder over NFS, and both LUNs over iSCSI through both portals.
set -e
modprobe iscsi_target_mod
modprobe target_core_iblock
mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
target=/sys/kernel/config/target
group=$target/iscsi/{IQN}:storage/tpgt_1
mkdir -p "$group"
number=0
for disk in /dev/ubdc /dev/ubdd; do
  store=$target/core/iblock_$number/lun$number
  mkdir -p "$store"
  echo "udev_path=$disk" >"$store/control"
  echo 1 >"$store/enable"
  echo "${{number}}0000000" >"$store/wwn/vpd_unit_serial"
  mkdir -p "$group/lun/lun_$number"
  ln -s "$store" "$group/lun/lun_$number/store"
  number=$((number + 1))
done
for pair in authentication=0 demo_mode_write_protect=0 generate_node_acls=1 cache_dynamic_acls=1; do
  echo "${{pair#*=}}" >"$group/attrib/${{pair%=*}}"
done
for portal in {" ".join(PORTALS)}; do
  mkdir -p "$group/np/$portal:3260"
done
echo 1 >"$group/enable"
mkdir -p /srv/nfs /srv/squashed
exec systemctl restart nfs-server
"""

SERVE_UNIT = """[Unit]
After=network.target lab-seed.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/lab-serve
[Install]
WantedBy=multi-user.target
"""

FILES = {
    "usr/local/sbin/lab-serve": SERVE,
    "etc/systemd/system/lab-serve.service": SERVE_UNIT,
    "etc/exports": "/srv/nfs 10.77.0.0/16(rw,sync,no_root_squash,no_subtree_check)\n"
    "/srv/squashed 10.77.0.0/16(rw,sync,root_squash,no_subtree_check)\n",
    # LVM on this machine would activate the nodes' volume group at boot, and a device in use cannot
    # be exported.
    "etc/lvm/lvmlocal.conf": 'devices {\n  global_filter = [ "r|.*|" ]\n}\n',
    # Clients that were connected before a restart of the server wait for these times.
    "etc/nfs.conf": "[nfsd]\ngrace-time=10\nlease-time=10\nthreads=4\n",
}
"""Files of the storage machine alone."""

NO_RETRY = 3
"""Path checks, ``POLLING`` seconds apart, before I/O without any path fails."""

POLLING = 2
MULTIPATH = f"""defaults {{
  user_friendly_names yes
  find_multipaths no
  polling_interval {POLLING}
  max_polling_interval {POLLING}
}}
# Not in "defaults": built-in settings of a device take precedence over those.
overrides {{
  fast_io_fail_tmo 5
  no_path_retry {NO_RETRY}
}}
blacklist {{
  devnode "^(ubd|loop|ram)"
}}
"""

ISCSI = {
    "node.startup": "automatic",
    "node.session.timeo.replacement_timeout": "5",
    # Patterns: a dot stands for each bracket.
    "node.conn.0..timeo.noop_out_interval": "2",
    "node.conn.0..timeo.noop_out_timeout": "2",
}

LOGIN = "/etc/systemd/system/open-iscsi.service.d/retry.conf"
LOGIN_AGAIN = """[Service]
Restart=on-failure
RestartSec=10
"""
"""Without this Debian's unit tries to log in for two minutes at boot, and never again."""

ISCSI_SETUP = "; ".join(
    (
        *(
            rf"sed -i 's/^\({one}\) *=.*/\1 = {ISCSI[one]}/' /etc/iscsi/iscsid.conf"
            for one in ISCSI
        ),
        "systemctl daemon-reload",
        "systemctl enable -q iscsid open-iscsi multipathd",
        "systemctl restart iscsid multipathd",
        *(f"iscsiadm -m discovery -t sendtargets -p {portal} >/dev/null" for portal in PORTALS),
        "iscsiadm -m node -l",
    )
)


def on_each(nodes: Sequence[Machine], act: Callable[[Machine], T]) -> list[T]:
    """Call *act* for all nodes in parallel, and return the results in order."""
    with ThreadPoolExecutor(max(1, len(nodes))) as pool:
        return list(pool.map(act, nodes))


@dataclass(frozen=True)
class Backend:
    """A kind of storage.  *path* is the value of ``holdfast_storage``, "" for the cluster's LUN.

    *other* is another storage to which the cluster can be moved, in the same form.  *attach_one*
    attaches the storage to a node, now and at each boot.  *make* creates on it, once, the folders
    or volumes that all nodes share.  *block* says that it is a block device.
    """

    name: str
    path: str
    other: str
    attach_one: Callable[[Machine], None]
    make: Callable[[Machine], None]
    block: bool

    def attach(self, nodes: Sequence[Machine]) -> None:
        """Attach the storage, which is blank, to all nodes."""
        first, *others = nodes
        self.attach_one(first)
        self.make(first)
        on_each(others, self.attach_one)

    def data(self, service: str) -> str:
        """Return the folder of a service's ledger, on each node."""
        return f"/srv/{service}" if self.block else f"{MOUNT}/data"

    def resources(self, service: str) -> list[dict[str, Any]]:
        """Return the resources that provide the folder of a service's ledger."""
        if not self.block:
            return []
        parameters = {
            "device": f"/dev/ha/{service}",
            "directory": self.data(service),
            "fstype": "ext4",
            "force_unmount": "safe",
        }
        agent = "ocf:heartbeat:Filesystem"
        # Depth 20 writes a file.  After I/O errors the kernel makes the file system read-only.
        return [{"name": "data", "agent": agent, "parameters": parameters, "check_level": 20}]

    def read(self, nodes: Sequence[Machine], served_by: Machine, path: str) -> str:
        """Return a service's file, read on the server or on the node that mounts it."""
        if not self.block:
            return served_by.run("cat", f"/srv/nfs/{path.removeprefix(MOUNT)}").stdout
        for node in nodes:
            if node.is_on:
                found = node.run("cat", path, check=False)
                if found.returncode == 0:
                    return found.stdout
        raise LookupError(f"No node has {path} mounted.")


def nfs_options(version: str) -> str:
    """Return mount options that are safe with sanlock."""
    return f"vers={version},hard,timeo=50,retrans=2,lookupcache=none,noatime,_netdev"


def _mount(version: str) -> Callable[[Machine], None]:
    """Return a function that mounts the export on a node."""
    line = f"{PORTALS[0]}:/srv/nfs {MOUNT} nfs {nfs_options(version)} 0 0"
    script = (
        f"mkdir -p {MOUNT}; echo '{line}' >/etc/fstab; systemctl daemon-reload;"
        f" systemctl enable -q --now rpcbind; mount {MOUNT}"
    )

    def mount(node: Machine) -> None:
        node.run("sh", "-ec", script, timeout=SETUP)

    return mount


def _make_folder(node: Machine) -> None:
    node.run("mkdir", "-p", f"{MOUNT}/data")


def _attach_luns(node: Machine) -> None:
    """Log a node in to both portals, and activate the volumes that exist."""
    _log_in(node)
    node.run("sh", "-ec", "vgscan -qq; vgchange -qq -ay", timeout=SETUP)


def _make_volumes(node: Machine) -> None:
    device = multipath_device(node, 1)
    volumes = "; ".join(f"lvcreate -qq -y -L {size} -n {name} ha" for name, size in VOLUMES.items())
    systems = "; ".join(f"mkfs.ext4 -q /dev/ha/{name}" for name in VOLUMES if name != "cluster")
    node.run("sh", "-ec", f"vgcreate -qq ha {device}; {volumes}; {systems}", timeout=SETUP)


def _log_in(node: Machine) -> None:
    """Log one node in to both portals, and wait for all paths."""
    node.run("sh", "-c", "cat >/etc/multipath.conf", text=MULTIPATH)
    node.run("sh", "-ec", f"mkdir -p $(dirname {LOGIN}); cat >{LOGIN}", text=LOGIN_AGAIN)
    node.run("sh", "-ec", f"modprobe dm-multipath; {ISCSI_SETUP}", timeout=SETUP)
    wait_until(lambda: paths(node) == len(LUNS) * len(PORTALS), SETUP, "all paths")


def multipath_device(node: Machine, number: int) -> str:
    """Return the stable name of a LUN, which is the same on all nodes."""
    found = node.run("sh", "-c", "echo /dev/disk/by-id/dm-uuid-mpath-*").stdout.split()
    # The names end with the LUN's serial number, so they sort by LUN.
    return sorted(found)[number]


def paths(node: Machine) -> int:
    """Return how many paths of all LUNs are usable on a node."""
    shown = node.run("multipathd", "show", "paths", "format", "%d %t %T", check=False).stdout
    return shown.count("active ready")


BACKENDS = {
    "nfs4.2": Backend("nfs4.2", FOLDER, f"{MOUNT}/other", _mount("4.2"), _make_folder, False),
    "nfs3": Backend("nfs3", FOLDER, f"{MOUNT}/other", _mount("3"), _make_folder, False),
    "lun": Backend("lun", "", VOLUME, _attach_luns, _make_volumes, True),
    "lv": Backend("lv", VOLUME, "", _attach_luns, _make_volumes, True),
}
