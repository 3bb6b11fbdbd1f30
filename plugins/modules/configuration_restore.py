#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: configuration_restore
short_description: Restore the configuration of a cluster from a backup
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Declares the services, the rules and the policy of a file that
    M(holdfast.ha.configuration_backup) wrote, in one change. What the file does not have stays as
    it is, unless O(exact=true).
  - The policy is restored as a whole. One that is at its defaults is not in the file.
  - Maintenances of nodes and of the cluster are not restored.
  - The manager restarts a service that runs with another definition than the file's.
extends_documentation_fragment:
  - holdfast.ha.attributes
  - holdfast.ha.attributes.node_group
  - holdfast.ha.node
options:
  path:
    description:
      - Absolute path of the file on the node. Only its owner may have write permission.
    type: path
    required: true
  exact:
    description:
      - Also remove the services and rules that the file does not have, and give the policy its
        defaults if the file has none. Removed services are stopped.
    type: bool
    default: false
seealso:
  - module: holdfast.ha.configuration_backup
"""

EXAMPLES = r"""
- name: What would be restored?
  holdfast.ha.configuration_restore:
    path: /var/backups/holdfast.json
  check_mode: true
  diff: true

- name: Restore it
  holdfast.ha.configuration_restore:
    path: /var/backups/holdfast.json
"""

RETURN = r"""
version:
  description: The version of the desired configuration.
  returned: success
  type: int
  sample: 15
differences:
  description:
    - How the cluster differed from what it is to do now, as
      RV(holdfast.ha.configuration_info#module:drift) says it, and with O(exact=true) what is
      removed.
  returned: success
  type: list
  elements: dict
  sample:
    - {kind: service, name: web, how: declared nowhere in the cluster}
    - {kind: policy, name: shutdown, how: "'conditional' instead of 'migrate'"}
"""

from ..module_utils._holdfast.operator.operations.export import restore
from ..module_utils._module import NODE_OPTIONS, run

OPTIONS = NODE_OPTIONS.merge(
    path={"type": "path", "required": True},
    exact={"type": "bool", "default": False},
)


def main() -> None:
    """Run the module."""
    run(OPTIONS, restore)


if __name__ == "__main__":
    main()
