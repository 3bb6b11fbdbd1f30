#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: configuration
short_description: Declare services, rules, nodes and the policy together
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Declares several services and rules in one change, or removes them, and changes the policy of
    the cluster. Their order does not matter. No service is started before the rules that name it
    and the policy that places it are in force.
  - If one of them is invalid, none is declared. Check mode reports the same.
  - Everything else stays as it is.
extends_documentation_fragment:
  - holdfast.ha.attributes
  - holdfast.ha.attributes.node_group
  - holdfast.ha.node
options:
  services:
    description:
      - The services, each as the options of M(holdfast.ha.service) that declare it. What is left
        out stays as it is declared; O(holdfast.ha.service#module:state) is V(started) then.
      - Passwords in them appear in no log, result or diff.
    type: list
    elements: dict
  rules:
    description:
      - The rules, each as the options of M(holdfast.ha.rule) that declare it.
    type: list
    elements: dict
  node_properties:
    description:
      - The resources and attributes of nodes, each as the options of M(holdfast.ha.node_properties)
        that declare them.
    type: list
    elements: dict
    version_added: 0.2.0
  policy:
    description:
      - The policy of the cluster, as the options of M(holdfast.ha.cluster_policy) that change it,
        from O(holdfast.ha.cluster_policy#module:shutdown) to
        O(holdfast.ha.cluster_policy#module:max_workers). What is left out stays as it is.
    type: dict
seealso:
  - module: holdfast.ha.service
  - module: holdfast.ha.rule
  - module: holdfast.ha.node_properties
  - module: holdfast.ha.cluster_policy
  - module: holdfast.ha.configuration_info
"""

EXAMPLES = r"""
- name: Keep two resolvers running, never on one node, and what asks them after them
  holdfast.ha.configuration:
    services:
      - name: mail
        resources: [{name: server, agent: "ocf:heartbeat:postfix"}]
        after: [resolver-a]
      - name: resolver-a
        resources: [{name: server, agent: "ocf:heartbeat:named"}]
      - name: resolver-b
        resources: [{name: server, agent: "ocf:heartbeat:named"}]
    rules:
      - name: resolvers
        services: [resolver-a, resolver-b]
        affinity: apart
    policy:
      shutdown: migrate

- name: Remove a service and the rule that names it
  holdfast.ha.configuration:
    services:
      - {name: old, state: absent}
    rules:
      - {name: old-at-home, state: absent}
"""

RETURN = r"""
version:
  description: The version of the desired configuration.
  returned: success
  type: int
  sample: 16
differences:
  description:
    - How the cluster differed from what it is to do now, as
      RV(holdfast.ha.configuration_info#module:drift) says it.
  returned: success
  type: list
  elements: dict
  sample:
    - {kind: service, name: mail, how: declared nowhere in the cluster}
    - {kind: policy, name: shutdown, how: "'conditional' instead of 'migrate'"}
"""

from ..module_utils._declarations import CONFIGURATION, check_declarations
from ..module_utils._holdfast.operator.operations.configuration import declare_configuration
from ..module_utils._module import NODE_OPTIONS, run

OPTIONS = NODE_OPTIONS.merge(CONFIGURATION)


def main() -> None:
    """Run the module."""
    run(OPTIONS, declare_configuration, prepare=check_declarations)


if __name__ == "__main__":
    main()
