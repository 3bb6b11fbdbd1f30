#!/usr/bin/python
# Copyright: 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: metadata
short_description: Create or remove the whiteboard and records of a cluster, set global maintenance
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Creates C(NAME.metadata), the whiteboard in the format of oVirt hosted engine, and
    C(NAME.state), the records of the nodes, in a folder on shared storage.
  - Existing valid files are left as they are. The records are a sparse file that takes space
    as nodes use it.
  - Sets or ends the global maintenance, during which the cluster neither fences nor recovers
    anything.
  - Several nodes may run this at the same time; one of them creates each file.
extends_documentation_fragment:
  - holdfast.ha.attributes
  - holdfast.ha.cluster_files
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
      - It cannot be changed later.
    type: int
  maintenance:
    description: Whether the cluster is in global maintenance. If not given, it stays as it is.
    type: bool
  force:
    description:
      - Remove files of a cluster that is in use, or overwrite files of another format that have
        their names. What they contain is lost.
    type: bool
    default: false
seealso:
  - module: holdfast.ha.lockspace
  - module: holdfast.ha.metadata_info
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
  sample:
    path: /srv/ha/rack1.metadata
    max_hosts: 64
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
  sample:
    path: /srv/ha/rack1.state
    cluster: rack1
    max_hosts: 64
maintenance:
  description:
    - Whether the cluster is in global maintenance. V(null) when the global block is damaged;
      setting O(maintenance) repairs it.
  returned: when O(state=present)
  type: bool
  sample: false
"""

from collections.abc import Mapping
from typing import Any

from ..module_utils._holdfast.storage.paths import cluster_paths
from ..module_utils._holdfast.storage.provision import check_folder
from ..module_utils._holdfast.storage.provision_metadata import (
    MetadataWanted,
    apply_metadata,
    look_metadata,
    plan_metadata,
)
from ..module_utils._module import CLUSTER_FILES, Options, Result, run

OPTIONS = CLUSTER_FILES.merge(
    Options(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "max_hosts": {"type": "int"},
            "maintenance": {"type": "bool"},
            "force": {"type": "bool", "default": False},
        }
    )
)


def act(options: Mapping[str, Any], check: bool) -> Result:
    paths = cluster_paths(options["path"], options["name"])
    wanted = MetadataWanted(
        name=options["name"],
        present=options["state"] == "present",
        max_hosts=options["max_hosts"],
        maintenance=options["maintenance"],
        force=options["force"],
    )
    plan = plan_metadata(wanted, look_metadata(paths), paths)
    check_folder(plan, paths)
    changed = plan.changed if check else apply_metadata(plan, wanted, paths)
    return Result(changed, plan.after, before=plan.before, after=plan.after)


def main() -> None:
    run(OPTIONS, act)


if __name__ == "__main__":
    main()
