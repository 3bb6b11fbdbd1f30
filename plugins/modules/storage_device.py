#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: storage_device
short_description: Set a block device up as the storage of a cluster, or give it up
version_added: 0.2.0
author:
  - The holdfast authors (@holdfast)
description:
  - Writes the header of a block device that all nodes share (a LUN, a partition or a logical
    volume). After that M(holdfast.ha.lockspace) and M(holdfast.ha.metadata) create the cluster's
    files on the device, with the device as their O(holdfast.ha.lockspace#module:path).
  - A device is used only if nothing is on it. It is refused, and nothing is written, if C(blkid)
    finds a file system, a partition table or anything else on it, if its first 8 MiB are not
    zeros, if it is in use on this node, read-only, or too small. There is no way to force it. To
    use such a device, clear it with C(wipefs --all).
  - The header has two copies. If one is damaged it is written again from the other.
  - Run it on one node of the cluster. Of several nodes that change a device at the same time, all
    but one fail and change nothing.
extends_documentation_fragment:
  - holdfast.ha.attributes
  - holdfast.ha.attributes.no_group
options:
  name:
    description:
      - Name of the cluster.
      - A device that belongs to another cluster is refused.
    type: str
    required: true
  path:
    description:
      - Absolute path of the block device, by a name that stays, such as one in C(/dev/disk/by-id)
        or C(/dev/mapper).
    type: path
    required: true
  state:
    description:
      - Whether the device shall have the header.
      - The header is removed only once M(holdfast.ha.metadata) and M(holdfast.ha.lockspace)
        have removed the files. They refuse to while the cluster is in use.
    type: str
    choices:
      - present
      - absent
    default: present
  max_hosts:
    description:
      - For how many host ids, from 1 to 2000, the device must have room. Give it the value for
        O(holdfast.ha.metadata#module:max_hosts).
      - It is used only to refuse a device that is too small, before anything is written.
    type: int
    default: 64
  node_record_size:
    description:
      - The value for O(holdfast.ha.metadata#module:node_record_size), used as O(max_hosts) is.
    type: int
  manager_record_size:
    description:
      - The value for O(holdfast.ha.metadata#module:manager_record_size), used as O(max_hosts) is.
    type: int
  configuration_size:
    description:
      - The value for O(holdfast.ha.metadata#module:configuration_size), used as O(max_hosts) is.
    type: int
seealso:
  - module: holdfast.ha.storage_device_info
  - module: holdfast.ha.lockspace
  - module: holdfast.ha.metadata
"""

EXAMPLES = r"""
- name: Set a LUN up
  holdfast.ha.storage_device:
    name: rack1
    path: /dev/mapper/ha-lun

- name: Create lockspace and leases on it
  holdfast.ha.lockspace:
    name: rack1
    path: /dev/mapper/ha-lun

- name: Create whiteboard and records on it
  holdfast.ha.metadata:
    name: rack1
    path: /dev/mapper/ha-lun

- name: Give the LUN up, after its files were removed
  holdfast.ha.storage_device:
    name: rack1
    path: /dev/mapper/ha-lun
    state: absent
"""

RETURN = r"""
device:
  description:
    - The device as it is after the task, or would be in check mode. V(null) if it has no header.
  returned: success
  type: dict
  contains:
    path:
      description: Path of the device.
      type: str
    cluster:
      description: Name of the cluster in the header.
      type: str
    id:
      description:
        - Id of the cluster's storage, the same on all nodes that see this device, whatever its
          name is there. V(null) in check mode, if the header would be
          new.
      type: str
    sector_size:
      description: Bytes of a sector.
      type: int
    size:
      description: Size of the device in bytes.
      type: int
    free:
      description: Bytes behind the last area.
      type: int
    areas:
      description: The storage files on the device, by their place.
      type: list
      elements: dict
      contains:
        kind:
          description: V(lockspace), V(leases), V(metadata) (whiteboard) or V(state) (records).
          type: str
        offset:
          description: Where it begins, in bytes.
          type: int
        size:
          description: Its size in bytes.
          type: int
    problem:
      description: What is wrong with one copy of the header; empty if nothing is.
      type: str
  sample:
    path: /dev/mapper/ha-lun
    cluster: rack1
    id: 6fa459ea-ee8a-3ca4-894e-db77e160355e
    sector_size: 512
    size: 2147483648
    free: 2139095040
    areas: []
    problem: ""
"""

from collections.abc import Mapping
from typing import Any

from ..module_utils._holdfast.storage.provision.device import (
    DesiredDevice,
    apply_device,
    look_device,
    plan_device,
    state_of,
)
from ..module_utils._holdfast.storage.provision.records import sizes_from_options
from ..module_utils._module import CLUSTER_FILES, Result, run

OPTIONS = CLUSTER_FILES.merge(
    state={"type": "str", "choices": ["present", "absent"], "default": "present"},
    max_hosts={"type": "int", "default": 64},
    node_record_size={"type": "int"},
    manager_record_size={"type": "int"},
    configuration_size={"type": "int"},
)


def act(options: Mapping[str, Any], check: bool) -> Result:
    path, name = options["path"], options["name"]
    desired = DesiredDevice(
        name=name,
        path=path,
        present=options["state"] == "present",
        max_hosts=options["max_hosts"],
        record_sizes=sizes_from_options(options),
    )
    plan = plan_device(desired, look_device(path, name))
    if check or not plan.changed:
        return Result(plan.changed, plan.after, plan.before, plan.after)
    apply_device(plan, desired)
    after = state_of(look_device(path, name), path)
    return Result(True, after, plan.before, after)


def main() -> None:
    run(OPTIONS, act)


if __name__ == "__main__":
    main()
