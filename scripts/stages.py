# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stages of ``./run_tests``: what is checked, in which order, and the summary.

A stage is a function that runs commands; its name and first line are what the
summary and ``--list`` say.  All stages run, whatever the earlier ones said; a
stage fails with its first command that fails.  What a tool skips is read from
its output and listed at the end.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import workplace
from running import LEFT_OVER, Lane, Run, Stage, StageFailed, StageSkipped, outcomes_of, summarise
from sessions import sessions
from share import WHOLE, Share
from workplace import ROOT

SIMULATOR_TESTS = "tests/unit/simulator"
SIMULATION = "ansible_collections.holdfast.ha.tests.simulation"


def lint(run: Run) -> None:
    """Style of Python and YAML, licences, unwanted files and characters, action groups."""
    style = ("formatters", "codeqa", "yamllint", "antsibull-nox-config")
    sessions(run, *style, "license-check", "extra-checks")


def mypy(run: Run) -> None:
    """Types of the library, strict."""
    run.python("-m", "mypy", "plugins/module_utils/_holdfast", folder=ROOT)
    run.python("-m", "mypy", "scripts", folder=ROOT, MYPYPATH="scripts")
    # These are the checks of safety themselves: typed as strictly as what they check.
    run.python("-m", "mypy", "-p", SIMULATION, folder=ROOT, MYPYPATH=".collections")


def shellcheck(run: Run) -> None:
    """The shell scripts."""
    if shutil.which("shellcheck") is None:
        raise StageSkipped("shellcheck is not installed")
    scripts = [
        path
        for path in sorted(run.collection.rglob("*"))
        if path.is_file() and not path.is_symlink() and _is_shell_script(path)
    ]
    run.command("shellcheck", "--external-sources", "--source-path", run.collection, *scripts)


def changelog(run: Run) -> None:
    """Changelog fragments."""
    run.python("-m", "antsibull_changelog", "lint")


def words(run: Run) -> None:
    """Plain English: words that texts must not have, by scripts/words.yml."""
    run.python("scripts/words.py", folder=ROOT)


def unit(run: Run) -> None:
    """Unit tests, in place; those that play simulated clusters are in ``simulation``."""
    elsewhere = [SIMULATOR_TESTS]
    if units in run.stages:
        elsewhere += [f"tests/unit/{name}" for name in ANSIBLE_UNITS]
    options = ("-n", "2", "tests/unit", *(f"--ignore={path}" for path in elsewhere))
    run.python("-m", "pytest", *options, folder=ROOT)


def conformance(run: Run) -> None:
    """Scenarios of Proxmox VE's HA manager, played by our managers."""
    run.python("-m", "pytest", "tests/conformance", folder=ROOT)


def site(run: Run) -> None:
    """The documentation as a site, without a warning."""
    if sys.version_info < (3, 11):
        raise StageSkipped("Sphinx 9 needs Python 3.11 or newer")
    tools = workplace.tools("site", workplace.requirements("site.txt"))
    path = f"{tools / 'bin'}{os.pathsep}{run.environment['PATH']}"
    place = run.collection / "docs" / "docsite"
    reference = place / "reference"
    reference.mkdir()
    words = ("--use-current", "--squash-hierarchy", "--fail-on-error", "--dest-dir", reference)
    run.command(
        *(tools / "bin" / "antsibull-docs", "collection", *words, "holdfast.ha"),
        PATH=path,
        ANSIBLE_COLLECTIONS_PATH=run.scratch,
    )
    try:
        run.command(
            *(tools / "bin" / "sphinx-build", "-q", "-W", "--keep-going", "-b", "html"),
            *("-c", place, run.collection, run.scratch / "site"),
            PATH=path,
        )
    finally:
        shutil.rmtree(reference)


