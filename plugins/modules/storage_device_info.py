#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: storage_device_info
short_description: Read what a cluster has on a block device
version_added: 0.2.0
author:
  - The holdfast authors (@holdfast)
description:
  - Reads the header of a block device, which M(holdfast.ha.storage_device) writes, and whether a
    device without one could be set up.
  - Run it on all nodes and compare RV(device.id) to find out whether they see the same device.
  - Fails if the device belongs to another cluster, or is not as it was created.
extends_documentation_fragment:
  - holdfast.ha.attributes.info_module
  - holdfast.ha.attributes.no_group
options:
  name:
    description: Name of the cluster.
    type: str
    required: true
  path:
    description: Absolute path of the block device.
    type: path
    required: true
seealso:
  - module: holdfast.ha.storage_device
"""

EXAMPLES = r"""
- name: Read what is on the device
  holdfast.ha.storage_device_info:
    name: rack1
    path: /dev/mapper/ha-lun
  register: storage

- name: Go on only if all nodes see the same device
  ansible.builtin.assert:
    that: >-
      ansible_play_hosts | map('extract', hostvars, ['storage', 'device', 'id'])
      | unique | length == 1
  run_once: true
"""

RETURN = r"""
device:
  description: What the header says. V(null) if the device has none.
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
          name is there.
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
obstacle:
  description:
    - Why a device without a header could not be set up, such as a file system that is on it. Empty
      if it could.
  returned: success
  type: str
  sample: >-
    /dev/mapper/ha-lun has a file system (ext4), and is left as it is; clear it with wipefs --all if
    nothing on it is needed
"""

from collections.abc import Mapping
from typing import Any

from ..module_utils._holdfast.storage.provision.device import look_device, state_of
from ..module_utils._module import CLUSTER_FILES, Result, run

OPTIONS = CLUSTER_FILES


def act(options: Mapping[str, Any], check: bool) -> Result:
    found = look_device(options["path"], options["name"])
    return Result(values={**state_of(found, options["path"]), "obstacle": found.obstacle})


def main() -> None:
    run(OPTIONS, act)


if __name__ == "__main__":
    main()
