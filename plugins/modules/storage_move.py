#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: storage_move
short_description: Move the files of a cluster to another folder or device
version_added: 0.2.0
author:
  - The holdfast authors (@holdfast)
description:
  - Moves lockspace, leases, whiteboard and records of a cluster to another folder or block device,
    while no node holds a host lease. The playbook C(storage_change) stops the daemons for it, and
    starts them on the new storage, while services keep running.
  - Versions, epochs, generations, the configuration and the history stay as they are. Lockspace and
    leases get the sector size of a new device, and have room for 2000 host ids there; from folder
    to folder their sizes stay.
  - At no time can a node join in both places. The new storage gets a lockspace only when the old
    one has none any more. After that the old files are removed, and the header of an old device.
  - If it fails before the new storage has all files, the old storage is as before. If it is
    interrupted, run it again with the same options to continue.
  - Run it on one node of the cluster. Set a device up with M(holdfast.ha.storage_device) first, or
    make the folder.
extends_documentation_fragment:
  - holdfast.ha.attributes
  - holdfast.ha.attributes.no_group
options:
  name:
    description:
      - Name of the cluster.
    type: str
    required: true
  src:
    description:
      - Absolute path of the folder or block device that the cluster uses.
    type: path
    required: true
  path:
    description:
      - Absolute path of the folder or block device that the cluster is to use. Files of a cluster
        of the same name there are refused.
    type: path
    required: true
  state:
    description:
      - With V(prepared) the records are copied to the new storage as C(NAME.moving), which no node
        uses. That is possible while the cluster runs. It shows that there is room for the files,
        and by C(NAME.moving) whether all nodes see the new storage.
      - With V(moved) the cluster is moved. This is refused while any node holds a host lease.
    type: str
    choices:
      - prepared
      - moved
    default: moved
  max_hosts:
    description:
      - For how many host ids, from 1 to 2000, the new files are made. Not fewer than before. If not
        given, as many as before.
    type: int
  node_record_size:
    description:
      - See O(holdfast.ha.metadata#module:node_record_size). If not given, it stays.
    type: int
  manager_record_size:
    description:
      - See O(holdfast.ha.metadata#module:manager_record_size). If not given, it stays.
    type: int
  configuration_size:
    description:
      - See O(holdfast.ha.metadata#module:configuration_size). If not given, it stays.
    type: int
seealso:
  - module: holdfast.ha.storage_device
  - module: holdfast.ha.lockspace
  - module: holdfast.ha.metadata
"""

EXAMPLES = r"""
- name: Set the LUN up
  holdfast.ha.storage_device:
    name: rack1
    path: /dev/mapper/ha-lun

- name: Copy the records to it, while the cluster runs
  holdfast.ha.storage_move:
    name: rack1
    src: /srv/ha
    path: /dev/mapper/ha-lun
    state: prepared

- name: Move the cluster, after all nodes have left
  holdfast.ha.storage_move:
    name: rack1
    src: /srv/ha
    path: /dev/mapper/ha-lun
"""

RETURN = r"""
storage:
  description: The storage in which nodes can join after the task, or could after check mode.
  returned: success
  type: str
  sample: /dev/mapper/ha-lun
prepared:
  description: Whether the records were copied to O(path), to which the cluster has not moved yet.
  returned: success
  type: bool
  sample: false
"""

from collections.abc import Mapping
from typing import Any

from ..module_utils._holdfast.storage.provision.move import (
    DesiredPlace,
    apply_move,
    check_move,
    look_move,
    plan_move,
)
from ..module_utils._holdfast.storage.provision.records import sizes_from_options
from ..module_utils._module import CLUSTER_FILES, Result, run

OPTIONS = CLUSTER_FILES.merge(
    src={"type": "path", "required": True},
    state={"type": "str", "choices": ["prepared", "moved"], "default": "moved"},
    max_hosts={"type": "int"},
    node_record_size={"type": "int"},
    manager_record_size={"type": "int"},
    configuration_size={"type": "int"},
)


def act(options: Mapping[str, Any], check: bool) -> Result:
    desired = DesiredPlace(
        name=options["name"],
        source=options["src"],
        target=options["path"],
        prepare=options["state"] == "prepared",
        max_hosts=options["max_hosts"],
        record_sizes=sizes_from_options(options),
    )
    found = look_move(desired)
    plan = plan_move(desired, found)
    check_move(plan, desired)
    changed = plan.changed if check else apply_move(plan, desired, found)
    return Result(changed, plan.after, plan.before, plan.after)


def main() -> None:
    run(OPTIONS, act)


if __name__ == "__main__":
    main()
