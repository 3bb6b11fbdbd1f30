#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: lockspace_info
short_description: Read the lockspace and leases of a cluster
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Reads every host lease of C(NAME.lockspace), whatever its sector size and number of hosts, and
    the leases of C(NAME.leases), also those that sanlock itself made.
  - A damaged host lease is listed with what is wrong with it and harms no other.
  - One read cannot tell whether a host lives, because the timestamp of its lease is of its own
    clock. With O(watch) the lockspace is read twice.
extends_documentation_fragment:
  - holdfast.ha.attributes.info_module
  - holdfast.ha.attributes.no_group
  - holdfast.ha.cluster_files
options:
  watch:
    description:
      - Seconds between two reads, at most 600. With V(0) there is only one.
      - Hosts renew their leases every two I/O timeouts.
    type: float
    default: 0
seealso:
  - module: holdfast.ha.lockspace
"""

EXAMPLES = r"""
- name: Read the lockspace and see who renews a lease
  holdfast.ha.lockspace_info:
    name: rack1
    path: /srv/ha
    watch: 5
  register: lockspace

- name: Show which host has the manager lease
  ansible.builtin.debug:
    msg: >-
      {{ lockspace.leases | selectattr('name', 'equalto', 'manager') | map(attribute='owner_id') }}
"""

RETURN = r"""
exists:
  description: Whether there is a lockspace. If not, the lists are empty.
  returned: success
  type: bool
  sample: true
lockspace:
  description: Name of the lockspace; V(null) when there is none.
  returned: success
  type: str
  sample: rack1
io_timeout:
  description: The I/O timeout in seconds that the lockspace was made with.
  returned: success
  type: int
  sample: 2
sector_size:
  description: Bytes of a sector, one for each host lease.
  returned: success
  type: int
  sample: 512
area_bytes:
  description: Bytes of the lockspace, and of the area of each lease.
  returned: success
  type: int
  sample: 1048576
max_hosts:
  description: For how many host ids it has leases.
  returned: success
  type: int
  sample: 2000
hosts:
  description: The host leases that somebody holds or once held, by host id.
  returned: success
  type: list
  elements: dict
  contains:
    host_id:
      description: The host id.
      type: int
    host_name:
      description: Name of the host.
      type: str
    generation:
      description: How often the host id was joined.
      type: int
    timestamp:
      description: Seconds of the host's own monotonic clock at its last renewal; V(0) when free.
      type: int
    io_timeout:
      description: The I/O timeout in seconds that the host joined with.
      type: int
    held:
      description: Whether the lease was not given back. A dead host does not give it back.
      type: bool
    live:
      description: Whether the lease was renewed while watching; V(null) without O(watch).
      type: bool
    state:
      description:
        - V(free) when nobody holds the lease, V(live) when it was renewed while watching.
        - V(fail) when it was watched for eight times its I/O timeout without a renewal, so that
          the host has to have stopped its services, and V(dead) after RV(hosts[].dead_after).
        - V(null) when that takes longer to see than O(watch).
      type: str
    locked:
      description: Whether a process of this machine locks the lease, as an embedded cluster does.
      type: bool
    dead_after:
      description:
        - Seconds without renewal after which the host counts as dead, which is eight times its
          I/O timeout and 60 seconds for its watchdog.
        - A host whose sanlock has a shorter watchdog timeout is dead earlier. The storage
          does not show that.
      type: int
  sample:
    - host_id: 1
      host_name: n1
      generation: 3
      timestamp: 12345
      io_timeout: 2
      held: true
      live: true
      state: live
      locked: false
      dead_after: 76
leases:
  description: The leases of the cluster.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the lease.
      type: str
    owner_id:
      description: Host id of the owner, or of the last one; V(0) when it never had one.
      type: int
    owner_generation:
      description: Generation of that host when it acquired the lease.
      type: int
    version:
      description: How often the lease was acquired. For V(manager) it is the epoch.
      type: int
    timestamp:
      description: Seconds of the owner's own clock when it acquired the lease; V(0) when free.
      type: int
    held:
      description: Whether the lease was not given back.
      type: bool
  sample:
    - name: manager
      owner_id: 1
      owner_generation: 3
      version: 14
      timestamp: 12300
      held: true
problems:
  description: What cannot be read; host id V(null) is a lease of the cluster.
  returned: success
  type: list
  elements: dict
  contains:
    host_id:
      description: The host id whose host lease it is.
      type: int
    problem:
      description: What is wrong with it.
      type: str
  sample: []
"""

import time
from collections.abc import Mapping
from typing import Any

from ..module_utils._holdfast.storage.lockspace.file import (
    observe_lockspace,
    view_lockspace,
    view_nothing,
)
from ..module_utils._holdfast.storage.whole_file import cluster_paths
from ..module_utils._module import CLUSTER_FILES, Result, run

OPTIONS = CLUSTER_FILES.merge(
    watch={"type": "float", "default": 0},
)


def act(options: Mapping[str, Any], check: bool) -> Result:
    paths = cluster_paths(options["path"], options["name"])
    seconds = options["watch"]
    observed = observe_lockspace(paths, seconds, time.sleep)
    values = view_nothing() if observed is None else view_lockspace(observed)
    return Result(values={"exists": observed is not None, **values})


def main() -> None:
    run(OPTIONS, act)


if __name__ == "__main__":
    main()
