# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every kind of device that can be simulated here is switched, and its faults are failures."""

from __future__ import annotations

import re
import socket
import subprocess
import time
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import InputError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.describe import (
    check_fence_agents,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.prove import (
    power_off,
    power_on,
    power_status,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.rehearsal.ask import ask
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.rehearsal.judge import (
    judge,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.topology import (
    parse_fence_configuration,
)
from ansible_collections.holdfast.ha.tests.system.fencing.device_kinds import KINDS

LOOSE = 15.0
"""Seconds that a loaded machine may add to anything; a wait without an end is far longer."""

SENDER = "/usr/libexec/fence-agents/fence_kdump_send"


@pytest.fixture(params=KINDS)
def device(request, tmp_path):
    kind = KINDS[request.param]
    if kind.missing():
        pytest.skip(f"{request.param}: {kind.missing()}")
    with kind.make(tmp_path) as made:
        yield made


def kinds_that_can(fault):
    """Run a test with each kind of device that can have *fault*."""
    names = [name for name, kind in KINDS.items() if fault in kind.faults]
    return pytest.mark.parametrize("device", names, indirect=True)


def configuration(device, timeout=30.0, plug=None, **parameters):
    """Return the configuration with this device for the node n1; a plug may be another."""
    plug = plug or device.plug
    entry = {
        "agent": device.agent,
        "parameters": {**device.parameters, **parameters},
        "timeout": timeout,
        "retries": 0,
    }
    step = {"device": "d", **({"plug": plug} if plug else {})}
    return parse_fence_configuration(
        {"devices": {"d": entry}, "nodes": {"n1": {"levels": [[step]]}}}
    )


def refused(desired, timeout, device):
    """Fence by *desired*; make sure that it fails in time, and return why."""
    began = time.monotonic()
    result = power_off(desired, "n1")
    assert time.monotonic() - began < timeout + LOOSE
    assert (result.confirmed, result.evidence, result.confirmed_at) == (False, "none", None)
    assert result.reason.startswith("level 1: d")
    if device.is_on is not None:
        assert device.is_on()
    return result.reason


def test_a_machine_is_switched_off_and_on_and_the_device_agrees(device):
    desired = configuration(device)
    assert check_fence_agents(desired) == {"d": device.evidence}
    assert power_status(desired, "n1").power == "on"
    off = power_off(desired, "n1")
    assert (off.confirmed, off.evidence, off.power) == (True, device.evidence, "off"), off.reason
    assert (off.proof_at is not None) is (device.evidence == "device-verified")
    assert power_status(desired, "n1").power == "off"
    if device.is_on is not None:
        assert not device.is_on()
    on = power_on(desired, "n1")
    assert (on.confirmed, on.power) == (True, "on"), on.reason
    if device.is_on is not None:
        assert device.is_on()


@kinds_that_can("hang")
def test_a_device_that_takes_all_and_never_answers_is_given_up_at_the_deadline(device):
    usual = configuration(device)
    check_fence_agents(usual)
    device.hang(True)
    assert re.search(r"no answer within \d", refused(configuration(device, 2.0), 2.0, device))
    device.hang(False)
    assert power_status(usual, "n1").power == "on"


@kinds_that_can("be_deaf")
def test_a_device_that_says_off_and_stays_on_is_no_proof(device):
    device.be_deaf(True)
    desired = configuration(device, 12.0, power_timeout=1)
    assert "its status is on, not off" in refused(desired, 12.0, device)


@kinds_that_can("wrong_secret")
def test_a_device_that_refuses_us_is_no_proof_and_the_secret_is_not_told(device):
    reason = refused(configuration(device, 4.0, **device.wrong_secret), 4.0, device)
    assert "not-the-one" not in reason


def by_wrong_plug(device, timeout):
    """Return the configuration with a plug that the device does not have."""
    wrong = dict(device.wrong_plug)
    return configuration(device, timeout, wrong.pop("plug", None), **wrong)


@kinds_that_can("wrong_plug")
def test_a_plug_that_does_not_exist_is_never_proved_off(device):
    desired = by_wrong_plug(device, 8.0)
    refused(desired, 8.0, device)
    status = power_status(desired, "n1")
    assert (status.power, status.evidence, status.proof_at) == ("unknown", "none", None)


@kinds_that_can("wrong_plug")
def test_a_plug_that_does_not_exist_is_found_by_a_rehearsal(device):
    desired = by_wrong_plug(device, 10.0)
    (verdict,) = judge(desired, ask(desired, ["n1"]), ["n1"], ["n1"])
    assert verdict.verdict == "fails"
    assert verdict.problems


def test_a_rehearsal_of_a_device_that_is_well_works_and_switches_nothing(device):
    desired = configuration(device)
    (verdict,) = judge(desired, ask(desired, ["n1"]), ["n1"], ["n1"])
    proof = device.evidence == "device-verified"
    assert verdict.verdict == ("works" if proof else "degraded"), verdict.problems
    assert verdict.evidence == device.evidence
    assert "on" in verdict.steps[0].shown
    if device.is_on is not None:
        assert device.is_on()


def kdump_configuration(timeout, port):
    parameters = {"nodename": "127.0.0.1", "timeout": 3, **port}
    entry = {"agent": "fence_kdump", "parameters": parameters}
    document = {
        "devices": {"d": {**entry, "timeout": timeout, "retries": 0}},
        "nodes": {"n1": {"levels": [[{"device": "d"}]]}},
    }
    return parse_fence_configuration(document)


needs_kdump = pytest.mark.skipif(
    not Path(SENDER).exists(), reason="fence_kdump of fence-agents is not installed"
)


@needs_kdump
def test_a_gate_may_not_listen_on_our_port_by_default():
    with pytest.raises(InputError, match=r"d\.parameters\.ipport: .* 7410, .* port of holdfast"):
        check_fence_agents(kdump_configuration(20.0, {}))
    # Who says so has given the daemons another one.
    assert check_fence_agents(kdump_configuration(20.0, {"ipport": 7410})) == {"d": "gate"}


@needs_kdump
@pytest.mark.parametrize("dumping", [False, True])
def test_a_kernel_dump_is_a_gate_that_alone_proves_nothing(dumping):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    desired = kdump_configuration(20.0, {"ipport": port})
    assert check_fence_agents(desired) == {"d": "gate"}
    sender = None
    if dumping:
        command = [SENDER, "-p", str(port), "-i", "1", "-c", "20", "127.0.0.1"]
        sender = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        result = power_off(desired, "n1")
    finally:
        if sender is not None:
            sender.kill()
            sender.wait(timeout=60)
    assert (result.confirmed, result.evidence) == (False, "gate" if dumping else "none")
