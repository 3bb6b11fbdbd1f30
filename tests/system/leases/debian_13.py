# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""sanlock and wdmd of Debian 13, run on a machine with another release.

Debian's own packages are fetched from the mirror that this machine uses, with an apt
configuration of their own, unpacked into the cache of the tests, and run by their own
dynamic loader.  Nothing is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.tests.debian_mirror import mirror

CACHE = Path(__file__).resolve().parents[3] / ".cache" / "tests" / "debian-13"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
SUITE = "trixie"
PACKAGES = ("sanlock", "libsanlock1", "libaio1t64", "libblkid1", "libuuid1", "libc6")
"""What the two programs depend on (their Depends, without what only their installation needs)."""

PROGRAMS = ("sanlock", "wdmd")
DEADLINE = 600.0
"""Seconds for each step; the line may be slow."""


def programs():
    """Return a folder with the programs ``sanlock`` and ``wdmd`` of Debian 13.

    Skips the test, with the reason, where they cannot be had.
    """
    if not CACHE.exists():
        missing = [one for one in ("apt-get", "dpkg-deb") if shutil.which(one) is None]
        if missing or not Path(KEYRING).exists():
            pytest.skip("Debian's packages can be fetched and checked on Debian only")
        CACHE.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="new-", dir=CACHE.parent) as folder:
            _make(Path(folder))
            # Whoever is second finds the folder there, and leaves it as it is.
            try:
                Path(folder, "root").rename(CACHE)
            except OSError:
                if not CACHE.exists():
                    raise
    return CACHE / "bin"


def _make(folder):
    """Fetch and unpack the packages below *folder*, as ``root``."""
    apt = _apt(folder)
    _run([*apt, "update"], folder)
    _run([*apt, "download", *PACKAGES], folder, attempts=2)
    root = folder / "root"
    for package in folder.glob("*.deb"):
        _run(["dpkg-deb", "--extract", package, root], folder)
    [loader] = root.glob("usr/lib/*/ld-linux*.so.*")
    (root / "bin").mkdir()
    for name in PROGRAMS:
        # Not the folder itself: the tree gets its final place only when it is complete.
        where = CACHE / loader.relative_to(root)
        words = f'"{where}" --library-path "{where.parent}" "{CACHE}/usr/sbin/{name}"'
        script = root / "bin" / name
        script.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        script.chmod(0o755)


def _apt(folder):
    """Return apt-get with sources and lists of its own; proxies stay those of the machine."""
    lists = folder / "lists"
    (lists / "partial").mkdir(parents=True)
    (folder / "cache" / "archives" / "partial").mkdir(parents=True)
    (folder / "status").touch()
    sources = folder / "sources.list"
    sources.write_text(f"deb [signed-by={KEYRING}] {mirror()} {SUITE} main\n")
    settings = {
        "Dir::Etc::SourceList": sources,
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State::Lists": lists,
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "Acquire::Retries": 3,
        "Acquire::Languages": "none",
        "APT::Sandbox::User": "",
    }
    return ["apt-get", "-q", *(f"-o{name}={value}" for name, value in settings.items())]


def _run(command, folder, attempts=1):
    """Run one step; where it cannot be done the test is skipped, with what it said."""
    for _attempt in range(attempts):
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
        if done.returncode == 0:
            return
    said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
    pytest.skip(f"Debian 13's sanlock could not be fetched: {said}")
