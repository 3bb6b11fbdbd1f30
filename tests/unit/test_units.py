# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the units of a real node must say, so that its services are looked after at all times."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import jinja2
import pytest

ROLES = Path(__file__).resolve().parents[2] / "roles"
TEMPLATES = ROLES / "node/templates"
VARIABLES = {
    "node_command": "/usr/sbin/holdfast",
    "node_config": "/etc/holdfast/node.json",
    "node_folder": "/var/lib/holdfast",
    "node_library": "/usr/lib/holdfast.pyz",
    "node_storage": "/srv/ha",
    "node_metrics": "/srv/textfiles/holdfast.prom",
    "node_fence_configuration": "/etc/holdfast/fence.json",
    "__node_host_id": 3,
}


def command(**variables):
    """Return the last line of the installed command, as Ansible's template makes it."""
    surroundings = jinja2.Environment(trim_blocks=True, keep_trailing_newline=True)
    surroundings.filters["quote"] = shlex.quote
    text = (TEMPLATES / "holdfast.j2").read_text(encoding="utf-8")
    return surroundings.from_string(text).render({**VARIABLES, **variables}).splitlines()[-1]


def unit(name):
    """Return each setting of the unit *name* with all of its values, in their order."""
    text = (TEMPLATES / f"holdfast-{name}.service.j2").read_text(encoding="utf-8")
    found = {}
    for line in jinja2.Template(text).render(VARIABLES).splitlines():
        setting, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(setting, []).extend(value.split())
    return found


def test_what_writes_the_metrics_is_waited_for_by_nobody():
    metrics = unit("metrics")
    assert metrics["ExecStart"][-4:] == ["--write", "/srv/textfiles/holdfast.prom", "--every", "15"]
    assert metrics["KillMode"] == ["process"], "a look at storage that hangs cannot be ended"
    assert "Before" not in metrics
    for name in ("lrm", "crm", "leave"):
        assert "holdfast-metrics.service" not in str(unit(name))


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)
@pytest.mark.parametrize(
    ("name", "most"), [("crm", 4.0), ("metrics", 3.0), ("leave", 3.0), ("rehearse", 4.0)]
)
def test_a_unit_exposes_no_more_than_it_needs(name, most, tmp_path):
    path = tmp_path / f"holdfast-{name}.service"
    text = (TEMPLATES / f"{path.name}.j2").read_text(encoding="utf-8")
    path.write_text(jinja2.Template(text).render(VARIABLES) + "\n")
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(path)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if "unrecognized option" in found.stderr:
        pytest.skip("systemd-analyze is older than version 250, and cannot judge a file")
    exposure = re.search(r"Overall exposure level for \S+: ([0-9.]+)", found.stdout)
    assert exposure is not None, found.stdout + found.stderr
    assert float(exposure[1]) <= most, found.stdout


@pytest.mark.parametrize("name", ["crm", "metrics", "leave", "rehearse"])
def test_a_unit_has_a_call_refused_instead_of_being_ended_for_it(name):
    assert unit(name)["SystemCallErrorNumber"] == ["EPERM"]
    assert unit(name)["NoNewPrivileges"] == ["yes"]


def test_a_crm_reaches_what_fence_agents_need():
    crm = unit("crm")
    # ProtectClock= alone would leave them the clock as their only device.
    assert crm["DeviceAllow"] == ["char-*", "rw", "block-*", "rw"]
    assert "PrivateDevices" not in crm
    assert "PrivateNetwork" not in crm
    assert {"AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK"} <= {*crm["RestrictAddressFamilies"]}
    # Keys of ssh are below /root.
    assert crm["ProtectHome"] == ["read-only"]
    assert "@raw-io" not in crm["SystemCallFilter"]
    capabilities = {"CAP_DAC_OVERRIDE", "CAP_NET_RAW", "CAP_SYS_RAWIO", "CAP_SYS_ADMIN", "CAP_KILL"}
    assert capabilities <= {*crm["CapabilityBoundingSet"]}


