# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role platform chooses for each supported system, from facts as Ansible reports them.

Nothing is installed: one run of Ansible includes the role for one host of each system, and the
values that it chose are compared with a table.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml
from ansible_collections.holdfast.ha.plugins.filter.fence_packages import FilterModule as Packages
from ansible_collections.holdfast.ha.plugins.filter.platform import FilterModule
from ansible_collections.holdfast.ha.tests.unit.programs import run_ansible

ROOT = Path(__file__).resolve().parents[2]
VARIABLES = ROOT / "roles" / "platform" / "vars"

BINDING = ["sanlock", "python3-sanlock"]
SANLOCK = ["sanlock"]
AGENTS = ["resource-agents"]
UBUNTU_AGENTS = ["resource-agents-base", "resource-agents-extra"]
OWN = ["fence-agents-apc-snmp", "fence-agents-ipmilan", "fence-virt"]
"""The packages of the agents in ``FENCE_AGENTS`` where each agent has its own."""

FENCE_AGENTS = ["fence_ilo5", "fence_tripplite_snmp", "fence_xvm"]
DEBIAN_12 = ["fence-agents", "ipmitool", "fence-virt"]
UBUNTU = ["fence-agents-base", "fence-agents-extra", "fence-virt"]
SUSE_15 = ["fence-agents", "fence-virt"]
DNF = ["dnf", "config-manager", "--set-enabled"]
RHSM = ["subscription-manager", "repos"]

SYSTEMS = [
    # distribution, version, family, sanlock, resource agents, fence agents, repository, Python
    ("Debian", "12.11", "Debian", BINDING, AGENTS, DEBIAN_12, None, "python3"),
    ("Debian", "13.1", "Debian", BINDING, AGENTS, OWN, None, "python3"),
    ("Ubuntu", "24.04", "Debian", BINDING, UBUNTU_AGENTS, UBUNTU, None, "python3"),
    ("Ubuntu", "26.04", "Debian", BINDING, UBUNTU_AGENTS, UBUNTU, None, "python3"),
    *(
        ("RedHat", version, "RedHat", SANLOCK, AGENTS, OWN, [*RHSM, f"--enable={name}"], python)
        for version, name, python in (
            ("8.10", "rhel-8-for-x86_64-highavailability-rpms", "python3.11"),
            ("9.6", "rhel-9-for-x86_64-highavailability-rpms", "python3"),
            ("10.0", "rhel-10-for-x86_64-highavailability-rpms", "python3"),
        )
    ),
    *(
        (distribution, version, "RedHat", SANLOCK, AGENTS, OWN, [*DNF, name], python)
        for distribution in ("AlmaLinux", "Rocky", "CentOS")
        for version, name, python in (
            ("8", "ha", "python3.11"),
            ("9.5", "highavailability", "python3"),
            ("10", "highavailability", "python3"),
        )
    ),
    *(
        ("OracleLinux", version, "RedHat", SANLOCK, AGENTS, OWN, [*DNF, name], python)
        for version, name, python in (
            ("8.9", "ol8_addons", "python3.11"),
            ("9.4", "ol9_addons", "python3"),
            ("10.0", "ol10_addons", "python3"),
        )
    ),
    *(
        (
            "SLES",
            version,
            "Suse",
            SANLOCK,
            AGENTS,
            fence,
            ["SUSEConnect", "--product", name],
            python,
        )
        for version, fence, name, python in (
            ("15.6", SUSE_15, "sle-ha/15.6/x86_64", "python311"),
            ("16.0", OWN, "sle-ha/16.0/x86_64", "python3"),
        )
    ),
    *(
        (distribution, version, "Suse", SANLOCK, AGENTS, fence, None, python)
        for distribution in ("SLES_SAP", "openSUSE Leap")
        for version, fence, python in (("15.6", SUSE_15, "python311"), ("16.0", OWN, "python3"))
    ),
]

