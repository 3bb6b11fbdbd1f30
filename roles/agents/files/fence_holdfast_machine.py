# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fence agent for the machines of an embedded cluster.

A machine here is the process tree that stands for a node on one computer.  This file
only speaks the fence agents' protocol (FenceAgentAPI): the library beside it, at
../lib/holdfast.pyz, does the work.  Unlike other agents it has no default action:
one that means "reboot" when nothing was said has cost many nodes.
"""

import getopt
import os
import sys

VERSION = "0.1.0"

ALIASES = {"port": "plug", "option": "action"}
DEFAULTS = {"power_timeout": "20"}
KNOWN = ("action", "plug", "nodename", "folder", "power_timeout")
METADATA_ACTIONS = ("metadata", "meta-data", "manpage")
"""The second is its name for resource agents; fencing.py of fence-agents answers all alike."""

METADATA = """<?xml version="1.0" ?>
<resource-agent name="fence_holdfast_machine" \
shortdesc="Fence agent for the machines of an embedded holdfast cluster">
<longdesc>Switches the machines of an embedded cluster: each is a tree of processes that \
stands for a node on one computer. There is no default action: without one it refuses.</longdesc>
<vendor-url></vendor-url>
<parameters>
  <parameter name="action" unique="0" required="1">
    <getopt mixed="-o, --action=[action]" />
    <content type="string" />
    <shortdesc lang="en">Fencing action</shortdesc>
  </parameter>
  <parameter name="plug" unique="0" required="1" obsoletes="port">
    <getopt mixed="-n, --plug=[name]" />
    <content type="string" />
    <shortdesc lang="en">Name of the machine</shortdesc>
  </parameter>
  <parameter name="port" unique="0" required="1" deprecated="1">
    <getopt mixed="-n, --plug=[name]" />
    <content type="string" />
    <shortdesc lang="en">Name of the machine</shortdesc>
  </parameter>
  <parameter name="nodename" unique="0" required="0">
    <getopt mixed="--nodename=[name]" />
    <content type="string" />
    <shortdesc lang="en">Name of the node, which is its machine's; a plug is preferred</shortdesc>
  </parameter>
  <parameter name="folder" unique="0" required="1">
    <getopt mixed="--folder=[path]" />
    <content type="string" />
    <shortdesc lang="en">Folder that holds one folder for each machine</shortdesc>
  </parameter>
  <parameter name="power_timeout" unique="0" required="0">
    <getopt mixed="--power-timeout=[seconds]" />
    <content type="second" default="20" />
    <shortdesc lang="en">Seconds until a machine must be on or off</shortdesc>
  </parameter>
  <parameter name="version" unique="0" required="0">
    <getopt mixed="-V, --version" />
    <content type="boolean" />
    <shortdesc lang="en">Print the version and end</shortdesc>
  </parameter>
  <parameter name="help" unique="0" required="0">
    <getopt mixed="-h, --help" />
    <content type="boolean" />
    <shortdesc lang="en">Print the help and end</shortdesc>
  </parameter>
</parameters>
<actions>
  <action name="on" automatic="0" />
  <action name="off" />
  <action name="reboot" />
  <action name="status" />
  <action name="monitor" />
  <action name="list" />
  <action name="list-status" />
  <action name="metadata" />
  <action name="manpage" />
  <action name="validate-all" />
</actions>
</resource-agent>
"""

HELP = """usage: fence_holdfast_machine -o ACTION [-n NAME] --folder PATH [--power-timeout SECONDS]
or name=value lines on standard input, when there are no arguments.
  -o, --action    on, off, reboot, status, monitor, list, list-status, metadata, manpage,
                  validate-all
  -n, --plug      name of the machine
      --nodename  the same, for callers that know only nodes; a plug is preferred
      --folder    folder that holds one folder for each machine
  -h, --help      this text
  -V, --version   the version