def build(run: Run) -> None:
    """Build the archive, install it elsewhere, use what was installed."""
    # Not in the scratch folder itself: Python would find the copy from there.
    elsewhere = run.scratch / "elsewhere"
    elsewhere.mkdir()
    galaxy = ("-m", "ansible", "galaxy", "collection")
    # On a copy of its own, whose README gets the links that work on Galaxy.
    source = workplace.copy(run.scratch / "build")
    run.python("scripts/absolute_links.py", source, folder=ROOT)
    run.python(*galaxy, "build", "--output-path", elsewhere, folder=source)
    (archive,) = elsewhere.glob("holdfast-ha-*.tar.gz")
    with tarfile.open(archive) as content:
        hidden = [name for name in content.getnames() if name.startswith(".")]
    if hidden:
        raise StageFailed(f"the archive holds {', '.join(hidden)}; add them to build_ignore")
    here: dict[str, Path] = {"folder": elsewhere, "ANSIBLE_COLLECTIONS_PATH": elsewhere}
    run.python(*galaxy, "install", "--offline", "--no-deps", "-p", elsewhere, archive, **here)
    for path in sorted((run.collection / "playbooks").glob("*.yml")):
        playbook = f"holdfast.ha.{path.stem}"
        run.python("-m", "ansible", "playbook", "--syntax-check", playbook, **here)
    modules = sorted((run.collection / "plugins" / "modules").glob("*.py"))
    names = [f"holdfast.ha.{path.stem}" for path in modules]
    run.python("-m", "ansible", "doc", "--type", "module", "--snippet", *names, **here)


def sanity(run: Run) -> None:
    """The checks of ansible-test sanity, for what is in the archive, and integration targets."""
    # On a copy of its own: it looks at all files there, and other stages make some meanwhile.
    place = workplace.copy(run.scratch / "sanity")
    # Half of all lines are tests and scripts, which no archive has.  The stage lint checks them.
    for folder in (place / "scripts", *(place / "tests").iterdir()):
        if folder.is_dir() and folder.name != "integration":
            shutil.rmtree(folder)
    _ansible_test(run, "sanity", folder=place)


ANSIBLE_UNITS = (
    *("modules/", "inventory/", "test_collection.py", "test_event_source.py", "test_filters.py"),
    *("test_playbooks.py", "test_roles.py"),
)
"""Of ``tests/unit``, what is about something that ansible loads.  The library is plain Python,
to which ansible-test does nothing that ``unit`` does not do in half the time.  Where both stages
run, ``unit`` leaves these out."""


def units(run: Run) -> None:
    """The unit tests of modules, plugins, playbooks and roles, as ansible-test runs them."""
    targets = [f"tests/unit/{name}" for name in ANSIBLE_UNITS]
    _ansible_test(run, "units", *targets, folder=workplace.copy(run.scratch / "units"))


def integration(run: Run) -> None:
    """Each module against real files and processes, by ansible-test."""
    if shutil.which("ssh-keygen") is None:
        raise StageSkipped("ssh-keygen, which ansible-test wants, is not installed")
    place = workplace.copy(run.scratch / "integration")
    archives = run.scratch / "archives"
    archives.mkdir()
    # See tests/callback: ansible-test passes no variables on.
    settings = place / "tests" / "integration" / "integration.cfg"
    defaults = f"[defaults]\ncallback_plugins = {place / 'tests' / 'callback'}\n"
    text = settings.read_text(encoding="utf-8").replace("[defaults]\n", defaults)
    text += f"\n[share_module_archives]\nfolder = {archives}\n"
    settings.write_text(text, encoding="utf-8")
    targets = [path.name for path in (place / "tests" / "integration" / "targets").iterdir()]
    tested = sorted(name for name in targets if not name.startswith("setup_"))
    _ansible_test(run, "integration", *run.share.among(tested), folder=place)


DRAWINGS = (
    *("mixed", "operators", "close", "left", "pauses"),
    *("stale", "held", "fences", "skewed", "crowds", "scarce", "fast", "starved"),
)
"""How random clusters are drawn, see ``tests/simulation/random_scenario.py``."""


