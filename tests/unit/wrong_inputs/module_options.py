# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wrong options of modules: what operators mistype, and values that make no sense."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

RESOURCE = {"name": "one", "agent": "ocf:test:thing", "parameters": {"path": "/x"}}
SERVICE = {"name": "web", "resources": [RESOURCE]}
MEMBER = {"name": "n1", "host_id": 1, "port": 7410}
NODE = {"cluster": "c1", "node": "n1", "storage": "/srv", "folder": "/var/lib/x"}
LEVELS = {"levels": [[{"device": "bmc"}]]}
DEVICE = {"agent": "fence_ipmilan", "parameters": {"ip": "192.0.2.1"}}


@dataclass(frozen=True)
class Wrong:
    """Options of a module, and the words of its message that name what is wrong with them."""

    module: str
    options: Mapping[str, Any]
    named: tuple[str, ...]
    """Each is in the message: the value, or the option that is missing."""


def _resource(**more: Any) -> dict[str, Any]:
    return {"resources": [{**RESOURCE, **more}]}


def _device(**more: Any) -> dict[str, Any]:
    return {"devices": {"bmc": {**DEVICE, **more}}, "nodes": {"n1": LEVELS}}


TABLE: Mapping[str, tuple[Mapping[str, Any], tuple[tuple[Any, ...], ...]]] = {
    # Module: options that are right, and what differs, each with what has to be named.
    "service": (
        SERVICE,
        (
            ({"name": ""}, "name"),
            ({"name": "my web"}, "my web"),
            ({"name": "-web"}, "-web"),
            ({"name": "w" * 65}, "w" * 65),
            ({"name": "web/../x"}, "web/../x"),
            ({"state": "running"}, "running"),
            ({"resources": []}, "resources"),
            ({"resources": [RESOURCE, RESOURCE]}, "one"),
            (_resource(name="a b"), "a b"),
            (_resource(agent="nginx"), "nginx"),
            (_resource(agent="ocf:heartbeat:Nginxx"), "Nginxx"),
            (_resource(agent="ocf:test:../thing"), "../thing"),
            (_resource(agent="lsb:nginx"), "lsb:nginx"),
            (_resource(parameters={"bad name": 1}), "bad name"),
            (_resource(parameters={"pth": "/x"}), "pth"),
            (_resource(parameters={"path": {"a": 1}}), "path"),
            (_resource(start_timeout=0), "start_timeout", "0"),
            (_resource(start_timeout=-3), "-3"),
            (_resource(stop_timeout=1e9), "stop_timeout"),
            (_resource(monitor_interval=-1), "monitor_interval", "-1"),
            (_resource(check_level=-1), "check_level", "-1", "0 to 100"),
            (_resource(colour="red"), "colour"),
            ({"max_restart": -1}, "max_restart", "-1"),
            ({"max_restart": 10**6}, "1000000"),
            ({"max_relocate": -2}, "-2"),
            ({"backoff": -1.0}, "backoff", "-1"),
            ({"backoff": 60, "backoff_max": 10}, "backoff"),
            ({"node": "n9"}, "n9"),
            ({"node": "N 1"}, "N 1"),
            ({"cpus": -1}, "-1"),
            ({"memory": -5}, "-5"),
            ({"after": ["web"]}, "web"),
            ({"after": ["data base"]}, "data base"),
            ({"stop_within": 0, "state": "stopped"}, "stop_within", "0"),
            ({"stop_within": 10**7, "state": "stopped"}, "10000000"),
            ({"timeout": -1}, "timeout", "-1"),
            ({"timeout": 10**6}, "1000000"),
            ({"live_migration": True}, "ocf:test:thing"),
            ({"nodes": ["n1"]}, "nodes"),
            ({"config": "/nonexistent/node.json"}, "/nonexistent/node.json"),
            ({"config": "/dev/null"}, "/dev/null"),
        ),
    ),
    "service_move": (
        {"name": "web", "node": "n2"},
        (
            ({"name": "wbe"}, "wbe"),
            ({"name": ""}, "name"),
            ({"node": "n9"}, "n9"),
            ({"node": ""}, "node"),
            ({"node": None}, "node"),
            ({"timeout": -1}, "-1"),
            ({"target": "n2"}, "target"),
        ),
    ),
    "rule": (
        {"name": "apart", "services": ["web"], "nodes": {"n1": 1}},
        (
            ({"name": "a b"}, "a b"),
            ({"name": ""}, "name"),
            ({"services": []}, "services"),
            ({"services": ["we b"]}, "we b"),
            ({"nodes": {}}, "nodes"),
            ({"nodes": {"n9": 1}}, "n9"),
            ({"nodes": {"n1": "first"}}, "first"),
            ({"nodes": {"n1": -1}}, "-1"),
            ({"nodes": {"n1": 10**6}}, "1000000"),
            ({"affinity": "near", "nodes": None}, "near"),
            ({"affinity": "together", "nodes": None}, "services"),
            ({"affinity": "apart", "nodes": None, "services": ["web", "web"]}, "web"),
            ({"state": "gone"}, "gone"),
            ({"state": "absent", "name": "a/b"}, "a/b"),
            (
                {
                    "affinity": "apart",
                    "attribute": "si te",
                    "nodes": None,
                    "services": ["a", "b"],
                },
                "si te",
            ),
            ({"locations": 5}, "locations"),
        ),
    ),
    "node_properties": (
        {"name": "n1", "capacity": {"gpu": 2}},
        (
            ({"name": "n9"}, "n9"),
            ({"name": None}, "name"),
            ({"capacity": {"gpu": -2}}, "-2"),
            ({"capacity": {"g/u": 2}}, "g/u"),
            ({"capacity": {"gpu": 10**15}}, "gpu"),
            ({"safety_capacity": {"gpu": 3}}, "3"),
            ({"safety_capacity": {"licence": 1}}, "licence"),
            ({"attributes": {"site": "a b"}}, "a b"),
            ({"state": "gone"}, "gone"),
            ({"timeout": -1}, "-1"),
        ),
    ),
    "cluster_policy": (
        {},
        (
            ({"shutdown": "never"}, "never"),
            ({"shutdown_timeout": -1}, "-1"),
            ({"placement": "random"}, "random"),
            ({"rebalance_threshold": -0.5}, "-0.5"),
            ({"rebalance_hold": -1}, "-1"),
            ({"rebalance_margin": 1e9}, "rebalance_margin"),
            ({"max_workers": 0}, "max_workers", "0"),
            ({"max_workers": 10**6}, "1000000"),
            ({"timeout": -1}, "timeout"),
        ),
    ),
    "cluster_maintenance": (
        {"reason": "work", "wait": False},
        (
            ({"mode": "pause"}, "pause"),
            ({"duration": -1}, "-1"),
            ({"duration": 1e12}, "duration"),
            ({"timeout": -1}, "timeout"),
        ),
    ),
    "node_maintenance": (
        {"node": "n1", "reason": "work", "wait": False},
        (
            ({"node": "n9"}, "n9"),
            ({"node": ""}, "node"),
            ({"state": "maintenance"}, "maintenance"),
            ({"duration": -5}, "-5"),
            ({"timeout": 1e9}, "timeout"),
        ),
    ),
    "evacuate": (
        {"nodes": ["n1"]},
        (
            ({"nodes": ["n9"]}, "n9"),
            ({"nodes": []}, "nodes"),
            ({"timeout": -1}, "-1"),
        ),
    ),
    "configuration": (
        {"services": [SERVICE]},
        (
            ({"services": [{"resources": [RESOURCE]}]}, "name"),
            ({"services": [SERVICE, SERVICE]}, "web"),
            ({"services": [{**SERVICE, "max_restart": -1}]}, "-1"),
            ({"services": [{**SERVICE, "restarts": 3}]}, "restarts"),
            ({"services": [{**SERVICE, "after": ["nowhere"]}]}, "nowhere"),
            ({"rules": [{"name": "r"}]}, "services"),
            ({"rules": [{"name": "r", "services": ["nothing"], "nodes": {"n1": 1}}]}, "nothing"),
            ({"rules": [{"name": "r", "services": ["web"], "nodes": {"n8": 1}}]}, "n8"),
            ({"rules": [{"name": "r", "services": ["web"], "sort": 1}]}, "sort"),
            ({"node_properties": [{"name": "n8"}]}, "n8"),
            ({"node_properties": [{"name": "n1", "capacity": {"gpu": -3}}]}, "-3"),
            ({"node_properties": [{"name": "n1", "colour": 1}]}, "colour"),
            ({"policy": {"placement": "best"}}, "best"),
            ({"policy": {"shutdwon": "freeze"}}, "shutdwon"),
        ),
    ),
    "configuration_restore": (
        {"path": "/nonexistent/backup.json"},
        (
            ({}, "/nonexistent/backup.json"),
            ({"path": "/dev/null"}, "/dev/null"),
            ({"path": "/"}, "/"),
        ),
    ),
    "configuration_backup": (
        {"path": "/nonexistent/folder/backup.json"},
        (({}, "/nonexistent/folder"), ({"path": "/"}, "/")),
    ),
    "failover_simulation": (
        {},
        (
            ({"dies": ["n9"]}, "n9"),
            ({"loses_storage": ["n8"]}, "n8"),
            ({"loses_network": [""]}, "loses_network"),
            ({"drained": ["N1"]}, "N1"),
            ({"moves": {"web": "n7"}}, "n7"),
            ({"dies": ["n1"], "within": 0}, "within"),
            ({"dies": ["n1"], "within": 1e9}, "within"),
            ({"dies": ["n1"], "boot_seconds": -1}, "-1"),
            ({"rules": [{"name": "r", "services": ["web"], "nodes": {"n9": 1}}]}, "n9"),
            ({"rules": [{"name": "r"}]}, "services"),
        ),
    ),
    "place_info": (
        {"service": "web"},
        (
            ({"service": "w b"}, "w b"),
            ({"service": None}, "service"),
            ({"cpus": -1}, "-1"),
            ({"utilization": {"gpu": -4}}, "-4"),
        ),
    ),
    "rebalance_info": (
        {},
        (
            ({"nodes": ["n9"]}, "n9"),
            ({"threshold": -1}, "-1"),
        ),
    ),
    "outage_info": (
        {},
        (
            ({"nodes": ["n9"]}, "n9"),
            ({"at_once": 0}, "at_once"),
            ({"at_once": 5000}, "5000"),
            ({"owner": 5, "nodes": ["n7"]}, "n7"),
        ),
    ),
    "cluster_info": (
        {},
        (
            ({"until": "later"}, "later"),
            ({"until": "recovered", "failover_of": "n9"}, "n9"),
            ({"timeout": -1}, "-1"),
            ({"since": -1}, "-1"),
            ({"config": "/nonexistent.json"}, "/nonexistent.json"),
        ),
    ),
    "node_config": (
        {**NODE, "members": [MEMBER]},
        (
            ({"cluster": "c 1"}, "c 1"),
            ({"cluster": "c" * 41}, "c" * 41),
            ({"node": "n2"}, "n2"),
            ({"node": "_n"}, "_n"),
            ({"storage": "srv"}, "srv"),
            ({"members": []}, "members"),
            ({"members": [MEMBER, MEMBER]}, "n1"),
            ({"members": [MEMBER, {**MEMBER, "name": "n2"}]}, "1"),
            ({"members": [{**MEMBER, "host_id": 0}]}, "0"),
            ({"members": [{**MEMBER, "host_id": 2001}]}, "2001"),
            ({"members": [{**MEMBER, "port": 80}]}, "80"),
            ({"members": [{**MEMBER, "port": 65535}]}, "65535"),
            ({"members": [{**MEMBER, "address": "node1.example.com"}]}, "node1.example.com"),
            ({"members": [{**MEMBER, "address": "300.1.1.1"}]}, "300.1.1.1"),
            ({"members": [{**MEMBER, "mac": "x"}]}, "mac"),
            ({"backend": "dlm"}, "dlm"),
            ({"backend": "sanlock", "sanlock": {"io_timeout": 1}}, "io_timeout", "1"),
            ({"backend": "sanlock", "sanlock": {"watchdog_timeout": 1}}, "watchdog_timeout"),
            ({"backend": "sanlock", "sanlock": {"run_directory": "run"}}, "run"),
            ({"agent_directories": ["ocf"]}, "ocf"),
            ({"allowed_agents": ["ocf:heartbeat:;rm"]}, "ocf:heartbeat:;rm"),
            ({"fence_configuration": "fence.json"}, "fence.json"),
            ({"authentication": "on"}, "on"),
            ({"timing": {"beat": -1}}, "beat"),
            ({"timing": {"tempo": 1}}, "tempo"),
        ),
    ),
    "fence_config": (
        _device(),
        (
            ({"devices": {}}, "bmc"),
            ({"nodes": {"n1": {"levels": [[{"device": "ilo"}]]}}}, "ilo"),
            ({"nodes": {"n1": []}}, "n1"),
            ({"nodes": {"n 1": LEVELS}}, "n 1"),
            (_device(agent="ipmilan"), "ipmilan"),
            (_device(agent=""), "agent"),
            (_device(parameters={"ip": ["a"]}), "ip"),
            (_device(password="x"), "password"),
            (_device(timeout=-1), "timeout"),
            ({"path": "fence.json"}, "fence.json"),
        ),
    ),
    "fence": (
        {"config": "/nonexistent/fence.json", "nodes": ["n1"], "state": "off"},
        (
            ({}, "/nonexistent/fence.json"),
            ({"state": "down"}, "down"),
            ({"action": "explode", "state": None}, "explode"),
            ({"nodes": ["n 1"]}, "/nonexistent/fence.json"),
        ),
    ),
    "fence_rehearsal": (
        {"config": "/nonexistent/fence.json"},
        (
            ({}, "/nonexistent/fence.json"),
            ({"max_age": -1}, "-1"),
            ({"boot_timeout": 0}, "boot_timeout"),
            ({"port": 80, "address": "x"}, "x"),
        ),
    ),
    "lockspace": (
        {"name": "c1", "path": "/srv"},
        (
            ({"name": "c 1"}, "c 1"),
            ({"path": "srv"}, "srv"),
            ({"path": "/nonexistent/x"}, "/nonexistent/x"),
            ({"io_timeout": 1}, "1"),
            ({"io_timeout": 121}, "121"),
            ({"sector_size": 1024}, "1024"),
            ({"area_size": "3M"}, "3M"),
            ({"state": "gone"}, "gone"),
        ),
    ),
    "metadata": (
        {"name": "c1", "path": "/srv", "max_hosts": 3},
        (
            ({"max_hosts": 0}, "0"),
            ({"max_hosts": 2001}, "2001"),
            ({"block_size": 1000}, "1000"),
            ({"manager_record_size": -4096}, "-4096"),
            ({"path": "/nonexistent/x"}, "/nonexistent/x"),
            ({"watch": -1}, "-1"),
            ({"maintenance": True, "reason": ""}, "reason"),
            ({"clear_host": 9}, "9"),
            ({"name": ""}, "name"),
        ),
    ),
    "ocf_action": (
        {
            "agent": "ocf:test:thing",
            "name": "one",
            "state": "started",
            "parameters": {"path": "/x"},
        },
        (
            ({"agent": "thing"}, "thing"),
            ({"agent": "ocf:test:nothing"}, "ocf:test:nothing"),
            ({"agent": "ocf:../x:thing"}, "../x"),
            ({"name": "a/b"}, "a/b"),
            ({"state": "up"}, "up"),
            ({"state": None, "action": "dance"}, "dance"),
            ({"timeout": -1}, "-1"),
            ({"check_level": -1, "state": None, "action": "monitor"}, "-1"),
            ({"interval": -1}, "-1"),
            ({"parameters": {"a b": 1}}, "a b"),
            ({"verify": {"ports": [0]}}, "0"),
        ),
    ),
    "ocf_info": ({}, (({"agent": "thing"}, "thing"), ({"agent": "ocf:test:none"}, "none"))),
    "cluster_key": (
        {},
        (
            ({"keys": ["short"]}, "keys"),
            ({"path": "key"}, "key"),
        ),
    ),
}


def wrong_options() -> Iterator[Wrong]:
    """Return all wrong options of the table."""
    for module, (right, rows) in TABLE.items():
        for changed, *named in rows:
            given = {key: one for key, one in {**right, **changed}.items() if one is not None}
            yield Wrong(module, given, tuple(named))
