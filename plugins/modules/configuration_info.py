#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: configuration_info
short_description: Export the configuration of a cluster, and show how it differs from variables
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Returns each declared service, rule and node as the options of M(holdfast.ha.service),
    M(holdfast.ha.rule) and M(holdfast.ha.node_properties) that declare it again, and the policy as
    those of M(holdfast.ha.cluster_policy). Values of secrets are hidden; declared again so, they
    stay as they are.
  - With O(services), O(rules), O(node_properties) or O(policy) it also reports where the cluster
    differs from them, and shows that as the difference of the task. That is what
    M(holdfast.ha.configuration) would change, and what is in the cluster alone.
extends_documentation_fragment:
  - holdfast.ha.attributes.info_module
  - holdfast.ha.attributes.node_group
  - holdfast.ha.node
attributes:
  diff_mode:
    support: full
    description: Shows what is requested as before and what is live as after.
options:
  services:
    description:
      - The desired services, as options of M(holdfast.ha.service). Options that are left out are as
        they are declared; O(holdfast.ha.service#module:state) is V(started) then. A hidden secret
        counts as equal.
    type: list
    elements: dict
  rules:
    description:
      - The desired rules, as options of M(holdfast.ha.rule).
    type: list
    elements: dict
  node_properties:
    description:
      - The desired properties of nodes, as options of M(holdfast.ha.node_properties). Options that
        are left out are as they are declared.
    type: list
    elements: dict
    version_added: 0.2.0
  policy:
    description:
      - The desired policy, as options of M(holdfast.ha.cluster_policy). An
        option that is left out is reported as being in the cluster alone, unless it is at its
        default.
    type: dict
seealso:
  - module: holdfast.ha.configuration
  - module: holdfast.ha.configuration_backup
  - module: holdfast.ha.cluster_info
"""

EXAMPLES = r"""
- name: Does the cluster match the inventory?
  holdfast.ha.configuration_info:
    services: "{{ ha_services }}"
    rules: "{{ ha_rules }}"
    policy: "{{ ha_policy }}"
  register: live

- name: Fail if not
  ansible.builtin.assert:
    that: live.drift == []
"""

RETURN = r"""
version:
  description: The version of the desired configuration.
  returned: success
  type: int
  sample: 14
services:
  description: The declared services.
  returned: success
  type: list
  elements: dict
  sample:
    - {name: web, state: started, resources: [{name: server, agent: ocf:heartbeat:nginx}]}
rules:
  description: The declared rules.
  returned: success
  type: list
  elements: dict
  sample:
    - {name: apart, services: [web, db], affinity: apart}
node_properties:
  description: The declared properties of nodes.
  returned: success
  type: list
  elements: dict
  sample:
    - {name: n1, capacity: {gpu: 2}, attributes: {site: north}}
policy:
  description: The whole policy of the cluster.
  returned: success
  type: dict
  sample:
    shutdown: migrate
    shutdown_timeout: 300.0
    placement: load
    rebalance_on_start: false
    rebalance: true
    rebalance_threshold: 0.2
    rebalance_hold: 3
    rebalance_margin: 0.1
    max_workers: 4
drift:
  description: Where the cluster differs from what was requested; empty is none, or nothing asked.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: V(service), V(rule), V(node) or V(policy).
      type: str
    name:
      description: Which; of the policy the option.
      type: str
    how:
      description: How it differs.
      type: str
  sample:
    - {kind: service, name: web, how: "max_restart: 3 instead of 1"}
"""

from ..module_utils._declarations import CONFIGURATION, check_declarations
from ..module_utils._holdfast.operator.operations.configuration import configuration_info
from ..module_utils._module import NODE_OPTIONS, run

OPTIONS = NODE_OPTIONS.merge(CONFIGURATION)


def main() -> None:
    """Run the module."""
    run(OPTIONS, configuration_info, prepare=check_declarations)


if __name__ == "__main__":
    main()