def simulation(run: Run) -> None:
    """Scenarios, and random clusters with faults; deliberate mistakes are found."""
    # Not one after the other: each file has runs of its own.
    _pytest(run, "-n", "2", SIMULATOR_TESTS)
    run.python("tests/mutation/find.py", "--share", str(run.share), folder=ROOT)
    _play_batches(run, run.share.seeds(100), fresh=1)


def long_runs(run: Run) -> None:
    """Many more random clusters with faults, most of them new; more hostile inputs."""
    _play_batches(run, range(500), fresh=300)
    run.python("tests/fuzz/documents.py", "--count", "1000000", folder=ROOT)
    run.python("tests/fuzz/commands.py", "--count", "20000", folder=ROOT)


def _play_batches(run: Run, known: range, fresh: int) -> None:
    """Play the *known* seeds of each drawing, and fresh ones for *fresh* seconds."""
    for drawing in DRAWINGS:
        batch = ("tests/simulation/batch.py", "--drawn", drawing)
        seeds = ("--first-seed", str(known.start), "--count", str(len(known)))
        run.python(*batch, *seeds, folder=ROOT)
        run.python(*batch, "--seconds", str(fresh), folder=ROOT)


TWO_FILES_AT_ONCE = ("-n", "2", "--dist", "loadfile")
"""Options of pytest for tests that mostly wait, a file's for what it has set up."""

AGENT_TESTS = ("resource_agents", "fencing", "placement")
"""Folders of ``tests/system``."""

PLAYBOOK_TESTS = ("playbooks", "test_documentation.py")


def leases(run: Run) -> None:
    """The leases against real sanlock daemons, of the distribution and of the next."""
    # Four files at once, each with daemons of its own: nearly all of the time they are waited for.
    at_once = ("-n", "4", "--dist", "loadfile")
    _pytest(run, *at_once, "tests/system/leases")


def agents(run: Run) -> None:
    """Real resource agents with their servers, fence agents with simulated devices, real hail."""
    # Two files at once: they have folders, ports and servers of their own, and no cluster that
    # is judged by its times.
    folders = [f"tests/system/{name}" for name in AGENT_TESTS]
    _pytest(run, *TWO_FILES_AT_ONCE, *folders)


def system(run: Run) -> None:
    """Whole clusters, and the quickstart from end to end."""
    apart = ("awx", "leases", "security", *AGENT_TESTS, *PLAYBOOK_TESTS)
    others = [f"--ignore=tests/system/{name}" for name in apart]
    # Two files at once: their clusters mostly wait.
    _pytest(run, *TWO_FILES_AT_ONCE, "tests/system", *others)


def security(run: Run) -> None:
    """Attacks of strangers and storage writers on running clusters; hostile inputs."""
    _pytest(run, *TWO_FILES_AT_ONCE, "tests/system/security")
    run.python("tests/fuzz/documents.py", "--count", "20000", folder=ROOT)
    run.python("tests/fuzz/commands.py", "--count", "500", folder=ROOT)


def failover(run: Run) -> None:
    """One real failover: a node is killed, and its services run on another."""
    test = "test_the_services_of_a_lost_node_run_elsewhere_and_the_node_comes_back"
    run.python("-m", "pytest", "tests/system/test_failover.py", "-k", test, folder=ROOT)


def playbooks(run: Run) -> None:
    """Each playbook for operators on a running cluster, and the examples of the documentation."""
    # Two files at once, each with a cluster of its own: most of the time is Ansible's.
    tests = [f"tests/system/{name}" for name in PLAYBOOK_TESTS]
    _pytest(run, *TWO_FILES_AT_ONCE, *tests)


def awx(run: Run) -> None:
    """AWX: its API set up by a playbook, each job template run, the execution environment."""
    run.python(
        *("-m", "pytest", "tests/system/awx"),
        folder=ROOT,
        HOLDFAST_AWX_COLLECTION=workplace.awx_collection(),
    )


