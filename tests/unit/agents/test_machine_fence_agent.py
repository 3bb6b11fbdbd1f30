# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fence agent of an embedded cluster: the protocol, over a library that is faked here."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.prove import (
    power_off,
    power_on,
    power_status,
)
from ansible_collections.holdfast.ha.tests.unit.agents.installed_agents import install_fence_agent
from ansible_collections.holdfast.ha.tests.unit.fence.device_script import (
    ask_devices,
    single_device,
)

POWER = """
from holdfast.errors import HoldfastError

def machines(folder):
    return sorted(one.name for one in folder.iterdir())

def is_on(folder, name):
    text = (folder / name).read_text()
    if text == "broken":
        raise HoldfastError("the machine does not answer.")
    return text.startswith("on")

def power_off(folder, name, deadline):
    (folder / name).with_name(name).write_text("off" if is_free(folder, name) else "on stuck")
    (folder.parent / "deadline").write_text(repr(deadline))

def power_on(folder, name, deadline):
    if (folder.parent / "no-power").exists():
        raise HoldfastError("there is no power.")
    (folder / name).write_text("on")

def is_free(folder, name):
    return "stuck" not in (folder / name).read_text()
"""


@pytest.fixture
def installed(tmp_path):
    """Lay out the agent and a library as on a node, with machines n1 (on) and n2 (off)."""
    agent = install_fence_agent(tmp_path / "sbin")
    (tmp_path / "lib").mkdir()
    with zipfile.ZipFile(tmp_path / "lib/holdfast.pyz", "w") as archive:
        archive.writestr("holdfast/__init__.py", "")
        archive.writestr("holdfast/errors.py", "class HoldfastError(Exception):\n    pass\n")
        archive.writestr("holdfast/node/__init__.py", "")
        archive.writestr("holdfast/node/machine/__init__.py", "")
        archive.writestr("holdfast/node/machine/power.py", POWER)
    folder = tmp_path / "machines"
    folder.mkdir()
    (folder / "n1").write_text("on")
    (folder / "n2").write_text("off")
    return agent, folder


def ask(agent, *arguments, lines=""):
    return subprocess.run(
        [str(agent), *arguments], input=lines, capture_output=True, text=True, check=False
    )


def on_stdin(installed, **options):
    agent, folder = installed
    given = {"folder": folder, **options}
    return ask(agent, lines="".join(f"{name}={value}\n" for name, value in given.items()))


@pytest.mark.parametrize("lines", ["", "\n", "# action=off\n", "plug=n1\n", "action=\nplug=n1\n"])
def test_without_an_action_nothing_happens(installed, lines):
    agent, folder = installed
    found = ask(agent, lines=f"folder={folder}\n{lines}")
    assert found.returncode == 1
    assert "no action was given" in found.stderr
    assert (folder / "n1").read_text() == "on"


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"action": "explode", "plug": "n1"}, "no action 'explode'"),
        ({"action": "off"}, "plug must be"),
        ({"action": "off", "plug": "n1,n2"}, "plug must be"),
        ({"action": "off", "plug": "../n1"}, "plug must be"),
        ({"action": "off", "plug": ".."}, "plug must be"),
        ({"action": "off", "plug": "n9"}, "no machine n9"),
        ({"action": "off", "plug": "", "nodename": "n1"}, "plug must be"),
        ({"action": "off", "plug ": "n1"}, "plug must be"),
        ({"action": "off", "nodename": "n9"}, "no machine n9"),
        ({"action": "validate-all", "plug": "n1,n2"}, "plug must be"),
        ({"action": "status", "plug": "n9"}, "no machine n9"),
        ({"action": "off", "plug": "n1", "folder": "machines"}, "folder must be"),
        ({"action": "off", "plug": "n1", "folder": "/nonexistent"}, "does not exist"),
        ({"action": "monitor", "folder": ""}, "folder must be"),
        ({"action": "off", "plug": "n1", "power_timeout": "soon"}, "power_timeout must be"),
        ({"action": "validate-all", "power_timeout": "0"}, "power_timeout must be"),
    ],
)
def test_what_is_wrong_ends_with_1_and_its_reason(installed, options, part):
    found = on_stdin(installed, **options)
    assert found.returncode == 1
    assert part in found.stderr
    assert found.stdout == ""


def test_a_status_is_0_for_on_2_for_off_and_1_when_it_is_unknown(installed):
    _agent, folder = installed
    assert on_stdin(installed, action="status", plug="n1").returncode == 0
    assert on_stdin(installed, action="status", plug="n2").returncode == 2
    (folder / "n1").write_text("broken")
    found = on_stdin(installed, action="status", plug="n1")
    assert found.returncode == 1
    assert "the machine does not answer" in found.stderr


def test_an_off_is_proved_and_repeatable(installed, tmp_path):
    _agent, folder = installed
    for _turn in range(2):
        assert on_stdin(installed, action="off", plug="n1", power_timeout=7).returncode == 0
        assert (folder / "n1").read_text() == "off"
    assert (tmp_path / "deadline").read_text() == "7.0"


def test_a_machine_that_stays_on_is_a_failure(installed):
    _agent, folder = installed
    (folder / "n1").write_text("on stuck")
    found = on_stdin(installed, action="off", plug="n1")
    assert found.returncode == 1
    assert "n1 is not off" in found.stderr
    assert on_stdin(installed, action="reboot", plug="n1").returncode == 1


