# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which parameters are secrets, which parts of other values are, and what is shown of them."""

from __future__ import annotations

import time

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import AgentError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.agent import (
    installed_agents,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.metadata import (
    load_metadata,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.secrets import (
    has_secret,
    hide,
    is_secret_name,
    secret_values,
    without_secrets,
)


@pytest.mark.parametrize(
    "name",
    [
        *("erlang_cookie", "connection_string", "primary_conninfo_opt", "ldap_bind_pw", "conninfo"),
        *("admin_password", "db_passwd", "api-key", "snmp_community", "dsn", "auth_cookie", "pw"),
    ],
)
def test_names_of_secrets_are_known(name):
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("op_params", "keyfile", "key_file", "identity_file", "cookie_file", "use_cookies"),
        *("password_script", "passwd_prompt", "keytab", "monkey", "connect_timeout", "pwm_fan"),
        *("connections", "connrate", "erlang_cookie_file", "check_passwd_use_empty", "run_opts"),
    ],
)
def test_what_is_no_secret_can_be_shown(name):
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("http://ada:hunter2@web/x?y=z", "http://ada:********@web/x?y=z"),
        ("redis://:hunter2@db:6379", "redis://:********@db:6379"),
        ("pg://a:hun@ter2@db/x", "pg://a:********@db/x"),
        ("-e DB_PASSWORD=hunter2 -p 80:80", "-e DB_PASSWORD=******** -p 80:80"),
        ("--env=DB_PASSWORD=hunter2 x", "--env=DB_PASSWORD=******** x"),
        ("-e 'DB_PASSWORD=hunter2 more' x", "-e 'DB_PASSWORD=********' x"),
        ("-e DB_PASSWORD='hunter2 more' x", "-e DB_PASSWORD='********' x"),
        ("-e X=hunter2", "-e X=********"),
        ("--user ada --password hunter2", "--user ada --password ********"),
        ("-u ada -phunter2 db", "-u ada -p******** db"),
        ("-u ada -p hunter2 db", "-u ada -p ******** db"),
        ("host=db password='hunter2 more'", "host=db password='********'"),
        ("user=ada;password=hunter2;x", "user=ada;password=********;x"),
        ("rw,name=admin,secret=hunter2,x", "rw,name=admin,secret=********,x"),
        ('{"password": "hunter2"}', '{"password": "********"}'),
    ],
)
def test_a_secret_in_a_longer_value_is_hidden_and_the_rest_is_shown(value, shown):
    assert without_secrets({"options": value}) == {"options": shown}
    hidden = hide(value, secret_values({"options": value}))
    assert hidden.replace("'", "") == shown.replace("'", "")


@pytest.mark.parametrize(
    "value",
    [
        *("-p 8080:80 -p 127.0.0.1:53:53/udp", "-p 5432", "-p /run/x.pid", "mkdir -p /srv/x"),
        *("iqn.2000-01.com.example:disk1", "http://web:8080/status", "rw,noatime,timeo=30"),
        *("ssl_key=/etc/ssl/key.pem", "2001:db8::1", "192.0.2.1:80", "ada@example.org", "key"),
        *("-o ConnectTimeout=10", "--secrets-dir=/etc/x", "a=b c=d", "-port 3 -path x"),
    ],
)
def test_what_has_no_secret_is_shown_as_it_is(value):
    assert without_secrets({"options": value}) == {"options": value}
    assert not secret_values({"options": value})
    assert not has_secret("options", value)


@pytest.mark.parametrize(
    ("name", "value", "certain"),
    [
        ("password", "hunter2", True),
        ("password", "", False),
        ("erlang_cookie", "hunter2", True),
        ("primary_conninfo_opt", "sslmode=require keepalives=1", False),
        ("primary_conninfo_opt", "sslmode=require password=hunter2", True),
        ("connection_string", "http://a:hunter2@x", True),
        ("ssl_key", "/etc/ssl/key.pem", False),
        ("run_opts", "-e TZ=UTC", False),
        ("run_opts", "-e DB_PASSWORD=hunter2", True),
    ],
)
def test_only_what_is_certainly_a_secret_is_refused(name, value, certain):
    assert has_secret(name, value) is certain


def test_a_service_names_its_own_secrets():
    row = {"parameters": {"motd": "hunter2", "port": "80"}, "secrets": ["motd"]}
    assert without_secrets([row]) == [{**row, "parameters": {"motd": "********", "port": "80"}}]
    assert secret_values(row["parameters"], ["motd"]) == ("hunter2",)
    assert has_secret("motd", "hunter2", ["motd"])


@pytest.mark.parametrize(
    "part", ["a", "a-", "key", "'key=", '"a=', "://a:", " -e a", " -p", " --key ", "key ", "=", "-"]
)
def test_a_hostile_value_takes_no_time_worth_naming(part):
    begun = time.process_time()
    value = part * (60_000 // len(part)) + " key"
    without_secrets({"options": value})
    has_secret("options", value)
    assert time.process_time() - begun < 5.0


SECRET_DEFAULTS = {
    "monpassword": "OCFMON",
    "admin_password": "guest",
    "erlang_cookie": "false",
}
"""Passwords of the distribution's agents that everybody knows."""


def test_no_default_of_an_installed_agent_is_taken_for_a_secret():
    agents = installed_agents()
    if len(agents) < 50:
        pytest.skip("resource-agents is not installed")
    taken, known = {}, 0
    for name, path in agents.items():
        try:
            metadata = load_metadata(path, agent=name)
        except AgentError:
            continue
        for one in metadata.parameters:
            known += 1
            if one.default and has_secret(one.name, one.default):
                taken[one.name] = one.default
    assert known > 900
    assert taken == SECRET_DEFAULTS
