# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kernel crashes on a machine with a hardware watchdog: it writes its dump, or it is reset.

The machine has the role leases and is in a lockspace, so its watchdog is armed like that of a node.
Files, commands and fence devices are read from docs/install.md.  Command: ``vmlab crash``.
"""

from __future__ import annotations

import re
import time

import pytest
import yaml
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.prove import power_off
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.topology import (
    parse_fence_configuration,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace import (
    host_timing,
)
from testbed import lab
from testbed.deployment import CHECKOUT, Deployment, board_parameters
from testbed.node import wait_until
from vmlab.__main__ import missing
from vmlab.emulated import EmulatedLab

GUIDE = (CHECKOUT / "docs/install.md").read_text().split("## Crash dumps")[1].split("\n## ")[0]
FILE = re.compile(r"```ini\n# (?P<path>/\S+)\n(?P<text>.*?)```", re.DOTALL)
COMMANDS = re.compile(r"```sh\n(.*?)```", re.DOTALL)
DEVICES = re.compile(r"```yaml\n(.*?)```", re.DOTALL)
DUMPS = "/var/crash"

TIMES = host_timing.LeaseTiming(io_timeout=10, watchdog_timeout=60)
LOCKSPACE = "/var/lib/lockspace"

GATE, SHORT_GATE, DUMP_DELAY = 180, 20, 90
"""Seconds: timeout of the gate on a machine this slow; timeout of a gate for a machine that hangs;
delay of the power cut after the gate's answer, for the dump."""

LONG = 600.0
LOADED = "/sys/kernel/kexec_crash_loaded"

LEASES = [
    {
        "ansible.builtin.include_role": {"name": "holdfast.ha.leases"},
        "vars": {
            "leases_node": "n1",
            "leases_io_timeout": TIMES.io_timeout,
            "leases_watchdog_timeout": TIMES.watchdog_timeout,
        },
    }
]


@pytest.fixture(scope="module")
def laboratory():
    if lab.folder() is None:
        pytest.skip(missing() or "it runs in a lab: tests/vmlab/vmlab crash")
    with EmulatedLab() as created:
        (node,) = created.nodes.values()
        done = Deployment(created, fencing=False).play_tasks("leases", node.name, LEASES)
        assert done.status == 0, done.output[-3000:]
        for found in FILE.finditer(GUIDE):
            script = f'mkdir -p "$(dirname {found["path"]})"; cat >{found["path"]}'
            node.run("sh", "-ec", script, text=found["text"])
        (commands,) = COMMANDS.findall(GUIDE)
        # The package enables the unit itself, but not in an image, where nothing may be started.
        script = f"systemctl daemon-reload; systemctl enable kdump-tools; {commands}"
        node.run("sh", "-ec", script, timeout=LONG)
        yield created


@pytest.fixture
def machine(laboratory):
    """The machine, in a lockspace, with a loaded crash kernel and without a dump."""
    (node,) = laboratory.nodes.values()
    node.switch_on()
    node.wait_booted()
    node.run("sh", "-ec", f"rm -rf {DUMPS}; mkdir {DUMPS}; sync")
    join(node)
    wait_until(lambda: is_loaded(node), LONG, "the crash kernel")
    return node


def join(node):
    """Let the machine join a lockspace, which arms its watchdog."""
    words = ("systemctl", "is-active", "wdmd", "sanlock")
    wait_until(lambda: node.run(*words, check=False).returncode == 0, LONG, "sanlock")
    blank = f"test -e {LOCKSPACE} || {{ truncate -s 1M {LOCKSPACE}; chown sanlock: {LOCKSPACE};"
    node.run("sh", "-ec", f"{blank} sanlock direct init -s crash:0:{LOCKSPACE}:0; }}", timeout=LONG)
    node.run("sanlock", "client", "add_lockspace", "-s", f"crash:1:{LOCKSPACE}:0", timeout=LONG)


def is_loaded(node):
    return node.run("cat", LOADED).stdout.strip() == "1"


def guide_fencing(laboratory, gate_timeout):
    """Return the fence configuration of the guide, with the lab's board and times in seconds."""
    (found,) = DEVICES.findall(GUIDE)
    given = yaml.safe_load(found)
    devices, nodes = given["holdfast_fence_devices"], given["holdfast_fence_nodes"]
    board = board_parameters(laboratory.boards["n1"])
    for device in devices.values():
        if device["agent"] == "fence_ipmilan":
            device["parameters"] = {**device["parameters"], **board}
    gate, late = devices["dump-n1"], devices["late-board-n1"]
    gate["parameters"].update(nodename=laboratory.nodes["n1"].address, timeout=gate_timeout)
    gate["timeout"] = gate_timeout + 10
    late["parameters"]["delay"] = DUMP_DELAY
    late["timeout"] = DUMP_DELAY + 30
    return parse_fence_configuration({"devices": devices, "nodes": nodes})


def last_step(result):
    """Return fence level and device of the last step."""
    return result.steps[-1].level, result.steps[-1].step.device


def dumps(node):
    """Return the complete dumps on a node; incomplete ones have another name."""
    shown = node.run("sh", "-c", f"ls {DUMPS}/*/dump.*", check=False).stdout.split()
    return [path for path in shown if re.search(r"/dump\.\d+$", path)]


def test_a_crashed_machine_writes_its_dump_before_its_power_is_cut(laboratory, machine, figures):
    fired = machine.watchdog_fired()
    begun = time.monotonic()
    machine.panic()
    result = power_off(guide_fencing(laboratory, GATE), "n1")
    figures.add("kernel panic, until the power was cut after the dump", time.monotonic() - begun)
    assert result.confirmed, result.reason
    assert result.evidence == "device-verified"
    assert last_step(result) == (1, "late-board-n1"), result
    assert not machine.is_on
    assert machine.watchdog_fired() == fired
    machine.switch_on()
    machine.wait_booted()
    (path,) = dumps(machine)
    messages = machine.run("sh", "-c", f"cat {path.rpartition('/')[0]}/dmesg.*").stdout
    assert "sysrq triggered crash" in messages


def test_a_machine_that_writes_no_dump_loses_its_power_at_once(laboratory, machine, figures):
    begun = time.monotonic()
    machine.freeze()
    result = power_off(guide_fencing(laboratory, SHORT_GATE), "n1")
    figures.add(f"hang, gate of {SHORT_GATE} s, until the power was cut", time.monotonic() - begun)
    assert result.confirmed, result.reason
    assert last_step(result) == (2, "board-n1"), result
    assert not machine.is_on


def test_a_machine_without_a_fence_device_is_reset_by_its_hardware(machine, figures):
    machine.run("kdump-config", "unload", timeout=LONG)
    fired, boot = machine.watchdog_fired(), machine.boot_id()
    begun = time.monotonic()
    machine.panic()
    wait_until(lambda: machine.watchdog_fired() > fired, LONG, "the watchdog")
    took = time.monotonic() - begun
    figures.add("kernel panic, until the watchdog reset the machine", took)
    # The watchdog counts from the last renewal of the lease, one interval before at most.
    assert took < TIMES.dead_seconds - TIMES.renewal_seconds
    machine.wait_booted()
    assert machine.watchdog_fired() == fired + 1
    assert machine.boot_id() > boot
