# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which commands the role platform runs for repositories, firewall and SELinux.

The commands are scripts that record how they were called, so nothing on this machine changes.
"""

from __future__ import annotations

import json
import re
import sys

import pytest
from ansible_collections.holdfast.ha.tests.unit.programs import run_ansible

RECORD = '#!/bin/sh\necho "${0##*/} $*" >>"${0%/*}/../calls"\n'
PORTS = "7410-7412/udp"

EL = {
    "systemctl": "",
    "dnf": "case $* in *repolist*) echo appstream ;; esac",
    "firewall-cmd": "case $* in *--list-ports*) echo 22/tcp ;; esac",
    "getenforce": "echo Enforcing",
    "stat": "echo nfs",
    "getsebool": "echo 'sanlock_use_nfs --> off'",
    "setsebool": "",
}
"""The commands of a node that runs firewalld and SELinux, and has nothing set up yet."""

HOSTS = {
    "el": ("AlmaLinux", "9.6", "RedHat", EL),
    "set_up": (
        *("AlmaLinux", "9.6", "RedHat"),
        {
            **EL,
            "dnf": "echo highavailability",
            "firewall-cmd": f"case $* in *--list-ports*) echo {PORTS} ;; esac",
            "getsebool": "echo 'sanlock_use_nfs --> on'",
        },
    ),
    "debian": ("Debian", "13.1", "Debian", {"systemctl": "", "nft": "echo policy drop"}),
    "other_chain": (
        *("Debian", "13.1", "Debian"),
        {"systemctl": "", "nft": "echo 'No such file or directory' >&2; exit 1"},
    ),
    "no_firewall": ("Debian", "13.1", "Debian", {"systemctl": "exit 3", "nft": ""}),
}

PLAY = """
- hosts: all
  gather_facts: false
  vars:
    platform_ports: 7410-7412
    platform_folder: /srv/ha
  environment:
    PATH: "{{ place }}/bin:{{ lookup('ansible.builtin.env', 'PATH') }}"
  tasks:
    - ansible.builtin.set_fact:
        ansible_distribution: "{{ facts.0 }}"
        ansible_distribution_version: "{{ facts.1 }}"
        ansible_distribution_major_version: "{{ facts.1.split('.')[0] }}"
        ansible_os_family: "{{ facts.2 }}"
        ansible_architecture: x86_64
        ansible_python: {version_info: [3, 11, 2]}
        cacheable: true
    - ansible.builtin.include_role:
        name: holdfast.ha.platform
        tasks_from: "{{ entry }}"
      vars:
        platform_firewall_files: "{{ files }}"
      loop: [firewall, firewall_closed, repository, selinux]
      loop_control:
        loop_var: entry
      when: entry != 'repository' or facts.2 == 'RedHat'
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder in which each host's commands recorded their calls in one run."""
    folder = tmp_path_factory.mktemp("commands")
    hosts = {}
    for name, (*facts, commands) in HOSTS.items():
        place = folder / name
        (place / "bin").mkdir(parents=True)
        for command, answer in commands.items():
            script = place / "bin" / command
            script.write_text(RECORD + answer + "\n")
            script.chmod(0o755)
        files = {} if "nft" not in commands else {str(place / "rules" / "own.nft"): "rule"}
        hosts[name] = {"facts": facts, "place": str(place), "files": files}
    shared = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    (folder / "hosts.yml").write_text(json.dumps({"all": {"hosts": hosts, "vars": shared}}))
    (folder / "play.yml").write_text(PLAY)
    done = run_ansible("playbook", "-i", "hosts.yml", "play.yml", folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder / "shown").write_text(done.stdout)
    return folder


def calls(folder, name, *commands):
    """Return how a host called *commands*, in this order; all of them if none is given."""
    record = folder / name / "calls"
    lines = record.read_text().splitlines() if record.exists() else []
    return [line for line in lines if not commands or line.split()[0] in commands]


def test_the_ports_are_opened_in_firewalld_where_they_are_not(folder):
    assert calls(folder, "el", "systemctl", "firewall-cmd")[:4] == [
        "systemctl is-active firewalld.service",
        "firewall-cmd --permanent --list-ports",
        f"firewall-cmd --add-port={PORTS}",
        f"firewall-cmd --permanent --add-port={PORTS}",
    ]
    assert not any("--add-port" in call for call in calls(folder, "set_up"))


def test_the_ports_are_opened_in_nftables_now_and_at_each_start(folder):
    assert "nft -f /etc/holdfast/firewall.nft" in calls(folder, "debian", "nft")
    assert any(call.endswith("daemon-reload") for call in calls(folder, "debian", "systemctl"))
    text = (folder / "shown").read_text()
    assert re.search(r"changed: \[debian\] => \(item=\S+/own.nft\)", text)


def test_nftables_without_the_chain_is_left_alone_and_the_ports_are_shown(folder):
    look = "nft list chain inet filter input"
    assert set(calls(folder, "other_chain", "nft")) == {look}
    assert "Open the UDP ports 7410-7412 among the nodes by hand" in (folder / "shown").read_text()


def test_a_firewall_that_does_not_run_is_left_alone(folder):
    assert set(calls(folder, "no_firewall")) == {"systemctl is-active nftables.service"}


def test_the_ports_are_closed_where_they_are_open(folder):
    assert [call for call in calls(folder, "set_up", "firewall-cmd") if "--list" not in call] == [
        f"firewall-cmd --remove-port={PORTS}",
        f"firewall-cmd --permanent --remove-port={PORTS}",
    ]
    assert not any("--remove-port" in call for call in calls(folder, "el"))
    assert not (folder / "debian" / "rules" / "own.nft").exists()


def test_the_repository_is_turned_on_where_it_is_off(folder):
    assert calls(folder, "el", "dnf") == [
        "dnf --quiet repolist --enabled",
        "dnf config-manager --set-enabled highavailability",
    ]
    assert calls(folder, "set_up", "dnf") == ["dnf --quiet repolist --enabled"]


def test_the_boolean_of_the_file_system_is_set_where_it_is_off(folder):
    assert calls(folder, "el", "stat", "setsebool") == [
        "stat --file-system --format=%T /srv/ha",
        "setsebool -P sanlock_use_nfs on",
    ]
    assert calls(folder, "set_up", "getsebool", "setsebool") == ["getsebool sanlock_use_nfs"]
