#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: metadata
short_description: Create, repair or remove the whiteboard and records of a cluster
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Creates C(NAME.metadata), the whiteboard in the format of oVirt hosted engine, and
    C(NAME.state), the records of the nodes, in a folder on shared storage.
  - Existing valid files are left as they are. The records are a sparse file that takes space
    as nodes use it.
  - Sets or ends the global maintenance, during which the cluster neither fences nor recovers
    anything, or the maintenance of a node. With O(config) it is declared with its reason, owner
    and expiry. Without, only the whiteboard's global block is written, as hosted engine's own
    tools do it; a running cluster takes that up.
  - Clears the block of a node that is gone, and repairs damaged blocks. The block of a node that
    lives is left alone, because the node writes it again by itself.
  - Several nodes may run this at the same time; one of them creates each file.
extends_documentation_fragment:
  - holdfast.ha.attributes
  - holdfast.ha.attributes.no_group
  - holdfast.ha.cluster_files
  - holdfast.ha.maintenance
options:
  state:
    description:
      - Whether the files shall be there.
      - They are not removed while the lockspace beside them is in use, unless O(force=true).
    type: str
    choices:
      - present
      - absent
    default: present
  max_hosts:
    description:
      - For how many host ids, from 1 to 2000.
      - If not given, existing files keep what they have, and new ones get 64.
      - More can be given later, while no node of the cluster is in use, and also not with
        O(force=true). The files are copied into larger ones. They are never made smaller.
    type: int
  block_size:
    description:
      - Bytes of one block of the whiteboard. Agents of hosted engine write V(4096); its
        documentation describes V(2048), with another spelling of the fields.
      - If not given, an existing whiteboard keeps what it has, and a new one gets V(4096).
      - It cannot be changed later. V(2048) needs a device with sectors of at most 2048 bytes.
    type: int
    choices:
      - 4096
      - 2048
  node_record_size:
    description:
      - Room for the record of a node's LRM, in MiB, from 1 to 64. It holds what runs on the node.
      - If not given, an existing file keeps what it has, and a new one gets 1, which is enough
        for some 1000 services on one node.
      - A file in which records have other sizes is laid out again, with its contents. That
        is refused while a host lease is held, even with O(force=true), and where a record does not
        fit.
    type: int
  manager_record_size:
    description:
      - Room for the manager's record, in MiB, from 1 to 64. It holds the state of all services.
      - If not given, an existing file keeps what it has, and a new one gets 4. For 20,000 services
        and 2000 nodes it takes 16.
      - See O(node_record_size) for how to change it.
    type: int
  configuration_size:
    description:
      - Room for the desired configuration, in MiB, from 1 to 64.
      - If not given, an existing file keeps what it has, and a new one gets 4. For 20,000 services
        it takes 16.
      - See O(node_record_size) for how to change it.
    type: int
  maintenance:
    description:
      - Whether the cluster, or with O(node) that node, is in maintenance. If not given, it stays as
        it is.
      - Without O(config) only the whiteboard is written. A cluster whose nodes have
        O(holdfast.ha.node_config#module:authentication=enforce) does not believe that, and its
        manager writes it back; give O(config) there.
    type: bool
  config:
    description:
      - Absolute path of the configuration file of the node on which the module runs, which has to
        belong to this cluster and to be switched on.
      - With it O(maintenance) is declared in the desired configuration, for the manager to keep to
        it. M(holdfast.ha.cluster_maintenance) and M(holdfast.ha.node_maintenance) do the same, and
        wait until it is done.
    type: path
  node:
    description: The node that O(maintenance) is about. It needs O(config).
    type: str
  clear_host:
    description:
      - Host id whose block shall be blank, of a node that is gone for good.
      - Refused while the node holds its host lease or writes its block, unless O(force=true).
    type: int
  repair:
    description:
      - Whether damaged blocks are put right. A block of a node that cannot be read is made blank,
        text that would harm other readers is written in ASCII, and a global block that cannot be
        read is written as in maintenance unless O(maintenance) is given.
      - The block of a node that lives, or may live, is left as it is with a warning, unless
        O(force=true).
    type: bool
    default: false
  watch:
    description:
      - Seconds for which nodes are watched before a block is cleared or repaired, at most 600.
      - Without a lockspace beside the whiteboard, less than 3 seconds tells nothing. Agents of
        hosted engine write about every 10 seconds.
      - A host lease that was not given back counts as that of a dead node only when it was
        watched for eight times its I/O timeout and 60 seconds.
    type: float
    default: 3
  force:
    description:
      - Remove files of a cluster that is in use, or overwrite files of another format that have
        their names. What they contain is lost.
      - Clear or repair blocks of nodes that seem to live.
    type: bool
    default: false
seealso:
  - module: holdfast.ha.lockspace
  - module: holdfast.ha.metadata_info
  - module: holdfast.ha.cluster_maintenance
  - module: holdfast.ha.node_maintenance
"""

EXAMPLES = r"""
- name: Create whiteboard and records
  holdfast.ha.metadata:
    name: rack1
    path: /srv/ha
    max_hosts: 16

- name: Begin a global maintenance
  holdfast.ha.metadata:
    name: rack1
    path: /srv/ha
    maintenance: true

- name: Begin one that ends by itself, and says why
  holdfast.ha.metadata:
    name: rack1
    path: /srv/ha
    config: /etc/holdfast/node.json
    maintenance: true
    reason: new switches
    owner: ada
    until: "2026-11-21T18:00:00+01:00"

- name: Make the records large enough for 2000 nodes and 20,000 services
  holdfast.ha.metadata:
    name: rack1
    path: /srv/ha
    max_hosts: 2000
    manager_record_size: 16
    configuration_size: 16

- name: Clear the block of a node that is gone for good
  holdfast.ha.metadata:
    name: rack1
    path: /srv/ha
    clear_host: 7

- name: See what would be repaired
  holdfast.ha.metadata:
    name: rack1
    path: /srv/ha
    repair: true
  check_mode: true
  diff: true
"""

RETURN = r"""
metadata:
  description: The whiteboard as it is after the task, or would be in check mode.
  returned: when O(state=present)
  type: dict
  contains:
    path:
      description: Path of the file.
      type: str
    max_hosts:
      description: For how many host ids it has blocks.
      type: int
    block_size:
      description: Bytes of one block.
      type: int
  sample:
    path: /srv/ha/rack1.metadata
    max_hosts: 64
    block_size: 4096
state:
  description: The records as they are after the task, or would be in check mode.
  returned: when O(state=present)
  type: dict
  contains:
    path:
      description: Path of the file.
      type: str
    cluster:
      description: Name of the cluster in the file's header.
      type: str
    max_hosts:
      description: For how many host ids it has slots.
      type: int
    node_record_size:
      description: Room for the record of a node's LRM, in MiB.
      type: float
    manager_record_size:
      description: Room for the manager's record, in MiB.
      type: float
    configuration_size:
      description: Room for the desired configuration, in MiB.
      type: float
  sample:
    path: /srv/ha/rack1.state
    cluster: rack1
    max_hosts: 64
    node_record_size: 1.0
    manager_record_size: 4.0
    configuration_size: 4.0
maintenance:
  description:
    - Whether the whiteboard shows that the cluster is in global maintenance. V(null) when the
      global block is damaged; setting O(maintenance) without O(config) repairs it.
  returned: when O(state=present)
  type: bool
  sample: false
declared:
  description:
    - Reason, owner, beginning and expiry of the maintenance, the times in seconds since 1970; an
      expiry of V(0) is none. V(null) if it is not in maintenance.
  returned: when O(maintenance) and O(config) are given
  type: dict
  sample:
    reason: new switches
    owner: ada
    since: 1790000000.0
    until: 0.0
blocks:
  description:
    - All bytes of each block that was changed, by host id and V(0) for the global block, without
      the zeros at its end.
  returned: when a block is changed
  type: dict
  sample:
    "0": maintenance=1
"""

import time
from collections.abc import Mapping
from typing import Any

from ..module_utils._holdfast.operator.operations.maintenance import check_options, with_maintenance
from ..module_utils._holdfast.storage.provision.metadata import (
    DesiredMetadata,
    apply_metadata,
    look_metadata,
    plan_metadata,
)
from ..module_utils._holdfast.storage.provision.plan import check_folder
from ..module_utils._holdfast.storage.provision.records import sizes_from_options
from ..module_utils._holdfast.storage.whiteboard.file import no_direct
from ..module_utils._holdfast.storage.whole_file import cluster_paths
from ..module_utils._module import CLUSTER_FILES, MAINTENANCE, Result, run

OPTIONS = CLUSTER_FILES.merge(
    MAINTENANCE,
    state={"type": "str", "choices": ["present", "absent"], "default": "present"},
    max_hosts={"type": "int"},
    block_size={"type": "int", "choices": [4096, 2048]},
    node_record_size={"type": "int"},
    manager_record_size={"type": "int"},
    configuration_size={"type": "int"},
    maintenance={"type": "bool"},
    config={"type": "path"},
    node={"type": "str"},
    clear_host={"type": "int"},
    repair={"type": "bool", "default": False},
    watch={"type": "float", "default": 3},
    force={"type": "bool", "default": False},
)


def act(options: Mapping[str, Any], check: bool) -> Result:
    paths = cluster_paths(options["path"], options["name"])
    desired = DesiredMetadata(
        name=options["name"],
        present=options["state"] == "present",
        max_hosts=options["max_hosts"],
        maintenance=None if options["config"] else options["maintenance"],
        force=options["force"],
        block_bytes=options["block_size"],
        clear_host=options["clear_host"],
        repair=options["repair"],
        watch=options["watch"],
        record_sizes=sizes_from_options(options),
    )
    check_options(options)
    found = look_metadata(paths, desired, time.sleep)
    plan = plan_metadata(desired, found, paths)
    check_folder(plan, paths)
    changed = plan.changed if check else apply_metadata(plan, desired, paths)
    warnings = [*plan.warnings]
    if not found.direct:
        warnings.append(no_direct(paths.metadata))
    files = Result(changed, plan.after, plan.before, plan.after, warnings)
    if options["config"] is None or options["maintenance"] is None:
        return files
    return with_maintenance(files, options, check)


def main() -> None:
    run(OPTIONS, act)


if __name__ == "__main__":
    main()
