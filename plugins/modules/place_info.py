#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: place_info
short_description: Show where a service would be started now, and why
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Returns the node that the manager would choose for a service, declared or not, at this moment.
    Nothing is changed.
  - If the node would get services that declare more memory than it has, or more than 4 CPUs for
    each of its own, there is a warning. Only O(holdfast.ha.cluster_policy#module:placement=score)
    refuses such a node.
extends_documentation_fragment:
  - holdfast.ha.attributes.info_module
  - holdfast.ha.attributes.node_group
  - holdfast.ha.node
options:
  service:
    description:
      - The id of the service. Rules that name it count, also where it is not declared yet.
    type: str
    required: true
  cpus:
    description:
      - CPUs that the service takes, where that is not what is declared. It counts with
        O(holdfast.ha.cluster_policy#module:placement=load) and
        O(holdfast.ha.cluster_policy#module:placement=score).
    type: float
  memory:
    description:
      - Memory that the service takes, in MiB, likewise.
    type: float
  utilization:
    description:
      - Other resources that the service takes, where that is not what is declared.
    type: dict
    version_added: 0.2.0
seealso:
  - module: holdfast.ha.service
  - module: holdfast.ha.evacuate
"""

EXAMPLES = r"""
- name: Where would the new service go?
  holdfast.ha.place_info:
    service: db
    cpus: 4
    memory: 8192
  register: place

- name: Go on only if there is a place
  ansible.builtin.assert:
    that: place.node != ''
    fail_msg: "{{ place.reason }}"
"""

RETURN = r"""
service:
  description: The service.
  returned: success
  type: str
  sample: db
declared:
  description: Whether the service is declared.
  returned: success
  type: bool
  sample: false
runs_on:
  description: The node on which it is now, empty for none.
  returned: success
  type: str
  sample: ""
node:
  description: The node that would be chosen, empty if none can take it.
  returned: success
  type: str
  sample: n2
reason:
  description: Why it is that node, or why there is none.
  returned: success
  type: str
  sample: of n1, n2 it has the fewest services (3)
rejected:
  description: Why each other node is out of the question.
  returned: success
  type: dict
  sample: {n3: it is in maintenance}
"""

from ..module_utils._holdfast.operator.operations.move import place_info
from ..module_utils._module import NODE_OPTIONS, run

OPTIONS = NODE_OPTIONS.merge(
    service={"type": "str", "required": True},
    cpus={"type": "float"},
    memory={"type": "float"},
    utilization={"type": "dict"},
)


def main() -> None:
    """Run the module."""
    run(OPTIONS, place_info)


if __name__ == "__main__":
    main()
