# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What resource agents make of a service is known when it is declared, not when it fails."""

from __future__ import annotations

import json

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    AgentError,
    InputError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration_file import (
    load,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations.configuration import (  # noqa: E501
    declare_configuration,
)
from ansible_collections.holdfast.ha.tests.unit.node.declaring import Cluster
from ansible_collections.holdfast.ha.tests.unit.ocf.agent_script import METADATA, write_agent

ADDRESS = """<resource-agent name="address"><version>1.1</version><parameters>
<parameter name="ip" unique="1" required="1"><content type="string"/></parameter>
<parameter name="file" unique="1"><content type="string" default="/etc/address"/></parameter>
<parameter name="host" unique-group="listen"><content type="string" default="any"/></parameter>
<parameter name="port" unique-group="listen"><content type="integer" default="80"/></parameter>
</parameters><actions><action name="start" timeout="20s"/></actions></resource-agent>
"""


@pytest.fixture
def cluster(tmp_path):
    found = Cluster(tmp_path)
    document = json.loads(found.path.read_text())
    found.path.write_text(json.dumps({**document, "cluster_key": str(tmp_path / "key")}))
    found.configuration = load(found.path)
    for kind in ("address", "other"):
        write_agent(tmp_path / "ocf", "exit 0", type=kind, metadata=ADDRESS)
    yield found
    found.close()


def address(service, agent="address", name="r", **parameters):
    """Return a service of one resource as options."""
    resource = {"name": name, "agent": f"ocf:test:{agent}", "parameters": parameters}
    return {"name": service, "state": "started", "resources": [resource]}


def declare(cluster, *services, check=False):
    options = {"config": str(cluster.path), "services": services, "rules": None, "policy": None}
    return declare_configuration(options, check)


WEB = {"ip": "192.0.2.1"}


@pytest.mark.parametrize("check", [True, False], ids=["check mode", "for real"])
@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [
        (WEB, WEB, "ip"),
        ({**WEB, "host": "a"}, {"ip": "192.0.2.2", "host": "a"}, "host"),
        ({**WEB, "host": "a"}, {"ip": "192.0.2.2", "host": "a", "port": 80}, "host, port"),
        ({**WEB, "host": "a", "port": 1}, {"ip": "192.0.2.2", "host": "a"}, ""),
        ({**WEB, "host": "a", "port": 1}, {"ip": "192.0.2.2", "host": "b", "port": 1}, ""),
        (WEB, {"ip": "192.0.2.2"}, ""),
        # The default of the first is the value of the second.
        (WEB, {"ip": "192.0.2.2", "file": "/etc/address"}, "file"),
    ],
)
def test_a_value_that_an_agent_calls_unique_is_that_of_one_service(
    cluster, first, second, shared, check
):
    declare(cluster, address("web", name="front", **first))
    if not shared:
        assert declare(cluster, address("mail", **second), check=check).changed
        return
    with pytest.raises(InputError) as told:
        declare(cluster, address("mail", **second), check=check)
    message = str(told.value)
    assert f"resources.parameters.{shared}: " in message
    assert "for service 'mail' a value that no other resource of ocf:test:address has" in message
    assert "resource 'front' of service 'web' has it" in message
    assert list(cluster.desired().services) == ["web"]


def test_a_unique_value_is_free_for_other_agents_and_once_its_service_is_gone(cluster):
    declare(cluster, address("web", **WEB))
    declare(cluster, address("mail", agent="other", **WEB))
    declare(cluster, {"name": "web", "state": "absent"}, address("new", **WEB))
    assert sorted(cluster.desired().services) == ["mail", "new"]


def test_two_services_can_exchange_a_unique_value_in_one_change(cluster):
    declare(cluster, address("a", ip="192.0.2.1"), address("b", ip="192.0.2.2"))
    declare(cluster, address("a", ip="192.0.2.2"), address("b", ip="192.0.2.1"))
    assert cluster.desired().services["a"].resources[0].parameters == {"ip": "192.0.2.2"}


def test_a_unique_value_is_unique_within_a_service_too(cluster):
    rows = address("web", **WEB)["resources"] + address("web", name="s", **WEB)["resources"]
    with pytest.raises(InputError, match="resource 's' of service 'web' has it"):
        cluster.service(resources=rows)


def test_a_shared_value_can_be_forced_and_what_has_one_can_still_be_changed(cluster):
    both = address("mail", **WEB)["resources"]
    cluster.service("web", resources=both)
    with pytest.raises(InputError, match="validate=false"):
        cluster.service("mail", resources=both)
    assert cluster.service("mail", resources=both, validate=False).changed
    assert cluster.service("mail", resources=both, max_restart=4).changed
    assert cluster.service("web", state="stopped").changed


NOTES = (
    '[ "$1" = validate-all ] || exit 0; echo "$OCF_RESOURCE_INSTANCE $OCF_RESKEY_path" >> {here}'
)


def checked(cluster, tail, metadata=METADATA):
    """Install an agent that notes each validation and then does *tail*; return a way to read it."""
    secret = cluster.configuration.secrets_folder / "password"
    secret.parent.mkdir(exist_ok=True)
    secret.touch(0o600)
    secret.write_text("4711")
    notes = cluster.folder / "validated"
    body = f"{NOTES.format(here=notes)}; {tail}"
    write_agent(cluster.folder / "ocf", body, type="checked", metadata=metadata)

    def read():
        lines = notes.read_text().splitlines() if notes.exists() else []
        notes.unlink(missing_ok=True)
        return lines

    return read