def importer(run: Run) -> None:
    """What Galaxy checks before it takes a collection; its documentation; ansible-lint."""
    if sys.version_info < (3, 11):
        raise StageSkipped("galaxy-importer needs Python 3.11 or newer")
    sessions(run, "docs-check", "ansible-lint", "build-import-check")


CORES = ("2.16.19", "2.17.14", "2.18.19", "2.21.5")
"""Versions of ansible-core besides the one that everything is developed on: the last of each
series that is still in use, and the newest."""


def cores(run: Run) -> None:
    """The checks of ansible-test sanity with each ansible-core that a Python here can run."""
    copy = workplace.copy(run.scratch / "cores")
    # The link for the checkout itself is in no archive, and ansible-core 2.16 allows none.
    shutil.rmtree(copy / ".collections")
    for core in CORES:
        tools = workplace.core(core)
        if tools is None:
            run.skipped.append(f"no Python here can run ansible-core {core}")
            continue
        python = tools / "bin" / "python"
        workplace.seed_get_pip(python)
        run.command(
            *(python, "-m", "ansible", "test", "sanity", "--local", "--color=no"),
            *("--python", workplace.python_version(python)),
            folder=copy,
            PATH=f"{tools / 'bin'}{os.pathsep}{run.environment['PATH']}",
        )


def testbed(run: Run) -> None:
    """Nodes with systemd, sanlock, watchdogs and power fencing, killed in every way."""
    command = ROOT / "tests" / "testbed" / "testbed"
    here = {**run.environment, "HOLDFAST_PYTHON": sys.executable}
    found = subprocess.run(
        [command, "check"], env=here, stderr=subprocess.PIPE, text=True, check=False
    )
    if found.returncode != 0:
        raise StageSkipped(found.stderr.strip())
    run.command(command, "base", "13", folder=ROOT, HOLDFAST_PYTHON=sys.executable)
    run.python("-m", "pytest", "tests/testbed/test_lab.py", folder=ROOT)
    run.command(
        *(command, "run", "--", sys.executable, "-m", "pytest", "tests/testbed"),
        *("--share", str(run.share)),
        *(
            f"--ignore=tests/testbed/{name}"
            for name in ("test_lab.py", "more", "workloads", "devices")
        ),
        folder=ROOT,
        HOLDFAST_PYTHON=sys.executable,
    )


def vmlab(run: Run) -> None:
    """Machines with kernels of their own on NFS and iSCSI, and one that crashes; two hours."""
    command = ROOT / "tests" / "vmlab" / "vmlab"
    here = {**run.environment, "HOLDFAST_PYTHON": sys.executable}
    found = subprocess.run(
        [command, "check"], env=here, stderr=subprocess.PIPE, text=True, check=False
    )
    if found.returncode != 0:
        raise StageSkipped(found.stderr.strip())
    run.command(command, "test", "nfs4.2", "lun", folder=ROOT, HOLDFAST_PYTHON=sys.executable)
    run.command(command, "crash", folder=ROOT, HOLDFAST_PYTHON=sys.executable)


STATIC: tuple[Stage, ...] = (lint, mypy, shellcheck, changelog, words)

STAGES: tuple[Stage, ...] = (
    *STATIC,
    *(simulation, sanity, importer, testbed, leases, playbooks, agents, system, integration),
    *(security, unit, units, conformance, site, build),
)
"""What ``--all`` runs, in this order; those of a lane begin beside the others."""

QUICK: tuple[Stage, ...] = (*STATIC, failover, unit, conformance)
"""What runs without ``--all``, in less than five minutes."""

GIVING_WAY = 5
"""The nice value of what computes for minutes: clusters beside it are judged by their times."""

