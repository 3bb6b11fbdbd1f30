# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An instance as a request describes it: one of the cluster, or one to be placed."""

from __future__ import annotations

from ...errors import ClusterDataError
from ..model.cluster import DISK_TEMPLATES, STATE_DOWN, STATE_OFFLINE, STATE_UP, Instance
from . import fields
from .json_text import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Record = dict[str, Any]

STATES = {"down": STATE_DOWN, "offline": STATE_OFFLINE}
NIC_MODES = frozenset({"bridged", "routed", "openvswitch", "ext", None})


def read_instance(name: str, data: Record) -> Instance:
    """Return what describes an instance, there or to be placed, in the order of htools."""
    owner = f"invalid data for instance '{name}'"
    disk = fields.required(owner, data, "disk_space_total", fields.whole)
    volumes = _objects(fields.required(owner, data, "disks", lambda value: value))
    sizes = [fields.required(owner, volume, "size", fields.whole) for volume in volumes]
    each = [fields.optional(owner, volume, "spindles", fields.whole) for volume in volumes]
    known = [spindles for spindles in each if spindles is not None]
    memory = fields.required(owner, data, "memory", fields.whole)
    vcpus = fields.required(owner, data, "vcpus", fields.whole)
    tags = fields.required(owner, data, "tags", fields.texts)
    template = fields.required(
        owner, data, "disk_template", fields.one_of("DiskTemplate", DISK_TEMPLATES)
    )
    use = fields.required(owner, data, "spindle_use", fields.whole)
    nics = _objects(fields.required(owner, data, "nics", lambda value: value))
    state = data.get("admin_state")
    return Instance(
        name,
        memory,
        disk,
        sizes,
        sum(known) if len(known) == len(each) else None,
        vcpus,
        STATES.get(state, STATE_UP) if isinstance(state, str) else STATE_UP,
        tags,
        template,
        use,
        [network for nic in nics for network in _read_network(name, nic)],
        data.get("forthcoming") is True,
    )


def _objects(value: Any) -> list[Record]:
    if not isinstance(value, list):
        raise ClusterDataError(f"Invalid input, expected array but got {encode(value)}")
    return [fields.some_object(item) for item in value]


def _read_network(instance: str, nic: Record) -> list[str]:
    """Return the network of an interface, if it names one."""
    fields.optional("", nic, "mac", fields.text)
    fields.optional("", nic, "ip", fields.text)
    if fields.optional("", nic, "mode", fields.text) not in NIC_MODES:
        raise ClusterDataError(f"invalid NIC mode in instance {instance}")
    fields.optional("", nic, "link", fields.text)
    fields.optional("", nic, "bridge", fields.text)
    network = fields.optional("", nic, "network", fields.text)
    return [] if network is None else [network]
