#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_key
short_description: Install the cluster key on a node
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Writes the key with which the members of a cluster sign what they write, into a file that only
    its owner can read. The file is written whole or not at all.
  - Running daemons follow the file, so nothing has to be restarted.
  - The key appears in no log, result or diff; they show its fingerprint.
extends_documentation_fragment:
  - holdfast.ha.attributes
  - holdfast.ha.attributes.no_group
options:
  path:
    description:
      - Absolute path of the file.
    type: path
    default: /etc/holdfast/cluster.key
  keys:
    description:
      - The keys, each of 64 hexadecimal digits in lower case. The first one signs, each of them is
        accepted. There are two while a new key is introduced.
      - Without it the keys in the file stay as they are, and if there are none a new one is made.
    type: list
    elements: str
seealso:
  - module: holdfast.ha.node_config
"""

EXAMPLES = r"""
- name: Put a key from a vault on the node
  holdfast.ha.cluster_key:
    keys: ["{{ vault_cluster_key }}"]

- name: Accept a new key, but do not sign with it yet
  holdfast.ha.cluster_key:
    keys: ["{{ vault_cluster_key }}", "{{ vault_next_cluster_key }}"]
"""

RETURN = r"""
path:
  description: The file.
  returned: success
  type: str
  sample: /etc/holdfast/cluster.key
fingerprints:
  description: A name for each key, in their order, that does not reveal the key.
  returned: success
  type: list
  elements: str
  sample: [5f1c0e6d9a7b3c24]
"""

from ..module_utils._holdfast.operator.operations.cluster_key import declare_key
from ..module_utils._module import Options, run

OPTIONS = Options(
    argument_spec={
        "path": {"type": "path", "default": "/etc/holdfast/cluster.key"},
        "keys": {"type": "list", "elements": "str", "no_log": True},
    }
)


def main() -> None:
    """Run the module."""
    run(OPTIONS, declare_key)


if __name__ == "__main__":
    main()