LANES = (
    Lane(frozenset({*STATIC, importer}), nice=GIVING_WAY),
    Lane(frozenset({simulation}), nice=LEFT_OVER),
    Lane(frozenset({sanity}), nice=LEFT_OVER),
    Lane(frozenset({testbed, leases, agents, integration, security})),
    Lane(frozenset({playbooks, system})),
    Lane(frozenset({failover})),
)
"""Stages that compute for long get what is left over, from the beginning.  They are two lanes, as
whatever of them is left at the end uses both cores then.  ``lint`` and ``importer`` work on one
copy of the checkout, one after the other.  Two lanes play clusters of their own, and take about as
long as each other; a third one would keep all waiting for a CPU."""

BY_NAME: tuple[Stage, ...] = (failover, awx, cores, vmlab, long_runs)
"""Those that are not part of ``--all``: another one has them, or they take long, or need much of a
machine."""


def main() -> int:
    """Run the stages asked for and return the exit status."""
    options = _options()
    if options.list:
        for stage in dict.fromkeys((*QUICK, *STAGES, *BY_NAME)):
            print(f"{stage.__name__:12} {stage.__doc__}{_when(stage)}")
        return 0
    usual = STAGES if options.all else QUICK
    names = options.stages or [stage.__name__ for stage in usual]
    chosen = [
        stage
        for stage in (*BY_NAME, *STAGES)
        if stage.__name__ in names and stage.__name__ not in options.without
    ]
    environment = workplace.prepare(options.scratch)
    run = Run(options.scratch, environment, frozenset(chosen), options.share, nice=GIVING_WAY)
    status = summarise(outcomes_of(chosen, LANES, run, options.no_skips))
    if options.share != WHOLE:
        print(f"Of what plays clusters and random runs, this was share {options.share}.")
    return status


def _options() -> argparse.Namespace:
    names = [stage.__name__ for stage in (*STAGES, *BY_NAME)]
    parser = argparse.ArgumentParser(
        prog="./run_tests",
        description="Run the quick tests of holdfast.ha, or all; what they need is set up here.",
    )
    parser.add_argument("stages", nargs="*", metavar="STAGE", help="run only these, see --list")
    parser.add_argument(
        "--without", action="append", default=[], metavar="STAGE", help="leave this one out"
    )
    parser.add_argument(
        "--all", action="store_true", help="run all stages, not only the quick ones"
    )
    parser.add_argument("--list", action="store_true", help="list the stages")
    parser.add_argument(
        "--share",
        type=Share.parse,
        default=WHOLE,
        metavar="NUMBER/COUNT",
        help="of what plays clusters and random runs, play one of so many shares, such as 2/4",
    )
    parser.add_argument("--no-skips", action="store_true", help="a skipped test is a failure")
    parser.add_argument("--scratch", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    for name in (*options.stages, *options.without):
        if name not in names:
            parser.error(f"'{name}' is not a stage; choose from {', '.join(names)}")
    return options


def _when(stage: Stage) -> str:
    """Return when a stage runs, as the end of its line in the list."""
    if stage in QUICK:
        return " (quick)"
    return "" if stage in STAGES else " Only by its name."


def _is_shell_script(path: Path) -> bool:
    if path.suffix in (".sh", ".j2"):
        return path.suffix == ".sh"
    with path.open("rb") as file:
        return re.match(rb"#!(/usr)?/bin/(env )?(ba)?sh\b", file.readline(64)) is not None


def _pytest(run: Run, *words: str) -> None:
    """Play the share of this run of tests that take long."""
    run.python("-m", "pytest", "--share", str(run.share), *words, folder=ROOT)


def _ansible_test(run: Run, command: str, *targets: str, folder: Path) -> None:
    workplace.seed_get_pip()
    words = ("-m", "ansible", "test", command, "--local", "--python", run.python_version)
    run.python(*words, "--color=no", *targets, folder=folder)


if __name__ == "__main__":
    raise SystemExit(main())