FIREWALLD = [
    ["firewall-cmd", "--add-port=7410-7412/udp"],
    ["firewall-cmd", "--permanent", "--add-port=7410-7412/udp"],
]
NFTABLES = [["nft", "-f", "/etc/holdfast/firewall.nft"]]
RULE = 'insert rule inet filter input udp dport 7410-7412 accept comment "holdfast"\n'

UNSUPPORTED = [
    ("Fedora", "42", "RedHat"),
    ("AlmaLinux", "7.9", "RedHat"),
    ("Debian", "11.11", "Debian"),
    ("Ubuntu", "24.10", "Debian"),
    ("openSUSE Tumbleweed", "20261101", "Suse"),
    ("Amazon", "2023", "RedHat"),
]

REFUSAL = (
    "The node runs {}; supported are Debian 12 and 13; Ubuntu 24.04 and 26.04; RHEL, AlmaLinux, "
    "Rocky Linux, CentOS Stream and Oracle Linux 8, 9 and 10; SLES, SLES for SAP and openSUSE Leap "
    "15 and 16."
)

PLAY = """
- hosts: all
  gather_facts: false
  vars:
    platform_ports: 7410-7412
    values:
      refusal: "{{ refusal | default('') }}"
      sanlock: "{{ platform_sanlock_packages }}"
      agents: "{{ platform_resource_agent_packages }}"
      fence: "{{ fence_agents | holdfast.ha.fence_packages(platform_fence_agent_packages) }}"
      repository: "{{ platform_repository.enable | default(none) }}"
      python: "{{ platform_python.package }}"
      firewall: "{{ platform_firewall_open }}"
      firewall_files: "{{ platform_firewall_files }}"
      nfs: "{{ platform_selinux_booleans.nfs }}"
  tasks:
    - ansible.builtin.set_fact:
        ansible_distribution: "{{ facts.distribution }}"
        ansible_distribution_version: "{{ facts.distribution_version }}"
        ansible_distribution_major_version: "{{ facts.distribution_major_version }}"
        ansible_os_family: "{{ facts.os_family }}"
        ansible_architecture: "{{ facts.architecture }}"
        ansible_python: "{{ facts.python }}"
        cacheable: true
    - block:
        - ansible.builtin.include_role:
            name: holdfast.ha.platform
        - ansible.builtin.set_fact:
            chosen: "{{ values }}"
      rescue:
        - ansible.builtin.set_fact:
            chosen: {refusal: "{{ ansible_failed_result.msg }}"}
    - ansible.builtin.copy:
        content: "{{ dict(ansible_play_hosts_all | zip(each)) | to_json }}"
        dest: "{{ results }}"
      vars:
        each: "{{ ansible_play_hosts_all | map('extract', hostvars, 'chosen') }}"
      run_once: true
"""

OLD_PYTHON = ("AlmaLinux", "8.10", "RedHat")


def facts(distribution, version, family, python=(3, 11)):
    """Return facts of a system as Ansible reports them."""
    return {
        "distribution": distribution,
        "distribution_version": version,
        "distribution_major_version": version.partition(".")[0],
        "os_family": family,
        "architecture": "x86_64",
        "python": {
            "version_info": [*python, 0, "final", 0],
        },
    }


def host(distribution, version):
    return f"{distribution}_{version}".replace(" ", "_")


