# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the tools of ``./run_tests`` work: a copy of the checkout and a home of their own.

Most tools run on a copy of the checkout in a scratch folder: ansible-test wants
a folder named ``ansible_collections/holdfast/ha`` and no link to one, and none
of them then leaves anything in the checkout or trips over its caches.  What is
worth keeping between runs lies in ``.cache/tests``; nothing is written to the
user's home.
"""

from __future__ import annotations

import ast
import configparser
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "tests"

NOT_COPIED = re.compile(
    r"(^|/)(\.git|__pycache__|[^/]*\.pyc)(/|$)"
    r"|^(\.venv|\.cache|\.quickstart|\.ansible|\.hypothesis|\.\w+_cache|collections/ansible_collections|tests/output)(/|$)"
)
"""What the copy leaves out where git is not there to say what belongs to the repository."""

_SEEDING = threading.Lock()
"""Stages run at once, and what they want of it is written once."""


def collection(scratch: Path) -> Path:
    """Return the place of the copy, under the folder names that ansible-test asks for."""
    return scratch / "ansible_collections" / "holdfast" / "ha"


def prepare(scratch: Path) -> dict[str, str]:
    """Copy the checkout and return the environment in which all commands run.

    The virtual environment and the home folder are reached through links in the
    scratch folder: ansible-test writes both paths into script headers, where a
    space would end them.
    """
    home = CACHE / "home"
    home.mkdir(parents=True, exist_ok=True)
    _keep_pip_settings(home)
    (scratch / "venv").symlink_to(CACHE / "venv")
    (scratch / "home").symlink_to(home)
    _copy_checkout(collection(scratch))
    return {
        **os.environ,
        "PATH": os.pathsep.join([str(scratch / "venv" / "bin"), *_search_path()]),
        "HOME": str(scratch / "home"),
        "ANSIBLE_NOCOWS": "1",
        "NO_COLOR": "1",
        "COLUMNS": "160",
        "PYTEST_ADDOPTS": "--durations=8 --durations-min=15",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(CACHE / "hypothesis"),
    }


def copy(scratch: Path) -> Path:
    """Copy the checkout once more, and return the place of the copy."""
    place = collection(scratch)
    _copy_checkout(place)
    return place


def tools(name: str, requirements: Sequence[str], python: str = sys.executable) -> Path:
    """Return a virtual environment of their own for tools that go with no others.

    *requirements* are arguments of ``pip install``.  It is made once; its stamp, written last, says
    what is in it.
    """
    place = CACHE / name
    files = [Path(one).read_text(encoding="utf-8") for one in requirements if one.endswith(".txt")]
    stamp = "\n".join((python, *requirements, *files))
    mark = place / "complete"
    if not mark.exists() or mark.read_text(encoding="utf-8") != stamp:
        shutil.rmtree(place, ignore_errors=True)
        pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        for words in ([python, "-m", "venv", str(place)], [*pip, *requirements]):
            subprocess.run(words, stdin=subprocess.DEVNULL, check=True)
        mark.write_text(stamp, encoding="utf-8")
    return place


def requirements(name: str) -> list[str]:
    """Return the arguments of ``pip install`` for a file of ``requirements/``."""
    return ["--require-hashes", "--requirement", str(ROOT / "requirements" / name)]


def core(version: str) -> Path | None:
    """Return a virtual environment with an ansible-core, None if no Python here can run it.

    Which Pythons can: ansible-core's support matrix, control node.
    """
    series = version.rpartition(".")[0]
    least, most = {"2.16": (10, 12), "2.17": (10, 12), "2.18": (11, 13)}.get(series, (12, 14))
    for minor in range(least, most + 1):
        found = shutil.which(f"python3.{minor}", path=os.pathsep.join(_search_path()))
        if found is not None:
            needs = [f"ansible-core=={version}", "netaddr==1.3.0"]
            return tools(f"core-{version}", needs, os.path.realpath(found))
    return None


def python_version(python: Path) -> str:
    """Return the version of a Python as ansible-test names it, such as 3.11."""
    words = [str(python), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


AWX_WHEEL = "ansible==12.3.0"
"""The package of PyPI in which the collection awx.awx is, of all that are in it."""


def awx_collection() -> Path:
    """Return a folder with the collection awx.awx, which is in no package of its own."""
    place = CACHE / "awx"
    if not (place / "ansible_collections").exists():
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            words = ["-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, AWX_WHEEL]
            subprocess.run([sys.executable, *words], stdin=subprocess.DEVNULL, check=True)
            (wheel,) = Path(folder).glob("*.whl")
            with zipfile.ZipFile(wheel) as content:
                desired = [
                    name
                    for name in content.namelist()
                    if name.startswith("ansible_collections/awx/awx/")
                ]
                content.extractall(Path(folder) / "unpacked", members=desired)
            (Path(folder) / "unpacked").rename(place)
    return place


def seed_get_pip(python: Path = Path(sys.executable)) -> None:
    """Put a get-pip script where ansible-test looks before it downloads one.

    It would load the script from a server of its own, which is not in reach
    everywhere; the same version of pip from PyPI does the same.  Which version that is says
    the ansible-test of *python*.
    """
    with _SEEDING:
        _seed_get_pip(python)


def _seed_get_pip(python: Path) -> None:
    (package,) = (python.parent.parent / "lib").glob("python*/site-packages/ansible_test")
    source = (package / "_internal" / "python_requirements.py").read_text(encoding="utf-8")
    match = re.search(r"pip='([\d.]+)'", source)
    if match is None:
        return
    version = match[1]
    folder = CACHE / "home" / ".ansible" / "test" / "cache"
    script = folder / f"get_pip_{version.replace('.', '_')}.py"
    if script.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
            *("--dest", str(folder), f"pip=={version}"),
        ],
        stdin=subprocess.DEVNULL,
        check=True,
    )
    script.write_text(
        "import os, runpy, sys\n"
        "here = os.path.dirname(os.path.abspath(__file__))\n"
        f"sys.path.insert(0, os.path.join(here, 'pip-{version}-py3-none-any.whl'))\n"
        "words = [word for word in sys.argv[1:] if word not in ('--no-setuptools', '--no-wheel')]\n"
        "sys.argv = ['pip', 'install', '--upgrade', '--force-reinstall'] + words\n"
        "runpy.run_module('pip', run_name='__main__', alter_sys=True)\n",
        encoding="utf-8",
    )


def _search_path() -> list[str]:
    """Return PATH without pyenv's shims, which ansible-test takes for interpreters.

    The folders for root's commands are added: sanlock is there, and any user may call it.
    """
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    kept = [folder for folder in folders if not folder.rstrip("/").endswith("/shims")]
    return [*kept, *(folder for folder in ("/usr/sbin", "/sbin") if folder not in kept)]


def _keep_pip_settings(home: Path) -> None:
    """Write the settings that pip has here as the pip.conf of *home*.

    ansible-test installs its own tools with neither the user's home nor the
    ``PIP_`` variables, and then would not find the index that works here.
    """
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    settings = configparser.RawConfigParser()
    for line in listed.splitlines():
        match = re.fullmatch(r"(:env:|[\w-]+)\.([\w-]+)=('.*'|\".*\")", line)
        if match and match[2] not in ("user", "cache-dir"):
            section = "global" if match[1] == ":env:" else match[1]
            if not settings.has_section(section):
                settings.add_section(section)
            settings.set(section, match[2], str(ast.literal_eval(match[3])))
    folder = home / ".config" / "pip"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "pip.conf").open("w", encoding="utf-8") as file:
        settings.write(file)


def _copy_checkout(target: Path) -> None:
    for name in _repository_files():
        source = ROOT / name
        if not source.is_symlink() and not source.is_file():
            continue
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target / name, follow_symlinks=False)


def _repository_files() -> Sequence[str]:
    """Return the files of the repository, new ones too, whether or not it is a git checkout."""
    if (ROOT / ".git").exists() and shutil.which("git"):
        listed = subprocess.run(
            [
                *("git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"),
                *("--cached", "--others", "--exclude-standard"),
            ],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if listed.returncode == 0:
            return [os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]
    found = []
    for folder, subfolders, files in os.walk(ROOT):
        place = Path(folder).relative_to(ROOT)
        links = [name for name in subfolders if (Path(folder) / name).is_symlink()]
        subfolders[:] = [name for name in subfolders if not NOT_COPIED.search(str(place / name))]
        found += [str(place / name) for name in (*files, *links)]
    return [name for name in found if not NOT_COPIED.search(name)]
