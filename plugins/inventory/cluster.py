# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes of a cluster as an inventory, grouped by what they are at this moment."""

from __future__ import annotations

DOCUMENTATION = r"""
name: cluster
short_description: The nodes of a cluster, grouped by their live state
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Asks one node of a cluster after the other for the cluster's status and makes an inventory of
    the first answer. Each node can answer for all of them, so this works while others are down.
  - The groups are V(holdfast_manager), the one node that is the manager; V(holdfast_online);
    V(holdfast_maintenance), the drained nodes; V(holdfast_fenced), the nodes that are confirmed
    dead, or that were fenced by hand and have no host lease any more; V(holdfast_stale), those not
    known to be healthy or dead; and V(holdfast_runs_SERVICE) for each
    service, where a character that a group's name may not have is an underscore. A node is in one
    of online, fenced and stale. The parent of all is V(holdfast_nodes).
  - While no node is the manager all nodes that are not confirmed dead are stale.
  - Each host has its state in the variables C(holdfast_state), C(holdfast_condition) (V(online),
    V(fenced) or V(stale)), C(holdfast_reason), C(holdfast_since), C(holdfast_proof),
    C(holdfast_maintenance), C(holdfast_runs), C(holdfast_host_id), C(holdfast_address),
    C(holdfast_host_lease), C(holdfast_lease_lost), C(holdfast_score), C(holdfast_problem),
    C(holdfast_is_manager) and C(holdfast_cluster).
  - The file must be called C(holdfast.yml) or end in C(.holdfast.yml), or the same with C(.yaml).
extends_documentation_fragment:
  - ansible.builtin.constructed
  - ansible.builtin.inventory_cache
options:
  plugin:
    description:
      - The name of this plugin.
    type: str
    required: true
    choices:
      - holdfast.ha.cluster
  nodes:
    description:
      - The nodes to ask, in this order, by the names or addresses that O(command) takes.
      - Without any O(command) is run once, as on a controller that is a node itself.
    type: list
    elements: str
    default: []
  command:
    description:
      - The program with its arguments that prints the status as JSON. It is run on the controller
        without a shell, and C({node}) in it becomes the node that is asked.
    type: list
    elements: str
    default:
      - holdfast
      - status
      - --json
  timeout:
    description:
      - Seconds that a node gets to answer before the next is asked.
    type: float
    default: 10
  group_prefix:
    description:
      - What the names of all groups and variables begin with.
    type: str
    default: holdfast_
seealso:
  - module: holdfast.ha.cluster_info
"""

EXAMPLES = r"""
# Ask the nodes over SSH, and reach them at the addresses that the cluster knows.
plugin: holdfast.ha.cluster
nodes: [n1.example, n2.example, n3.example]
command: [ssh, -o, BatchMode=yes, -o, ConnectTimeout=5, "{node}", holdfast, status, --json]
compose:
  ansible_host: holdfast_address
groups:
  busy: holdfast_runs | length > 10
keyed_groups:
  - key: holdfast_host_lease
    prefix: lease

# The cluster of the quickstart, from the checkout:
#   nodes: [n1, n2, n3]
#   command: [".quickstart/nodes/{node}/holdfast", status, --json]
#   compose: {ansible_connection: "'local'"}

# With the answer kept for half a minute:
#   cache: true
#   cache_plugin: ansible.builtin.jsonfile
#   cache_connection: ~/.cache/ansible-inventory
#   cache_timeout: 30
"""

import re

from ansible.errors import AnsibleParserError
from ansible.inventory.group import to_safe_group_name
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable
from ansible.utils.unsafe_proxy import wrap_var

from ..module_utils._holdfast.errors import HoldfastError
from ..module_utils._holdfast.operator.cluster_info import ask_for_status
from ..module_utils._holdfast.operator.report.inventory import (
    checked_status,
    inventory_groups,
    inventory_variables,
)
from ..module_utils._holdfast.text import clean

_MARKS = re.compile("[{]|#jinja2")
ENDINGS = ("holdfast.yml", "holdfast.yaml")


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):
    """Makes hosts and groups of a cluster's status."""

    NAME = "holdfast.ha.cluster"

    @staticmethod
    def _sanitize_group_name(name):
        """Return the name of a constructed group, which is never a template."""
        return to_safe_group_name(name, force=_MARKS.search(str(name)) is not None)

    def verify_file(self, path):
        """Return whether the file is called as this plugin's are."""
        name = path.rpartition("/")[2]
        ours = any(name == one or name.endswith(f".{one}") for one in ENDINGS)
        return ours and super().verify_file(path)

    def parse(self, inventory, loader, path, cache=True):
        """Fill *inventory* from the status of the cluster that the file at *path* names."""
        super().parse(inventory, loader, path, cache)
        self._read_config_data(path)
        prefix = self.get_option("group_prefix")
        if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", prefix):
            raise AnsibleParserError(
                f"group_prefix: {prefix!r} is not accepted; expected letters, digits and"
                " underscores."
            )
        try:
            # From the cache, too: a file of it is no better than an answer.
            status = checked_status(self._status(path, cache))
        except HoldfastError as error:
            raise AnsibleParserError(f"The status is not one: {error}") from error
        self._fill(status, prefix)

    def _status(self, path, cache):
        """Return the status, from the cache where that is wanted and has it."""
        self.load_cache_plugin()
        key = self.get_cache_key(path)
        if cache and self.get_option("cache"):
            try:
                return self._cache[key]
            except KeyError:
                # Never asked, or too long ago.
                pass
        status = self._ask()
        if self.get_option("cache"):
            self._cache[key] = status
        return status

    def _ask(self):
        try:
            answered = ask_for_status(
                self.get_option("command"), self.get_option("nodes"), self.get_option("timeout")
            )
        except HoldfastError as error:
            raise AnsibleParserError(str(error)) from error
        for node, why in answered.passed_over.items():
            self.display.warning(f"{node} does not report the state of the cluster: {why}.")
        return answered.status

    def _fill(self, status, prefix):
        parent = self.inventory.add_group(f"{prefix}nodes")
        for node, variables in inventory_variables(status).items():
            self.inventory.add_host(node, parent)
            for name, value in variables.items():
                self.inventory.set_variable(node, f"{prefix}{name}", _no_template(value))
        for name, nodes in inventory_groups(status).items():
            group = self.inventory.add_group(f"{prefix}{name}")
            self.inventory.add_child(parent, group)
            for node in nodes:
                self.inventory.add_host(node, group)
        strict = self.get_option("strict")
        for node in status["nodes"]:
            variables = self.inventory.get_host(node).get_vars()
            self._set_composite_vars(self.get_option("compose"), variables, node, strict)
            variables = self.inventory.get_host(node).get_vars()
            for name in self.get_option("compose"):
                # Made of texts that are no templates, it would be one itself.
                if name in variables:
                    variables[name] = _no_template(variables[name])
                    self.inventory.set_variable(node, name, variables[name])
            self._add_host_to_composed_groups(self.get_option("groups"), variables, node, strict)
            self._add_host_to_keyed_groups(self.get_option("keyed_groups"), variables, node, strict)


def _no_template(value):
    """Return *value* with each text that could be taken for a template marked as none.

    Reasons hold what agents printed: they get no control characters through either.
    """
    if isinstance(value, dict):
        return {_no_template(key): _no_template(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_no_template(one) for one in value]
    if not isinstance(value, str):
        return value
    text = value if value.isprintable() else clean(value)
    return wrap_var(text) if _MARKS.search(text) else text
