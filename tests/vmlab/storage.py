# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the storage machine serves, and how the nodes use it: the backends that are tested.

The storage machine exports a folder over NFS and two LUNs over iSCSI, each through a portal on
both networks.  The nodes use the programs and units of the distribution, as an operator does.
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
"""Seconds for the nodes of a busy host to be given the storage; 60 s on an idle one."""

MAX_HOSTS = 16
LUNS = {"cluster": 400 << 20, "data": 640 << 20}
"""Bytes of the LUNs: one for the cluster, one for a volume group."""

VOLUMES = {"cluster": "352M", "alpha": "64M", "beta": "64M"}
"""Logical volumes on the second LUN: a cluster's storage, and the file system of each service."""

IQN = "iqn.2026-01.lab.test"
PORTALS = tuple(address(path, NUMBER) for path in network.PATHS)
MOUNT = "/srv/holdfast"
FOLDER = f"{MOUNT}/test"
VOLUME = "/dev/ha/cluster"

RIDES_OUT = 3.0
"""How long an outage of the storage may be, in I/O timeouts, so that no host lease fails: it lives
eight, and was renewed up to two before.  I/O goes on some seconds after the storage is back: a TCP
connection without an answer tries again after ever twice the time, and sessions of iSCSI, which are
given up, have to log in again."""

SERVE = f"""#!/bin/sh
# Export the folder over NFS and the LUNs over iSCSI, each of these through both portals.
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
    # What the nodes write on a LUN is not this machine's: LVM here would activate their volume
    # group at a boot, and a device in use cannot be exported.
    "etc/lvm/lvmlocal.conf": 'devices {\n  global_filter = [ "r|.*|" ]\n}\n',
    # A client that was there before a restart of the server waits for the end of these times.
    "etc/nfs.conf": "[nfsd]\ngrace-time=10\nlease-time=10\nthreads=4\n",
}
"""The storage machine's own files."""

NO_RETRY = 3
"""Looks for a path, ``POLLING`` seconds apart, before I/O without one fails."""

POLLING = 2
MULTIPATH = f"""defaults {{
  user_friendly_names yes
  find_multipaths no
  polling_interval {POLLING}
  max_polling_interval {POLLING}
}}
# Not in "defaults": the built-in settings of a device win over these.
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
"""Debian's unit logs in at boot for two minutes, and without this never again."""

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
    """Do something on all nodes at once, and return what came of it."""
    with ThreadPoolExecutor(max(1, len(nodes))) as pool:
        return list(pool.map(act, nodes))


@dataclass(frozen=True)
class Backend:
    """A kind of storage: what ``holdfast_storage`` is, and where the service *alpha* has data.

    *other* is another storage to which the cluster can be moved; "" is the LUN of the cluster.
    *attach_one* gives a node the storage, now and at each boot, and *make* makes on it what has to
    be there once.
    """

    name: str
    path: str
    other: str
    attach_one: Callable[[Machine], None]
    make: Callable[[Machine], None]
    block: bool

    def attach(self, nodes: Sequence[Machine]) -> None:
        """Give all nodes the storage, which is blank."""
        first, *others = nodes
        self.attach_one(first)
        self.make(first)
        on_each(others, self.attach_one)

    def data(self, service: str) -> str:
        """Return the folder in which a service has its ledger, wherever it runs."""
        return f"/srv/{service}" if self.block else f"{MOUNT}/data"

    def resources(self, service: str) -> list[dict[str, Any]]:
        """Return the resources that a service needs before it can use its data."""
        if not self.block:
            return []
        parameters = {
            "device": f"/dev/ha/{service}",
            "directory": self.data(service),
            "fstype": "ext4",
            "force_unmount": "safe",
        }
        agent = "ocf:heartbeat:Filesystem"
        # At 20 it writes a file: after I/O errors the kernel makes the file system read-only.
        return [{"name": "data", "agent": agent, "parameters": parameters, "check_level": 20}]

    def read(self, nodes: Sequence[Machine], served_by: Machine, path: str) -> str:
        """Return the content of a file of a service: from the server, or where it is mounted."""
        if not self.block:
            return served_by.run("cat", f"/srv/nfs/{path.removeprefix(MOUNT)}").stdout
        for node in nodes:
            if node.is_on:
                found = node.run("cat", path, check=False)
                if found.returncode == 0:
                    return found.stdout
        raise LookupError(f"No node has {path} mounted.")


def nfs_options(version: str) -> str:
    """Return the options of a mount that is safe with sanlock."""
    return f"vers={version},hard,timeo=50,retrans=2,lookupcache=none,noatime,_netdev"


def _mount(version: str) -> Callable[[Machine], None]:
    """Return what mounts the export on a node."""
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
    """Log a node in at both portals, and let it see the volumes that there are."""
    _log_in(node)
    node.run("sh", "-ec", "vgscan -qq; vgchange -qq -ay", timeout=SETUP)


def _make_volumes(node: Machine) -> None:
    device = multipath_device(node, 1)
    volumes = "; ".join(f"lvcreate -qq -y -L {size} -n {name} ha" for name, size in VOLUMES.items())
    systems = "; ".join(f"mkfs.ext4 -q /dev/ha/{name}" for name in VOLUMES if name != "cluster")
    node.run("sh", "-ec", f"vgcreate -qq ha {device}; {volumes}; {systems}", timeout=SETUP)


def _log_in(node: Machine) -> None:
    """Log one node in at both portals, and wait for all paths."""
    node.run("sh", "-c", "cat >/etc/multipath.conf", text=MULTIPATH)
    node.run("sh", "-ec", f"mkdir -p $(dirname {LOGIN}); cat >{LOGIN}", text=LOGIN_AGAIN)
    node.run("sh", "-ec", f"modprobe dm-multipath; {ISCSI_SETUP}", timeout=SETUP)
    wait_until(lambda: paths(node) == len(LUNS) * len(PORTALS), SETUP, "all paths")


def multipath_device(node: Machine, number: int) -> str:
    """Return the name that a LUN has on all nodes, by its identity."""
    found = node.run("sh", "-c", "echo /dev/disk/by-id/dm-uuid-mpath-*").stdout.split()
    # Their identity ends with the serial number, which is that of the LUN.
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