def resource(path, name="r", **more):
    parameters = {"path": path, "password_file": "password"}
    return {"name": name, "agent": "ocf:test:checked", "parameters": parameters, **more}


@pytest.mark.parametrize("check", [True, False], ids=["check mode", "for real"])
@pytest.mark.parametrize("code", [1, 2, 4, 6, 7, 99])
def test_parameters_that_an_agent_refuses_are_not_declared(cluster, code, check):
    reason = 'echo "ocf-exit-reason:no such $OCF_RESKEY_password here" >&2'
    validated = checked(cluster, f"{reason}; exit {code}")
    with pytest.raises(AgentError) as told:
        cluster.service(resources=[resource("/a")], check=check)
    message = str(told.value)
    assert "resource 'r' of service 'web' (ocf:test:checked): validate-all" in message
    assert "no such ******** here" in message
    assert "validate=false" in message
    assert validated() == ["web.r /a"]
    assert cluster.service(resources=[resource("/a")], validate=False, check=check).changed
    assert validated() == []


def test_what_a_node_cannot_judge_is_a_warning(cluster):
    validated = checked(cluster, 'echo "ocf-exit-reason:no program x" >&2; exit 5')
    result = cluster.service(resources=[resource("/a")])
    assert result.changed
    (warning,) = result.warnings
    assert warning.startswith("n1 cannot validate resource 'r' of service 'web'")
    assert "no program x" in warning
    assert validated() == ["web.r /a"]
    row = {"name": "mail", "state": "started", "resources": [resource("/b")]}
    assert len(declare(cluster, row, check=True).warnings) == 1


def test_an_agent_does_not_validate_without_its_secret(cluster):
    validated = checked(cluster, "exit 6")
    (cluster.configuration.secrets_folder / "password").unlink()
    (warning,) = cluster.service(resources=[resource("/a")]).warnings
    assert warning.startswith("n1 cannot validate resource 'r' of service 'web' (ocf:test:checked)")
    assert validated() == []


@pytest.mark.parametrize("code", [0, 3])
def test_only_what_is_new_or_changed_is_validated(cluster, code):
    validated = checked(cluster, f"exit {code}")
    cluster.service(resources=[resource("/a"), resource("/b", "s")])
    assert validated() == ["web.r /a", "web.s /b"]
    cluster.service(resources=[resource("/a"), resource("/c", "s")], max_restart=3)
    assert validated() == ["web.s /c"]
    cluster.service(state="stopped")
    assert validated() == []


def test_an_agent_is_not_asked_to_validate_unless_it_says_that_it_can(cluster):
    validated = checked(cluster, "exit 6", METADATA.replace("validate-all", "usage"))
    assert cluster.service(resources=[resource("/a")]).changed
    assert validated() == []


def times(cluster, service="web"):
    """Return the start, stop and monitor timeout and the interval of a declared service."""
    one = cluster.desired().services[service].resources[0]
    return one.start_timeout, one.stop_timeout, one.monitor_timeout, one.monitor_interval


def test_a_new_resource_gets_the_timeouts_that_its_agent_advises(cluster):
    checked(cluster, "exit 0")
    cluster.service(resources=[resource("/a", start_timeout=None)])
    assert times(cluster) == (40.0, 90.0, 30.0, 10.0)
    cluster.service("mail", resources=[resource("/b", start_timeout=7.0, monitor_interval=3.0)])
    assert times(cluster, "mail") == (7.0, 90.0, 30.0, 3.0)
    declare(cluster, address("far", **WEB))
    assert times(cluster, "far") == (20.0, 30.0, 20.0, 10.0)


def test_later_advice_of_an_agent_does_not_restart_a_service(cluster):
    checked(cluster, "exit 0")
    given = [resource("/a", stop_timeout=5.0, monitor_interval=3.0)]
    cluster.service(resources=given)
    before = cluster.desired().services["web"]
    checked(cluster, "exit 0", METADATA.replace('"40s"', '"50s"').replace("1m30s", "9m"))
    assert not cluster.service(resources=[resource("/a")]).changed
    assert cluster.service(resources=[resource("/a")], max_restart=4).changed
    assert cluster.desired().services["web"].digest() == before.digest()
    # Another name is another resource.
    cluster.service(resources=[resource("/a", name="s")])
    assert times(cluster) == (50.0, 540.0, 30.0, 10.0)


def test_the_level_of_monitors_stays_as_it_is_declared_until_another_one_is_given(cluster):
    checked(cluster, "exit 0")

    def level():
        return cluster.desired().services["web"].resources[0].check_level

    cluster.service(resources=[resource("/a")])
    before = cluster.desired().services["web"].digest()
    assert level() == 0
    assert cluster.service(resources=[resource("/a", check_level=20)]).changed
    assert not cluster.service(resources=[resource("/a")]).changed
    assert (level(), cluster.desired().services["web"].digest()) == (20, before)
    assert cluster.service(resources=[resource("/a", check_level=0)]).changed
    assert level() == 0
