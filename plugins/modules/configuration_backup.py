#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: configuration_backup
short_description: Back up the configuration of a cluster into a file
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Writes all services and rules, the policy, and the maintenances with their reasons into a file
    on the node, which M(holdfast.ha.configuration_restore) reads. The file has the secrets of
    services, so it is for its owner alone.
  - The file is written only if its content would change.
extends_documentation_fragment:
  - holdfast.ha.attributes
  - holdfast.ha.attributes.node_group
  - holdfast.ha.node
attributes:
  diff_mode:
    support: full
    description: Shows services, rules and the policy before and after, with hidden secrets.
options:
  path:
    description:
      - Absolute path of the file. Its folder has to be there.
    type: path
    required: true
seealso:
  - module: holdfast.ha.configuration_restore
  - module: holdfast.ha.configuration_info
"""

EXAMPLES = r"""
- name: Keep what the cluster is to do
  holdfast.ha.configuration_backup:
    path: /var/backups/holdfast.json
  run_once: true
"""

RETURN = r"""
path:
  description: The file.
  returned: success
  type: str
  sample: /var/backups/holdfast.json
version:
  description: The version of the desired configuration.
  returned: success
  type: int
  sample: 14
services:
  description: How many services are in it.
  returned: success
  type: int
  sample: 12
rules:
  description: How many rules are in it.
  returned: success
  type: int
  sample: 3
"""

from ..module_utils._holdfast.operator.operations.export import back_up
from ..module_utils._module import NODE_OPTIONS, run

OPTIONS = NODE_OPTIONS.merge(
    path={"type": "path", "required": True},
)


def main() -> None:
    """Run the module."""
    run(OPTIONS, back_up)


if __name__ == "__main__":
    main()