def test_a_reboot_counts_once_the_machine_was_off(installed, tmp_path):
    _agent, folder = installed
    assert on_stdin(installed, action="reboot", plug="n1").returncode == 0
    assert (folder / "n1").read_text() == "on"
    (tmp_path / "no-power").touch()
    found = on_stdin(installed, action="reboot", plug="n1")
    assert found.returncode == 0
    assert "there is no power" in found.stderr
    assert on_stdin(installed, action="on", plug="n1").returncode == 1


def test_lists_have_plugs_aliases_and_states(installed):
    assert on_stdin(installed, action="list").stdout == "n1,n1\nn2,n2\n"
    assert on_stdin(installed, action="list-status").stdout == "n1,n1,ON\nn2,n2,OFF\n"
    assert on_stdin(installed, action="monitor").returncode == 0
    assert on_stdin(installed, action="validate-all").returncode == 0
    assert on_stdin(installed, action="validate-all", plug="n9").returncode == 0


def test_a_machine_that_does_not_answer_does_not_hide_the_others(installed):
    _agent, folder = installed
    (folder / "n1").write_text("broken")
    found = on_stdin(installed, action="list-status")
    assert (found.returncode, found.stdout) == (0, "n1,n1,UNKNOWN\nn2,n2,OFF\n")
    assert "n1: the machine does not answer" in found.stderr


def test_a_node_names_its_machine_where_no_plug_does(installed):
    assert on_stdin(installed, action="status", nodename="n2").returncode == 2
    assert on_stdin(installed, action="status", nodename="n2", plug="n1").returncode == 0
    agent, folder = installed
    asked = ask(agent, "-o", "status", "--nodename", "n2", "--folder", str(folder))
    assert asked.returncode == 2


def test_what_the_fencing_daemons_of_clusters_send_is_understood(installed):
    # FenceAgentAPI, Example input given to a fence_agent.
    _agent, folder = installed
    given = {"agent": "fence_holdfast_machine", "name": "device", "port": "n1", "option": "off"}
    assert on_stdin(installed, **given, nodename="n2").returncode == 0
    assert [(folder / name).read_text() for name in ("n1", "n2")] == ["off", "off"]


def test_bytes_that_are_no_text_are_refused_and_not_a_crash(installed):
    agent, folder = installed
    found = subprocess.run(
        [str(agent)],
        input=b"action=off\nplug=n\xff1\nfolder=" + str(folder).encode() + b"\n",
        capture_output=True,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONIOENCODING": "utf-8:strict"},
        check=False,
    )
    assert found.returncode == 1
    assert b"there is no machine n" in found.stderr
    assert b"Traceback" not in found.stderr


def test_standard_input_is_read_as_other_fence_agents_read_it(installed):
    agent, folder = installed
    lines = f'# comment\n\n  action=on\nport=n1\nfolder="{folder}"\nnodename=x\nplug=n2\n'
    assert ask(agent, lines=lines + "action=STATUS\n").returncode == 2
    found = ask(agent, lines=lines + "action=status\ncolour=red\n")
    assert found.returncode == 2
    assert "'colour' is not known and was ignored" in found.stderr


def test_a_command_line_does_the_same(installed):
    agent, folder = installed
    assert ask(agent, "-o", "status", "-n", "n2", "--folder", str(folder)).returncode == 2
    assert ask(agent, "--action=off", f"--folder={folder}", "--plug=n1").returncode == 0
    assert ask(agent, "-o", "list", "--folder", str(folder)).stdout == "n1,n1\nn2,n2\n"
    assert ask(agent, "-n", "n1", "--folder", str(folder)).returncode == 1
    assert ask(agent, "--bogus").returncode == 1
    assert ask(agent, "off").returncode == 1
    assert "usage:" in ask(agent, "-h").stdout
    assert ask(agent, "-V").stdout.strip()


def test_without_its_library_it_says_which_file_is_missing_and_has_metadata_all_the_same(tmp_path):
    agent = install_fence_agent(tmp_path)
    found = ask(agent, "-o", "monitor", "--folder", str(tmp_path))
    assert found.returncode == 1
    assert "holdfast.pyz is missing" in found.stderr
    assert ask(agent, "-o", "metadata").stdout.startswith("<?xml")


def test_a_link_to_the_agent_finds_the_library_too(installed, tmp_path):
    agent, folder = installed
    link = tmp_path / "elsewhere"
    link.symlink_to(agent)
    assert ask(link, "-o", "status", "-n", "n2", "--folder", str(folder)).returncode == 2


def test_all_spellings_of_metadata_are_valid_for_the_schema_of_fence_agents(tmp_path):
    agent = install_fence_agent(tmp_path)
    text = ask(agent, lines="action=metadata\n").stdout
    assert ask(agent, "-o", "meta-data").stdout == text
    assert ask(agent, "-o", "manpage").stdout == text
    schema = Path("/usr/share/cluster/relaxng/metadata.rng")
    if shutil.which("xmllint") is None or not schema.exists():
        pytest.skip("xmllint or the schema of fence-agents is not installed")
    (tmp_path / "agent.xml").write_text(text)
    subprocess.run(
        ["xmllint", "--noout", "--nonet", "--relaxng", str(schema), str(tmp_path / "agent.xml")],
        capture_output=True,
        check=True,
    )


def test_our_own_fencing_proves_with_it(installed):
    agent, folder = installed
    configuration, name = single_device(str(agent), {"folder": str(folder)}, "n1", 10.0)
    assert power_status(configuration, name).power == "on"
    result = power_off(configuration, name)
    assert (result.confirmed, result.evidence) == (True, "device-verified")
    assert power_on(configuration, name).power == "on"
    (answer,) = ask_devices(configuration, name, "list")
    assert list(answer["plugs"]) == ["n1", "n2"]