"""


class Refused(Exception):
    """Ends the agent with exit status 1 and this reason."""


class Settings:
    """What was asked for: the raw options, checked when they are first needed."""

    def __init__(self, options):
        self._options = {**DEFAULTS, **options}

    @property
    def action(self):
        """The action, in lower case as other fence agents have it."""
        return self._options.get("action", "").lower()

    @property
    def plug(self):
        """The name of one machine (FenceAgentAPI, nodename: a port goes before it)."""
        name = self._options.get("plug", self._options.get("nodename", ""))
        if not name or "/" in name or "," in name or name in (".", ".."):
            raise Refused(f"plug must be the name of one machine, not {name!r}")
        return name

    @property
    def has_plug(self):
        """Whether a machine was named at all."""
        return "plug" in self._options or "nodename" in self._options

    @property
    def folder(self):
        """The folder of the machines."""
        # Only what needs the library pays for this import.
        from pathlib import Path

        folder = self._options.get("folder", "")
        if not os.path.isabs(folder):
            raise Refused(f"folder must be a whole path, not {folder!r}")
        if not os.path.isdir(folder):
            raise Refused(f"the folder {folder} does not exist")
        return Path(folder)

    @property
    def power_timeout(self):
        """Seconds for a machine to be on or off."""
        text = self._options.get("power_timeout", "")
        if not text.isdigit() or int(text) == 0:
            raise Refused(f"power_timeout must be a whole number of seconds, not {text!r}")
        return float(text)


def main(arguments, lines):
    """Do what *arguments*, or without any the *lines* of standard input, ask for."""
    try:
        options = from_arguments(arguments) if arguments else from_lines(lines)
        if "help" in options:
            sys.stdout.write(HELP)
            return 0
        if "version" in options:
            sys.stdout.write(VERSION + "\n")
            return 0
        return act(Settings(options))
    except Refused as reason:
        say(str(reason))
        return 1


def act(settings):
    """Carry out the action; returns 0, or for a status 2 when the machine is off."""
    if settings.action in METADATA_ACTIONS:
        sys.stdout.write(METADATA)
        return 0
    actions = {
        "on": on,
        "off": off,
        "reboot": reboot,
        "status": status,
        "monitor": monitor,
        "list": list_machines,
        "list-status": list_status,
        "validate-all": validate,
    }
    if not settings.action:
        raise Refused("no action was given, and none is taken for granted")
    if settings.action not in actions:
        raise Refused(f"there is no action {settings.action!r}; see -h")
    return actions[settings.action](settings)


def say(text):
    """Write *text* for a person; standard output is for answers."""
    sys.stderr.write(f"fence_holdfast_machine: {text}\n")


def from_lines(lines):
    """Read name=value lines; blank lines and comments are skipped and the last of a name wins."""
    options = {}
    for line in lines:
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if len(value) >= 2 and value[0] == value[-1] == '"':
            value = value[1:-1]
        store(options, name, value if equals else "")
    return options


def from_arguments(arguments):
    """Read command line options."""
    names = {"o": "action", "n": "plug", "h": "help", "V": "version"}
    try:
        pairs, rest = getopt.gnu_getopt(
            arguments,
            "o:n:hV",
            [
                "action=",
                "plug=",
                "port=",
                "folder=",
                "power-timeout=",
                "nodename=",
                "help",
                "version",
            ],
        )
    except getopt.GetoptError as error:
        raise Refused(f"{error.msg}; see -h") from None
    if rest:
        raise Refused(f"{rest[0]!r} is not an option; see -h")
    options = {}
    for option, value in pairs:
        name = option.lstrip("-")
        store(options, names.get(name, name), value)
    return options


def store(options, name, value):
    """Keep an option under its own name; an unknown one is reported and left out."""
    name = name.replace("-", "_")
    name = ALIASES.get(name, name)
    if name in ("help", "version"):
        if value.lower() not in ("0", "no", "off", "false"):
            options[name] = value
    elif name in KNOWN:
        options[name] = value
    else:
        say(f"the option {name!r} is not known and was ignored")


class Power:
    """The library's functions, with all of its errors as refusals."""

    def __init__(self):
        here = os.path.dirname(os.path.realpath(__file__))
        library = os.path.join(os.path.dirname(here), "lib", "holdfast.pyz")
        if not os.path.isfile(library):
            raise Refused(f"the library {library} is missing")
        sys.path.insert(0, library)
        try:
            from holdfast.errors import HoldfastError
            from holdfast.node.machine import power
        except ImportError as error:
            raise Refused(f"the library {library} cannot be used: {error}") from None
        self._power = power
        self._errors = (HoldfastError, OSError)

    def call(self, name, *arguments):
        """Call the library's function *name*."""
        try:
            return getattr(self._power, name)(*arguments)
        except self._errors as error:
            raise Refused(str(error)) from None


def known_machine(power, settings):
    """Return the plug if there is such a machine: one that is missing is not "off"."""
    folder, plug = settings.folder, settings.plug
    if plug not in power.call("machines", folder):
        raise Refused(f"there is no machine {plug} in {folder}")
    return folder, plug


def switch(power, settings, desired):
    """Switch the machine and see that it is as *desired*."""
    folder, plug = known_machine(power, settings)
    if bool(power.call("is_on", folder, plug)) is not desired:
        power.call("power_on" if desired else "power_off", folder, plug, settings.power_timeout)
        if bool(power.call("is_on", folder, plug)) is not desired:
            raise Refused(f"the machine {plug} is not {'on' if desired else 'off'}")


def on(settings):
    """Switch the machine on."""
    switch(Power(), settings, True)
    return 0


def off(settings):
    """Switch the machine off."""
    switch(Power(), settings, False)
    return 0


def reboot(settings):
    """Switch the machine off and on; what counts is that it was off (FenceAgentAPI, reboot)."""
    power = Power()
    switch(power, settings, False)
    try:
        switch(power, settings, True)
    except Refused as reason:
        say(f"{settings.plug} is off and did not come on: {reason}")
    return 0


def status(settings):
    """Say whether the machine is on (0) or off (2)."""
    power = Power()
    is_on = power.call("is_on", *known_machine(power, settings))
    sys.stdout.write("Status: ON\n" if is_on else "Status: OFF\n")
    return 0 if is_on else 2


def monitor(settings):
    """See that the machines can be listed."""
    Power().call("machines", settings.folder)
    return 0


def list_machines(settings):
    """Print each machine as a plug with its alias."""
    for name in Power().call("machines", settings.folder):
        sys.stdout.write(f"{name},{name}\n")
    return 0


def list_status(settings):
    """Print each machine as a plug with its alias and state."""
    power = Power()
    folder = settings.folder
    for name in power.call("machines", folder):
        try:
            state = "ON" if power.call("is_on", folder, name) else "OFF"
        except Refused as reason:
            say(f"{name}: {reason}")
            state = "UNKNOWN"
        sys.stdout.write(f"{name},{name},{state}\n")
    return 0


def validate(settings):
    """Check the options, a plug only if there is one, without looking at any machine."""
    settings.folder  # noqa: B018
    settings.power_timeout  # noqa: B018
    if settings.has_plug:
        settings.plug  # noqa: B018
    return 0


if __name__ == "__main__":
    arguments = sys.argv[1:]
    # A name of any bytes is a name; it is refused as unknown, not as a wrong encoding.
    sys.stdin.reconfigure(errors="surrogateescape")
    sys.exit(main(arguments, [] if arguments else sys.stdin.readlines()))
