#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: storage_check
short_description: Check that the settings of NFS, iSCSI, FC and multipath are safe for a cluster
version_added: 0.2.0
author:
  - The holdfast authors (@holdfast)
description:
  - Checks on one node how it reaches the storage of a cluster. Run it on all nodes.
  - For a folder on NFS it checks the options of the mount, and whether the server squashes root.
  - For a block device it compares the times of iSCSI, FC and multipath that are in effect with the
    times of the host leases, and shows which number is too large. A lost path must not hold I/O up
    for longer than five times O(io_timeout). Without any path I/O must fail within eight times
    O(io_timeout).
  - A node that boots while its iSCSI storage is away must log in later. Debian's
    C(open-iscsi.service) with C(Restart=no) does not, and is shown.
  - A logical volume must map straight to its LUN. One that is thin, mirrored, cached, a snapshot or
    of RAID is refused.
  - Nothing is wrong with storage of any other kind.
extends_documentation_fragment:
  - holdfast.ha.attributes.no_group
options:
  path:
    description:
      - Absolute path of the folder or block device. For a folder that does not exist yet the one
        above it is checked.
    type: path
    required: true
  io_timeout:
    description: The I/O timeout of the host leases in seconds, from 2 to 120.
    type: int
    default: 2
attributes:
  check_mode:
    support: full
    description: >-
      Checks the same, but makes no file. An export that squashes root is then recognised only if
      root cannot write to the folder.
  diff_mode:
    support: N/A
    description: The module changes nothing, so there is no difference to show.
  idempotent:
    support: full
    description: >-
      The module changes nothing. To recognise an export that squashes root it makes a file in a
      folder on NFS, and removes it again.
  platform:
    support: full
    description: The module runs on Linux.
    platforms: linux
seealso:
  - module: holdfast.ha.storage_device_info
"""

EXAMPLES = r"""
- name: Check the settings of the storage
  holdfast.ha.storage_check:
    path: /dev/mapper/ha-lun
    io_timeout: 2
  register: settings

- name: Go on only if nothing is wrong
  ansible.builtin.assert:
    that: settings.problems == []
    fail_msg: "{{ settings.problems | join(' ') }}"
"""

RETURN = r"""
kind:
  description:
    - V(multipath) or V(device) for a block device, V(nfs) for a folder on NFS, else the type of the
      file system.
  returned: success
  type: str
  sample: multipath
problems:
  description: What is wrong, each as a sentence with the number and what is allowed.
  returned: success
  type: list
  elements: str
  sample:
    - >-
      ha-lun has no_path_retry queue: without a path I/O waits without a limit, and a host lease
      with an I/O timeout of 2 s fails after 16 s; set it to 3 or less (section overrides of
      multipath.conf).
"""

from collections.abc import Mapping
from typing import Any

from ..module_utils._holdfast.storage.lockspace.host_timing import LeaseTiming, checked_io_timeout
from ..module_utils._holdfast.storage.settings.look import look_settings
from ..module_utils._module import Options, Result, run

OPTIONS = Options(
    argument_spec={
        "path": {"type": "path", "required": True},
        "io_timeout": {"type": "int", "default": 2},
    }
)


def act(options: Mapping[str, Any], check: bool) -> Result:
    timing = LeaseTiming(checked_io_timeout(options["io_timeout"]))
    found = look_settings(options["path"], timing, probe=not check)
    return Result(values={"kind": found.kind, "problems": found.problems})


def main() -> None:
    run(OPTIONS, act)


if __name__ == "__main__":
    main()
