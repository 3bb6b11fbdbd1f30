# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Resource agents of a few lines, written for one test each."""

from __future__ import annotations

METADATA = """<?xml version="1.0"?>
<!DOCTYPE resource-agent SYSTEM "ra-api-1.dtd">
<resource-agent name="thing" version="1.0">
<version>1.1</version>
<longdesc lang="en">A thing.</longdesc>
<shortdesc lang="en">A thing</shortdesc>
<parameters>
<parameter name="path" required="1" unique="1">
<longdesc lang="en">Where.</longdesc><shortdesc lang="en">Where it is</shortdesc>
<content type="string"/></parameter>
<parameter name="count"><longdesc/><shortdesc/><content type="integer" default="3"/></parameter>
<parameter name="loud"><longdesc/><shortdesc/><content type="boolean" default="no"/></parameter>
<parameter name="wait"><longdesc/><shortdesc/><content type="second" default="20s"/></parameter>
<parameter name="odd"><longdesc/><shortdesc/><content type="integer" default="pingd"/></parameter>
<parameter name="mode"><longdesc/><shortdesc/><content type="select" default="a">
<option value="a"/><option value="b"/></content></parameter>
<parameter name="password"><longdesc/><shortdesc/><content type="integer"/></parameter>
<parameter name="bare"/>
</parameters>
<actions>
<action name="start" timeout="40s"/><action name="stop" timeout="1m30s"/>
<action name="monitor" timeout="20s" interval="10s" depth="0"/>
<action name="monitor" timeout="30" interval="1h" depth="10" role="Promoted"/>
<action name="reload" timeout="20"/>
<action name="promote" timeout="20"/><action name="demote" timeout="20"/>
<action name="validate-all" timeout="500ms"/><action name="meta-data" timeout="5"/>
</actions>
</resource-agent>
"""

SHARED = METADATA.replace(' unique="1"', "")
"""The metadata of an agent whose resources may all have the same parameters."""


def write_agent(root, body, provider="test", type="thing", metadata=METADATA):
    """Write an agent below *root* whose action is in $1 for the shell text *body*."""
    folder = root / "resource.d" / provider
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / type
    path.write_text(
        "#!/bin/sh\n"
        f"if [ \"$1\" = meta-data ]; then cat <<'XML'\n{metadata}XML\nexit 0; fi\n{body}\n"
    )
    path.chmod(0o755)
    return str(path)


SWITCH = """
state="$HA_RSCTMP/thing-$OCF_RESOURCE_INSTANCE"
echo "$1" >> "$HA_RSCTMP/calls"
case $1 in
start) [ -e "$state" ] || echo 0 > "$state"; exit 0;;
stop) rm -f "$state"; exit 0;;
promote) echo 8 > "$state"; exit 0;;
demote) echo 0 > "$state"; exit 0;;
monitor) [ -e "$state" ] || exit 7; exit "$(cat "$state")";;
reload|validate-all) exit 0;;
esac
exit 3
"""
"""An agent that keeps its exit code for monitor in a file and notes each call."""