@pytest.fixture(scope="module")
def chosen(tmp_path_factory):
    """Return what one run of Ansible chose for a host of each system, by the host's name."""
    folder = tmp_path_factory.mktemp("platforms")
    known = {host(*system[:2]): facts(*system[:3]) for system in (*SYSTEMS, *UNSUPPORTED)}
    known["old_python"] = facts(*OLD_PYTHON, python=(3, 6))
    (folder / "play.yml").write_text(PLAY)
    inventory = {
        "all": {
            "hosts": {name: {"facts": found} for name, found in known.items()},
            "vars": {
                "ansible_connection": "local",
                "ansible_python_interpreter": sys.executable,
                "fence_agents": FENCE_AGENTS,
                "results": str(folder / "results.json"),
            },
        }
    }
    (folder / "hosts.yml").write_text(json.dumps(inventory))
    done = run_ansible("playbook", "-i", "hosts.yml", "play.yml", folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "results.json").read_text())


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: host(*system[:2]))
def test_packages_repository_and_python_are_those_of_the_system(chosen, system):
    distribution, version, _family, sanlock, agents, fence, repository, python = system
    found = chosen[host(distribution, version)]
    assert found["refusal"] == ""
    assert (found["sanlock"], found["agents"], found["fence"]) == (sanlock, agents, fence)
    assert (found["repository"], found["python"]) == (repository, python)


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: host(*system[:2]))
def test_the_ports_are_opened_in_the_firewall_of_the_system(chosen, system):
    found = chosen[host(*system[:2])]
    if system[2] == "Debian":
        assert found["firewall"] == NFTABLES
        assert found["firewall_files"]["/etc/holdfast/firewall.nft"] == RULE
    else:
        assert (found["firewall"], found["firewall_files"]) == (FIREWALLD, {})
    assert found["nfs"] == "sanlock_use_nfs"


@pytest.mark.parametrize("system", UNSUPPORTED, ids=lambda system: host(*system[:2]))
def test_another_system_is_refused_with_the_supported_ones(chosen, system):
    distribution, version, _family = system
    assert chosen[host(distribution, version)] == {
        "refusal": REFUSAL.format(f"{distribution} {version}")
    }


def test_an_old_python_is_refused_with_the_package_that_has_a_newer_one(chosen):
    assert chosen["old_python"]["refusal"] == (
        "Ansible uses Python 3.6 on this node, and holdfast needs 3.9 or newer; install the "
        "package python3.11, set ansible_python_interpreter=/usr/bin/python3.11 and try again."
    )


def supported():
    return yaml.safe_load((VARIABLES / "main.yml").read_text())["__platform_supported"]


def test_the_table_has_each_supported_system_and_release():
    every = {
        (name, release)
        for entry in supported()
        for name in entry["names"]
        for release in entry["releases"]
    }
    tested = {(system[0], system[1]) for system in SYSTEMS}
    tested |= {(name, version.partition(".")[0]) for name, version in tested}
    assert every <= tested


def test_each_file_of_variables_is_one_of_a_supported_system():
    choose = FilterModule().filters()["platform"]
    used = {
        file
        for distribution, version, family, *_more in SYSTEMS
        for file in choose(
            facts(distribution, version, family),
            supported(),
        )["files"]
    }
    there = {str(path.relative_to(VARIABLES)) for path in VARIABLES.rglob("*.yml")}
    assert {path for path in there if not path.startswith("firewall/")} - {"main.yml"} <= used


@pytest.mark.parametrize(
    ("path", "lists"),
    [
        ("README.md", " and "),
        ("docs/install.md", ", "),
        ("roles/platform/README.md", ", "),
    ],
)
def test_the_documentation_names_the_supported_systems(path, lists):
    text = (ROOT / path).read_text(encoding="utf-8")
    for entry in supported():
        for name in entry["names"].values():
            assert name in text, name
        releases = entry["releases"]
        assert f"{', '.join(releases[:-1])}{lists}{releases[-1]}" in text


@pytest.mark.parametrize(
    ("agents", "together", "packages"),
    [
        (["fence_ipmilan", "fence_ilo5"], [], ["fence-agents-ipmilan"]),
        (["fence_apc_snmp", "fence_xvm"], [], ["fence-agents-apc-snmp", "fence-virt"]),
        (["fence_ilo"], [], ["fence-agents-ilo2"]),
        (["fence_vmware_rest"], [], ["fence-agents-vmware-rest"]),
        (["fence_ipmilan"], ["fence-agents"], ["fence-agents"]),
        (["fence_virt"], ["fence-agents"], ["fence-agents", "fence-virt"]),
        ([], ["fence-agents"], []),
        ([], [], []),
    ],
)
def test_fence_agents_have_these_packages(agents, together, packages):
    assert Packages().filters()["fence_packages"](agents, together) == packages
