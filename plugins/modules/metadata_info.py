#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: metadata_info
short_description: Read the whiteboard of a cluster
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Reads every block of C(NAME.metadata), including one that oVirt hosted engine wrote.
  - A damaged block is listed with what is wrong with it and harms no other.
  - One read cannot tell how old a block is, because its timestamp is of its writer's own
    clock. With O(watch) the whiteboard is read again and again, and a node counts as live when
    its timestamp changed.
extends_documentation_fragment:
  - holdfast.ha.attributes.info_module
  - holdfast.ha.attributes.no_group
  - holdfast.ha.cluster_files
options:
  watch:
    description:
      - Seconds for which the whiteboard is read once a second, at most 120. With V(0) it is read
        once.
      - Nodes of this collection write each second, agents of hosted engine about every 10
        seconds.
    type: float
    default: 0
seealso:
  - module: holdfast.ha.metadata
"""

EXAMPLES = r"""
- name: Read the whiteboard and see who is alive
  holdfast.ha.metadata_info:
    name: rack1
    path: /srv/ha
    watch: 3
  register: whiteboard

- name: Stop when a node is missing
  ansible.builtin.assert:
    that: whiteboard.hosts | rejectattr('live') | length == 0
"""

RETURN = r"""
exists:
  description: Whether there is a whiteboard. If not, the lists are empty.
  returned: success
  type: bool
  sample: true
max_hosts:
  description: For how many host ids the whiteboard has blocks.
  returned: success
  type: int
  sample: 64
block_size:
  description: Bytes of one block.
  returned: success
  type: int
  sample: 4096
global_maintenance:
  description: Whether the cluster is in global maintenance; V(null) when that block is damaged.
  returned: success
  type: bool
  sample: false
maintenance:
  description:
    - Why the cluster is in global maintenance, by whom, since when and until when, from the records
      beside the whiteboard; the times in seconds since 1970, V(0) where there is none. V(null) if
      the cluster is not in maintenance.
  returned: success
  type: dict
  sample: {reason: new switches, owner: ada, since: 1790000000.0, until: 1790007200.0}
hosts:
  description: The valid blocks by host id. Blank blocks are left out.
  returned: success
  type: list
  elements: dict
  contains:
    host_id:
      description: The host id.
      type: int
    host_name:
      description: Name of the node.
      type: str
    timestamp:
      description: Seconds of the node's own monotonic clock when it wrote the block.
      type: int
    live:
      description: Whether the timestamp changed while watching; V(null) without O(watch).
      type: bool
    age:
      description:
        - Seconds since its timestamp was observed to change, by this machine's clock; V(null) when
          it did not while watching, or without O(watch).
      type: float
    score:
      description: How well the node is suited, 0 to 3400.
      type: int
    health:
      description: What the node reports about the health of its services.
      type: dict
    maintenance:
      description: Whether the node is in local maintenance.
      type: bool
    stopped:
      description: Whether the node's daemon was stopped cleanly.
      type: bool
    conf_on_shared_storage:
      description: Whether the node's configuration is on the shared storage.
      type: bool
    conf_timestamp:
      description: When the node read its configuration, in seconds of its own clock.
      type: int
    checksum:
      description: CRC-32 of the block's machine part.
      type: str
    extra:
      description: Text for people.
      type: str
  sample:
    - host_id: 1
      host_name: n1
      timestamp: 4262
      live: true
      age: 0.4
      score: 3400
      health:
        vm: up
        health: good
        detail: Up
      maintenance: false
      stopped: false
      conf_on_shared_storage: true
      conf_timestamp: 1000
      checksum: b0d6aef7
      extra: ""
problems:
  description: The damaged blocks; host id 0 is the global block.
  returned: success
  type: list
  elements: dict
  contains:
    host_id:
      description: The host id whose block it is.
      type: int
    problem:
      description: What is wrong with it.
      type: str
  sample: []
findings:
  description:
    - Everything that is wrong with the whiteboard, also where a block can be read but harms the
      agents of hosted engine.
  returned: success
  type: list
  elements: dict
  contains:
    host_id:
      description: The host id whose block it is; V(0) is the global block.
      type: int
    problem:
      description: What is wrong.
      type: str
    advice:
      description: What O(holdfast.ha.metadata#module:repair) does about it, or what else to do.
      type: str
    repairable:
      description: Whether O(holdfast.ha.metadata#module:repair) puts it right.
      type: bool
  sample: []
vm_status:
  description:
    - The same in the shape of C(hosted-engine --vm-status --json), keyed by host id, with
      C(global_maintenance) beside the hosts. C(live-data) is V(null) without O(watch).
  returned: success
  type: dict
  sample:
    global_maintenance: false
"""

import time
from collections.abc import Mapping
from typing import Any

from ..module_utils._holdfast.operator.operations.maintenance import read_hold
from ..module_utils._holdfast.storage.whiteboard.board import Board, Watched, view, vm_status, watch
from ..module_utils._holdfast.storage.whiteboard.file import Whiteboard, no_direct
from ..module_utils._holdfast.storage.whiteboard.lint import finding_rows, lint
from ..module_utils._holdfast.storage.whole_file import cluster_paths, exists
from ..module_utils._module import CLUSTER_FILES, Result, run

OPTIONS = CLUSTER_FILES.merge(
    watch={"type": "float", "default": 0},
)


def act(options: Mapping[str, Any], check: bool) -> Result:
    paths = cluster_paths(options["path"], options["name"])
    seconds = options["watch"]
    findings: list[dict[str, object]] = []
    warnings = []
    there = exists(paths.metadata)
    watched = Watched(Board(max_hosts=0))
    if there:
        with Whiteboard(paths.metadata) as whiteboard:
            watched = watch(whiteboard.read, seconds, time.monotonic, time.sleep)
            findings = finding_rows(lint(whiteboard.read_bytes(), whiteboard.block_bytes()))
            if not whiteboard.direct:
                warnings.append(no_direct(paths.metadata))
    values = {**view(watched), "findings": findings, "vm_status": vm_status(watched)}
    values["maintenance"] = read_hold(paths, watched.board) if there else None
    return Result(values={"exists": there, **values}, warnings=warnings)


def main() -> None:
    run(OPTIONS, act)


if __name__ == "__main__":
    main()
