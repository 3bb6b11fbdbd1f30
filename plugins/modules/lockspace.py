#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: lockspace
short_description: Create or remove the lockspace and leases of a cluster
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Creates C(NAME.lockspace) and C(NAME.leases) in a folder on shared storage, in the format of
    sanlock, with place for 2000 hosts unless O(area_size) is smaller.
  - The leases are C(manager) and C(configuration).
  - An existing valid lockspace is left as it is. A lockspace in use is neither recreated nor
    removed, unless O(force=true).
  - Several nodes may run this at the same time; one of them creates each file.
extends_documentation_fragment:
  - holdfast.ha.attributes
  - holdfast.ha.attributes.no_group
  - holdfast.ha.cluster_files
options:
  state:
    description: Whether the files shall be there.
    type: str
    choices:
      - present
      - absent
    default: present
  io_timeout:
    description:
      - Seconds after which an input or output operation of a node on the storage counts as
        failed. All times of the host leases are multiples of it. A host lease fails after eight
        times this without renewal.
      - From 2 to 120. With 1 the watchdog daemon of sanlock resets healthy nodes.
      - If not given, an existing lockspace keeps what it has, and a new one gets 2 seconds.
      - Changing it recreates the lockspace, for which all nodes have to leave.
    type: int
  sector_size:
    description:
      - Bytes of one sector of the storage. Storage with sectors of 4096 bytes needs V(4096);
        V(512) is for all other.
      - If not given, existing files keep what they have, and new ones get V(512).
      - Existing files of another size are recreated only with O(force=true).
    type: int
    choices:
      - 512
      - 4096
  area_size:
    description:
      - Size of the lockspace, and of the area of each lease. With sectors of 512 bytes it is
        V(1M) for 2000 hosts. With sectors of 4096 bytes it is V(1M) for 250 hosts, as in oVirt
        hosted engine, V(2M) for 500, V(4M) for 1000 or V(8M) for 2000.
      - If not given, existing files keep what they have, and new ones have place for 2000 hosts.
    type: str
    choices:
      - 1M
      - 2M
      - 4M
      - 8M
  force:
    description:
      - Overwrite or remove a lockspace that is in use, or a file of another format that has its
        name.
      - This takes the ground from under running nodes. Use it only when all of them are
        certainly off.
      - When the leases are recreated, the version of the manager lease starts again. Create
        the files of M(holdfast.ha.metadata) again then too, because older versions are refused.
    type: bool
    default: false
seealso:
  - module: holdfast.ha.metadata
"""

EXAMPLES = r"""
- name: Create the lockspace
  holdfast.ha.lockspace:
    name: rack1
    path: /srv/ha

- name: Create a lockspace for slow storage
  holdfast.ha.lockspace:
    name: rack1
    path: /srv/ha
    io_timeout: 10

- name: Create a lockspace on storage with sectors of 4096 bytes, for 250 hosts
  holdfast.ha.lockspace:
    name: rack1
    path: /srv/ha
    sector_size: 4096
    area_size: 1M

- name: Remove the lockspace after all nodes have left
  holdfast.ha.lockspace:
    name: rack1
    path: /srv/ha
    state: absent
"""

RETURN = r"""
lockspace:
  description: The lockspace as it is after the task, or would be in check mode.
  returned: when O(state=present)
  type: dict
  contains:
    path:
      description: Path of the file.
      type: str
    name:
      description: Name of the lockspace.
      type: str
    io_timeout:
      description: The I/O timeout in seconds.
      type: int
    sector_size:
      description: Bytes of a sector, one for each host lease.
      type: int
    area_bytes:
      description: Bytes of the lockspace, and of the area of each lease.
      type: int
    max_hosts:
      description: For how many host ids it has leases.
      type: int
  sample:
    path: /srv/ha/rack1.lockspace
    name: rack1
    io_timeout: 2
    sector_size: 512
    area_bytes: 1048576
    max_hosts: 2000
leases:
  description: The leases as they are after the task, or would be in check mode.
  returned: when O(state=present)
  type: dict
  contains:
    path:
      description: Path of the file.
      type: str
    names:
      description: Names of the leases.
      type: list
      elements: str
  sample:
    path: /srv/ha/rack1.leases
    names:
      - manager
      - configuration
"""

from collections.abc import Mapping
from typing import Any

from ..module_utils._holdfast.storage.lockspace.leader_record import MEBIBYTE
from ..module_utils._holdfast.storage.provision.lockspace import (
    DesiredLockspace,
    apply_lockspace,
    look_lockspace,
    plan_lockspace,
)
from ..module_utils._holdfast.storage.provision.plan import check_folder
from ..module_utils._holdfast.storage.whole_file import cluster_paths
from ..module_utils._module import CLUSTER_FILES, Result, run

AREA_BYTES = {f"{size}M": size * MEBIBYTE for size in (1, 2, 4, 8)}

OPTIONS = CLUSTER_FILES.merge(
    state={"type": "str", "choices": ["present", "absent"], "default": "present"},
    io_timeout={"type": "int"},
    sector_size={"type": "int", "choices": [512, 4096]},
    area_size={"type": "str", "choices": list(AREA_BYTES)},
    force={"type": "bool", "default": False},
)


def act(options: Mapping[str, Any], check: bool) -> Result:
    paths = cluster_paths(options["path"], options["name"])
    desired = DesiredLockspace(
        name=options["name"],
        present=options["state"] == "present",
        io_timeout=options["io_timeout"],
        force=options["force"],
        sector_size=options["sector_size"],
        area_bytes=AREA_BYTES.get(options["area_size"]),
    )
    plan = plan_lockspace(desired, look_lockspace(paths), paths)
    check_folder(plan, paths)
    changed = plan.changed if check else apply_lockspace(plan, desired, paths)
    return Result(changed, plan.after, before=plan.before, after=plan.after)


def main() -> None:
    run(OPTIONS, act)


if __name__ == "__main__":
    main()
