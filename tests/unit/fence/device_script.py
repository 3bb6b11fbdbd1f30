# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fence agents of a few lines that switch files instead of machines, and misbehave when told."""

from __future__ import annotations

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.apply import (
    ask_device,
    plugs_of_device,
)

METADATA = """<?xml version="1.0" ?>
<resource-agent name="{name}" shortdesc="Fence agent for tests" >
<longdesc>Text.</longdesc><vendor-url></vendor-url>
<parameters>
<parameter name="action" unique="0" required="1"><getopt mixed="-o" />
<content type="string" default="reboot" /><shortdesc lang="en">x</shortdesc></parameter>
<parameter name="ip" unique="0" required="1" obsoletes="ipaddr"><getopt mixed="-a" />
<content type="string" /><shortdesc lang="en">x</shortdesc></parameter>
<parameter name="ipaddr" unique="0" required="1" deprecated="1"><getopt mixed="-a" />
<content type="string" /><shortdesc lang="en">x</shortdesc></parameter>
<parameter name="username" unique="0" required="0" obsoletes="login"><getopt mixed="-l" />
<content type="string" /><shortdesc lang="en">x</shortdesc></parameter>
<parameter name="login" unique="0" required="0" deprecated="1"><getopt mixed="-l" />
<content type="string" /><shortdesc lang="en">x</shortdesc></parameter>
<parameter name="password" unique="0" required="0"><getopt mixed="-p" />
<content type="string" /><shortdesc lang="en">x</shortdesc></parameter>
<parameter name="ssl" unique="0" required="0"><getopt mixed="-z" />
<content type="boolean" default="1" /><shortdesc lang="en">x</shortdesc></parameter>
<parameter name="ssl_insecure" unique="0" required="0"><getopt mixed="-y" />
<content type="boolean" /><shortdesc lang="en">x</shortdesc></parameter>
<parameter name="power_wait" unique="0" required="0"><getopt mixed="-w" />
<content type="second" default="0" /><shortdesc lang="en">x</shortdesc></parameter>
<parameter name="cipher" unique="0" required="0"><getopt mixed="-c" />
<content type="integer" /><shortdesc lang="en">x</shortdesc></parameter>
<parameter name="method" unique="0" required="0"><getopt mixed="-m" />
<content type="select" default="onoff"><option value="onoff" /><option value="cycle" /></content>
<shortdesc lang="en">x</shortdesc></parameter>
{plugs}</parameters>
<actions>{actions}</actions>
</resource-agent>
"""

PLUGS = """<parameter name="plug" unique="0" required="1" obsoletes="port"><getopt mixed="-n" />
<content type="string" /><shortdesc lang="en">x</shortdesc></parameter>
<parameter name="port" unique="0" required="1" deprecated="1"><getopt mixed="-n" />
<content type="string" /><shortdesc lang="en">x</shortdesc></parameter>
"""

ACTIONS = ("on", "off", "reboot", "status", "monitor", "list", "metadata", "validate-all")

SCRIPT = """#!/bin/sh
here={here}
action=reboot plug=
while IFS= read -r line; do
  case $line in
    action=*) action=${{line#action=}};;
    plug=*) plug=${{line#plug=}};;
    password=*) password=${{line#password=}};;
  esac
  lines="$lines$line|"
done
tr '\\0' ' ' < /proc/$$/cmdline >> $here/argv
[ "$action" = metadata ] || echo "$action $plug" >> $here/calls
[ "$action" = metadata ] || echo "$lines" >> $here/lines
state=$here/state-$plug
case $action in
metadata) cat <<'XML'
{metadata}XML
;;
off) {off};;
on) {on};;
status) {status};;
list) {listed};;
monitor) exit {monitor};;
validate-all) {validate};;
esac
"""

OFF = "echo off > $state"
ON = "echo on > $state"
STATUS = (
    'case $(cat "$state" 2>/dev/null || echo on) in on) exit 0;; off) exit 2;; *) exit 1;; esac'
)

LISTED = "printf '1,web\\n2,\\n'"


def listing(*plugs):
    """Return what makes a fence agent list these plugs."""
    return f"printf '%s,\\n' {' '.join(plugs)}"


def device_metadata(name="fence_test", plugs=PLUGS, actions=ACTIONS, automatic_on=False):
    """Return the metadata of a fence agent."""
    text = "".join(
        f'<action name="{action}"'
        + (' automatic="1"' if automatic_on and action == "on" else "")
        + " />"
        for action in actions
    )
    return METADATA.format(name=name, plugs=plugs, actions=text)


def write_device(
    folder,
    name="fence_test",
    off=OFF,
    on=ON,
    status=STATUS,
    monitor=0,
    validate=":",
    listed=LISTED,
    metadata=None,
    **described,
):
    """Write a fence agent below *folder* and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(
        SCRIPT.format(
            here=folder,
            off=off,
            on=on,
            status=status,
            monitor=monitor,
            validate=validate,
            listed=listed,
            metadata=metadata or device_metadata(name, **described),
        )
    )
    path.chmod(0o755)
    return str(path)


def calls(folder):
    """Return what the agents in *folder* were asked, but for their metadata."""
    path = folder / "calls"
    return path.read_text().split("\n")[:-1] if path.exists() else []


def single_device(agent, parameters, plug, timeout=10.0):
    """A configuration of one device and one node, and that node's name."""
    configuration = plugs_of_device(agent, parameters, [plug], timeout)
    return configuration, next(iter(configuration.levels))


def ask_devices(configuration, node, action):
    """What each device of *node* says to *action*."""
    steps = configuration.first_steps([node])
    return tuple(ask_device(configuration, step, action) for step in steps.values())
