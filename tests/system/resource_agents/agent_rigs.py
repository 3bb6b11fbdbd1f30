# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the distribution's agents need to be called for real, on this machine alone.

Each rig is a context that gives the parameters of one resource, and takes everything away
again.  Servers listen on 127.0.0.1 or within a network namespace of their own; nothing
below /etc, /var or /run is touched but for a resource's own files.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

Parameters = dict[str, object]

POSTGRESQL = Path("/usr/lib/postgresql")
DEADLINE = 30.0

SEARCH_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
ENVIRONMENT = {**os.environ, "PATH": SEARCH_PATH}
"""Where the servers are: the path of an ordinary user may lack /usr/sbin."""


def need(*programs: str, root: bool = True) -> None:
    """Skip the test, with the reason, where it cannot be run."""
    if root and os.getuid() != 0:
        pytest.skip("only root can do that")
    missing = [name for name in programs if shutil.which(name, path=SEARCH_PATH) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed")


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Give a folder that servers with a user of their own can get into."""
    made = Path(tempfile.mkdtemp(prefix="holdfast-agents-"))
    made.chmod(0o755)
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextlib.contextmanager
def dummy() -> Iterator[Parameters]:
    """A resource that is a file."""
    yield {}


@contextlib.contextmanager
def anything() -> Iterator[Parameters]:
    """A program that stays in the foreground; the agent switches to its user with su."""
    need("sleep")
    with folder() as place:
        yield {
            "binfile": shutil.which("sleep"),
            "cmdline_options": "4712",
            "pidfile": f"{place}/pid",
        }


@contextlib.contextmanager
def nginx() -> Iterator[Parameters]:
    """A web server with its status page, for check level 10."""
    need("nginx")
    with folder() as place:
        port = free_port()
        configuration = place / "nginx.conf"
        configuration.write_text(
            f"pid {place}/nginx.pid;\nerror_log {place}/error.log;\nworker_processes 1;\n"
            "events { }\n"
            "http {\n  access_log off;\n"
            f"  server {{\n    listen 127.0.0.1:{port};\n"
            "    location /status { stub_status; }\n  }\n}\n"
        )
        yield {
            "configfile": str(configuration),
            "httpd": shutil.which("nginx", path=SEARCH_PATH),
            "port": port,
            "status10url": f"http://127.0.0.1:{port}/status",
        }


@contextlib.contextmanager
def filesystem() -> Iterator[Parameters]:
    """An ext4 file system on a loop device."""
    need("losetup", "mkfs.ext4", "modprobe")
    with folder() as place:
        image, mount = place / "image", place / "mount"
        mount.mkdir()
        with image.open("wb") as file:
            file.truncate(16 << 20)
        _run("mkfs.ext4", "-q", "-F", str(image))
        device = _run("losetup", "--find", "--show", str(image)).strip()
        try:
            yield {"device": device, "directory": str(mount), "fstype": "ext4"}
        finally:
            subprocess.run(["umount", str(mount)], capture_output=True, check=False)
            _run("losetup", "--detach", device)


@contextlib.contextmanager
def address() -> Iterator[Parameters]:
    """An address on a pair of virtual interfaces in a network namespace of its own."""
    need("ip")
    name = f"holdfast-{os.getpid()}"
    _run("ip", "netns", "add", name)
    try:
        inside = ("ip", "-n", name)
        _run(*inside, "link", "add", "here", "type", "veth", "peer", "name", "there")
        for link in ("lo", "here", "there"):
            _run(*inside, "link", "set", link, "up")
        yield {
            "ip": "192.0.2.50",
            "cidr_netmask": 24,
            "nic": "here",
            "network_namespace": name,
        }
    finally:
        _run("ip", "netns", "delete", name)


@contextlib.contextmanager
def pgsql() -> Iterator[Parameters]:
    """A PostgreSQL server with a database cluster of its own."""
    need("runuser")
    programs = max(POSTGRESQL.glob("*/bin"), default=None)
    if programs is None:
        pytest.skip("postgresql is not installed")
    with folder() as place:
        shutil.chown(place, "postgres")
        data = place / "data"
        _run(
            *("runuser", "-u", "postgres", "--", str(programs / "initdb")),
            *("--pgdata", str(data), "--auth", "trust", "--no-sync"),
        )
        with (data / "postgresql.conf").open("a") as file:
            file.write(f"listen_addresses = '127.0.0.1'\nunix_socket_directories = '{place}'\n")
        yield {
            "pgctl": str(programs / "pg_ctl"),
            "psql": str(programs / "psql"),
            "pgdata": str(data),
            "config": str(data / "postgresql.conf"),
            "socketdir": str(place),
            "tmpdir": str(place / "tmp"),
            "pgport": free_port(),
        }


@contextlib.contextmanager
def redis() -> Iterator[Parameters]:
    """A Redis server."""
    need("redis-server", "redis-cli")
    with folder() as place:
        shutil.chown(place, "redis")
        port = free_port()
        configuration = place / "redis.conf"
        configuration.write_text(
            f'bind 127.0.0.1\nport {port}\ndaemonize yes\ndir {place}\nsave ""\n'
            f"pidfile {place}/run/redis.pid\nunixsocket {place}/run/redis.sock\n"
        )
        yield {
            "config": str(configuration),
            "rundir": f"{place}/run",
            "pidfile_name": "redis.pid",
            "socket_name": "redis.sock",
            "port": port,
        }


@contextlib.contextmanager
def virtual_domain() -> Iterator[Parameters]:
    """A virtual machine without a disk, under a libvirt daemon that sees only its own folders."""
    need("libvirtd", "virsh", "qemu-system-x86_64", "unshare")
    with folder() as place, _libvirt(place) as uri:
        machine = place / "machine.xml"
        # The agent wants the name alone on its line.
        machine.write_text(
            f"<domain type='{'kvm' if _kvm_works() else 'qemu'}'>\n<name>holdfast-test</name>\n"
            "<memory unit='MiB'>32</memory><vcpu>1</vcpu>\n"
            "<os><type arch='x86_64'>hvm</type></os>\n"
            "<devices><emulator>/usr/bin/qemu-system-x86_64</emulator></devices>\n</domain>\n"
        )
        yield {"config": str(machine), "hypervisor": uri, "force_stop": True}


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody has at the moment."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


@contextlib.contextmanager
def _libvirt(place: Path) -> Iterator[str]:
    """Run a libvirt daemon in a mount namespace; give the URI at which it can be reached."""
    mounts = []
    for name in ("etc", "run", "var/cache", "var/lib", "var/log"):
        system = f"/{name}/libvirt"
        if Path(system).is_dir():
            own = place / system.replace("/", "_")
            own.mkdir()
            mounts.append(f"mount --bind {own} {system}")
    # It wants this account, which only another package makes, before it reads that it is unused.
    for table in ("passwd", "group"):
        accounts = place / table
        fields = "64055:64055::/:/usr/sbin/nologin" if table == "passwd" else "64055:"
        accounts.write_text(Path(f"/etc/{table}").read_text() + f"libvirt-qemu:x:{fields}\n")
        mounts.append(f"mount --bind {accounts} /etc/{table}")
    (place / "_etc_libvirt" / "qemu.conf").write_text(
        'user = "root"\ngroup = "root"\nsecurity_driver = "none"\nstdio_handler = "file"\n'
        "cgroup_controllers = [ ]\nnamespaces = [ ]\n"
    )
    configuration = place / "libvirtd.conf"
    configuration.write_text(f'unix_sock_dir = "{place}"\nauth_unix_rw = "none"\n')
    script = "; ".join(
        ("set -e", *mounts, f"exec libvirtd --config {configuration} --pid-file {place}/pid")
    )
    with (place / "log").open("w") as log:
        daemon = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", script],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=ENVIRONMENT,
            start_new_session=True,
        )
    uri = f"qemu+unix:///system?socket={place}/libvirt-sock"
    try:
        until = time.monotonic() + DEADLINE
        while not _virsh(uri, "list"):
            if daemon.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"libvirtd does not answer: {(place / 'log').read_text()}")
            time.sleep(0.1)
        yield uri
    finally:
        _virsh(uri, "destroy", "holdfast-test")
        daemon.terminate()
        daemon.wait(DEADLINE)


def _virsh(uri: str, *words: str) -> bool:
    done = subprocess.run(["virsh", "-c", uri, *words], capture_output=True, check=False)
    return done.returncode == 0


def _kvm_works() -> bool:
    try:
        os.close(os.open("/dev/kvm", os.O_RDWR | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _run(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} failed: {done.stderr or done.stdout}")
    return done.stdout