def test_a_rehearsal_may_do_what_the_crm_may_that_calls_the_same_agents():
    bounds = ("NoNew", "Private", "Protect", "Restrict", "SystemCall", "Capability", "DeviceAllow")
    crm, rehearse = (
        {key: value for key, value in unit(name).items() if key.startswith(bounds)}
        for name in ("crm", "rehearse")
    )
    assert rehearse == crm


def timer(host_id):
    text = (TEMPLATES / "holdfast-rehearse.timer.j2").read_text(encoding="utf-8")
    surroundings = jinja2.Environment(trim_blocks=True)
    lines = surroundings.from_string(text).render(__node_host_id=host_id).splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def test_no_two_nodes_rehearse_in_the_same_minute():
    times = {timer(host_id)["OnCalendar"] for host_id in range(1, 1441)}
    assert len(times) == 1440
    assert timer(3)["OnCalendar"] == "*-*-* 01:51:00"
    first = {timer(host_id)["OnActiveSec"] for host_id in range(1, 61)}
    assert len(first) == 60, "not all at once after a deployment either"


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)
def test_systemd_takes_the_time_of_the_timer():
    command = ["systemd-analyze", "calendar", timer(2000)["OnCalendar"]]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_metrics_can_be_read_by_the_node_exporter():
    assert unit("metrics")["UMask"] == ["0022"]


def test_leaving_takes_the_port_of_the_lrm():
    leave = unit("leave")
    assert {"AF_INET", "AF_INET6"} <= {*leave["RestrictAddressFamilies"]}
    assert "PrivateNetwork" not in leave


@pytest.mark.parametrize("name", ["lrm", "crm"])
def test_a_process_that_lacked_memory_does_not_end_the_daemon_that_started_it(name):
    assert unit(name)["OOMPolicy"] == ["continue"]


def test_a_service_inherits_no_bound_from_its_lrm_that_other_services_do_not_have():
    lrm = unit("lrm")
    bounds = ("Lock", "NoNew", "Private", "Protect", "Restrict", "SystemCall", "Capability")
    assert [setting for setting in lrm if setting.startswith(bounds)] == []
    assert lrm["LimitNOFILE"] == ["65536:524288"]
    assert lrm["TasksMax"] == ["infinity"]


def test_at_shutdown_an_lrm_ends_before_what_resource_agents_need():
    lrm = unit("lrm")
    assert "resource-agents-deps.target" in lrm["After"]
    assert "resource-agents-deps.target" in lrm["Wants"], (
        "only what is active is ordered at its end"
    )
    assert "dbus.service" in lrm["After"]


@pytest.mark.parametrize("name", ["lrm", "crm"])
def test_a_storage_that_is_mounted_late_is_waited_for_and_not_given_up(name):
    """A unit with a requirement that failed is never restarted, whatever its Restart= says."""
    daemon, leave = unit(name), unit("leave")
    assert daemon["RequiresMountsFor"] == ["/var/lib/holdfast"]
    assert daemon["Restart"] == ["always"]
    assert "/srv/ha" in leave["RequiresMountsFor"]
    assert "holdfast-leave.service" in daemon["Wants"]
    assert "holdfast-leave.service" in daemon["After"]


@pytest.mark.parametrize(
    ("interpreter", "words"),
    [
        (None, "python3"),
        ("", "python3"),
        ("auto", "python3"),
        ("auto_silent", "python3"),
        ("auto_legacy_silent", "python3"),
        ("/usr/bin/python3", "/usr/bin/python3"),
        ("/usr/bin/env python3.11", "/usr/bin/env python3.11"),
        ("/opt/$HOME/python3", "'/opt/$HOME/python3'"),
    ],
)
def test_the_command_runs_by_the_interpreter_that_ansible_uses(interpreter, words):
    given = {} if interpreter is None else {"ansible_python_interpreter": interpreter}
    assert command(**given) == f'exec {words} -I "$library" "$@"'


@pytest.mark.parametrize("daemon", ["sanlock", "wdmd"])
def test_what_would_take_its_node_with_it_is_never_ended_for_lack_of_memory(daemon):
    template = ROLES / f"leases/templates/{daemon}.service.conf.j2"
    assert "OOMScoreAdjust=-1000" in template.read_text(encoding="utf-8").splitlines()
