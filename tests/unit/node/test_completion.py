# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Completion of the command, as the shells themselves do it."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model import state
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.event_kinds import (  # noqa: E501
    EVENT_KINDS,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.commands import (
    make_parser,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.completion import (
    SHELLS,
    script,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.main import main
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.places import (
    places,
)

CASES = [
    (["st"], {"status"}),
    ([""], {"status", "history", "board", "completion"}),
    (["status", "--j"], {"--json"}),
    (["board", ""], {"dump", "lint", "repair"}),
    (["board", "repair", "--ap"], {"--apply"}),
    (["machine", "fr"], {"freeze"}),
    (["completion", "f"], {"fish"}),
    (["history", "--node", ""], {"n1", "n2"}),
    (["history", "--service", "vm"], {"vm:100"}),
    (["fence", ""], {"n1", "n2"}),
    (["drain", "n"], {"n1", "n2"}),
    (["why", ""], {"n1", "web", "vm:100"}),
    (["stop", "w"], {"web"}),
    (["what-if", "--dies", ""], {"n1", "n2"}),
    (["what-if", "--drained", "n1", "--loses-network", ""], {"n1", "n2"}),
    (["disarm", "--mode", ""], {"freeze", "ignore"}),
    (["board", "dump", "--block-size", ""], {"4096", "2048"}),
    (["history", "--kind", "f"], {"fence", "failed"}),
    (["rehearse", "n1", "--report", "x", ""], {"n1", "n2"}),
    (["move", ""], {"web"}),
]
"""What is typed, word for word, and what is offered among other words."""


LEFT_OUT = [
    (["move", "web", "--timeout", "9", ""], {"n1", "n2"}, {"web", "vm:100"}),
    (["move", "vm:100", ""], {"n1", "n2"}, {"web", "vm:100"}),
    (["move", ""], {"web"}, {"n1", "n2"}),
    (["fence", "n2", ""], set(), {"n1", "n2"}),
    (["history", "--kind", "fence", ""], set(), {"n1", "n2"}),
]
"""What is typed, what is offered and what is not, as it does not stand there."""


@pytest.fixture
def shell(tmp_path):
    """A folder with a holdfast that lists names, and the scripts; returns how to run a shell."""
    command = tmp_path / "holdfast"
    command.write_text(
        "#!/bin/sh\ncase $2 in nodes) echo n1; echo n2;; services) echo web; echo vm:100;; esac\n"
    )
    command.chmod(0o755)
    for name in SHELLS:
        (tmp_path / f"holdfast.{name}").write_text(script(name, list(places(make_parser()))))

    def run(name, code, *words):
        program = shutil.which(name)
        if program is None:
            pytest.skip(f"{name} is not installed")
        plain = {"bash": ["--norc", "-c"], "zsh": ["-f", "-c"], "fish": ["--no-config", "-c"]}[name]
        found = subprocess.run(
            [program, *plain, code, *words],
            env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert found.returncode == 0, found.stderr
        assert found.stderr == ""
        return found.stdout

    return run


@pytest.mark.parametrize(("typed", "offered"), CASES)
def test_bash_offers_what_can_follow(shell, typed, offered):
    code = """
    source ./holdfast.bash
    COMP_WORDS=(holdfast "$@"); COMP_CWORD=$#
    _holdfast
    printf '%s\\n' "${COMPREPLY[@]}"
    """
    said = set(shell("bash", code, "bash", *typed).split())
    assert offered <= said
    assert all(word.startswith(typed[-1]) for word in said)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["why", "vm", ":", "10"], {"100"}),
        (["why", "vm", ":"], {"100"}),
        (["history", "--service", "vm", ":", "1"], {"100"}),
        (["history", "--service", "vm", ":", "100", "--js"], {"--json"}),
    ],
)
def test_bash_offers_the_rest_of_a_name_with_a_colon_where_it_splits_words(shell, typed, offered):
    code = """
    source ./holdfast.bash
    COMP_WORDS=(holdfast "$@"); COMP_CWORD=$#
    _holdfast
    printf '%s\\n' "${COMPREPLY[@]}"
    """
    assert set(shell("bash", code, "bash", *typed).split()) == offered


def bash(shell, *words):
    code = """
    source ./holdfast.bash
    COMP_WORDS=(holdfast "$@"); COMP_CWORD=$#
    _holdfast
    printf '%s\\n' "${COMPREPLY[@]}"
    """
    return set(shell("bash", code, "bash", *words).split())


@pytest.mark.parametrize(("typed", "offered", "left_out"), LEFT_OUT)
def test_bash_offers_each_name_in_its_place_only(shell, typed, offered, left_out):
    said = bash(shell, *typed)
    assert offered <= said
    assert not said & left_out


def test_bash_finds_the_place_behind_a_name_that_it_splits(shell):
    said = bash(shell, "move", "vm", ":", "100", "")
    assert {"n1", "n2"} <= said
    assert not said & {"web", "vm:100"}


@pytest.mark.parametrize(("typed", "offered", "left_out"), LEFT_OUT)
def test_fish_offers_each_name_in_its_place_only(shell, typed, offered, left_out):
    typed_line = " ".join(["holdfast", *typed])
    told = shell("fish", f"source ./holdfast.fish; complete -C '{typed_line}'")
    said = {line.split("\t")[0] for line in told.splitlines()}
    assert offered <= said
    assert not said & left_out


def test_bash_offers_files_where_a_file_is_asked_for(shell):
    code = """
    source ./holdfast.bash
    COMP_WORDS=(holdfast status --html hold); COMP_CWORD=3
    _holdfast
    printf '%s\\n' "${COMPREPLY[@]}"
    """
    assert "holdfast.bash" in shell("bash", code).split()


def zsh(shell, *words):
    # As bashcompinit calls the function.
    code = """
    source ./holdfast.zsh
    emulate sh; setopt kshglob noshglob braceexpand
    COMP_WORDS=(holdfast "$@"); COMP_CWORD=$#
    _holdfast
    printf '%s\\n' "${COMPREPLY[@]}"
    """
    return set(shell("zsh", code, "zsh", *words).split())


@pytest.mark.parametrize(("typed", "offered"), CASES)
def test_zsh_offers_what_can_follow(shell, typed, offered):
    assert offered <= zsh(shell, *typed)


@pytest.mark.parametrize(("typed", "offered", "left_out"), LEFT_OUT)
def test_zsh_offers_each_name_in_its_place_only(shell, typed, offered, left_out):
    said = zsh(shell, *typed)
    assert offered <= said
    assert not said & left_out


@pytest.mark.parametrize(("typed", "offered"), CASES)
def test_fish_offers_what_can_follow(shell, typed, offered):
    typed_line = " ".join(["holdfast", *typed])
    said = shell("fish", f"source ./holdfast.fish; complete -C '{typed_line}'")
    assert offered <= {line.split("\t")[0] for line in said.splitlines()}


def test_zsh_takes_the_script(shell):
    assert shell("zsh", "source ./holdfast.zsh; print -r -- ${_comps[holdfast]}").strip()


def test_every_command_and_option_of_the_parser_is_known():
    found = {" ".join(place.words): place for place in places(make_parser())}
    assert {"", "status", "board dump", "lockspace init", "history"} <= set(found)
    assert {word.text for word in found[""].commands} >= {"status", "move", "metrics"}
    assert {word.text for word in found["history"].options} >= {"--node", "--since"}
    assert [one.files for one in found["board dump"].arguments] == [True]
    assert [one.names for one in found["move"].arguments] == [("services",), ("nodes",)]


KIND_AT = {"say": 0, "explain": 3}
"""Which argument of these methods of a ``Round`` is the kind of an event."""


def test_every_kind_of_event_that_a_manager_writes_is_known():
    manager = Path(state.__file__).parents[1]
    written = {"fence", "membership"}
    for path in manager.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            place = KIND_AT.get(getattr(getattr(call, "func", None), "attr", ""))
            if place is not None and isinstance(call.args[place], ast.Constant):
                written.add(call.args[place].value)
    assert tuple(sorted(written)) == EVENT_KINDS


@pytest.mark.parametrize("name", SHELLS)
def test_the_command_prints_the_script(name, capsys):
    assert main(["completion", name]) == 0
    assert capsys.readouterr().out == script(name, list(places(make_parser())))
