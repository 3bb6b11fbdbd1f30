# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random requests of every kind for an allocator, small and full of oddities.

One seed, one request.  The clusters are small on purpose: all that can differ between
two allocators shows with a few nodes, and thousands of requests fit into a test.
"""

from __future__ import annotations

import random
from typing import Any

TEMPLATES = [
    "drbd",
    "plain",
    "rbd",
    "diskless",
    "file",
    "sharedfile",
    "blockdev",
    "ext",
    "gluster",
]
KINDS = [
    "allocate",
    "allocate",
    "allocate",
    "multi-allocate",
    "relocate",
    "primary-only",
    "secondary-only",
    "all",
    "change-group",
    "allocate-secondary",
]
GIB = 1024


def random_request(seed: int) -> dict[str, Any]:
    """Return the request of *seed*."""
    return Maker(seed).request()


class Maker:
    """One random request in the making."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        rng = self.rng
        self.kind = rng.choice(KINDS)
        self.exclusive = rng.random() < 0.15
        self.tagged = rng.random() < 0.4
        self.planned = 0.1 if rng.random() < 0.15 else 0.0
        self.mix = rng.choice(
            [["drbd"], ["drbd"], ["plain"], ["rbd"], ["drbd", "plain"], ["drbd", "rbd"], TEMPLATES]
        )
        self.alike = rng.random() < 0.2
        self.groups = rng.choice([1, 1, 2, 3]) if self.kind != "change-group" else 2
        self.node_names: list[str] = []

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def spec(self, *sizes: int) -> dict[str, int]:
        keys = ("memory-size", "cpu-count", "disk-size", "disk-count", "nic-count", "spindle-use")
        return dict(zip(keys, sizes))

    def policy(self) -> dict[str, Any]:
        rng = self.rng
        ranges = [
            {
                "min": self.spec(128, 1, 1024, 1, 1, 1),
                "max": self.spec(65536, 16, 1048576, 16, 8, 12),
            }
        ]
        if self.exclusive or self.chance(0.15):
            ranges.append(
                {
                    "min": self.spec(2048, 1, 20480, 1, 1, 1),
                    "max": self.spec(8192, 8, 102400, 4, 4, 4),
                }
            )
            ranges.insert(
                0,
                {
                    "min": self.spec(4096, 2, 40960, 1, 1, 2),
                    "max": self.spec(16384, 8, 204800, 4, 4, 8),
                },
            )
        if self.chance(0.1):
            ranges[0]["max"]["memory-size"] = 4096
        templates = TEMPLATES if self.chance(0.9) else rng.sample(TEMPLATES, 5)
        return {
            "std": self.spec(4096, 2, 40960, 1, 1, 1),
            "minmax": ranges,
            "vcpu-ratio": rng.choice([4.0, 4.0, 2.0, 8.5]),
            "spindle-ratio": rng.choice([32.0, 32.0, 4.0]),
            "disk-templates": list(templates),
        }

    def group_table(self) -> dict[str, Any]:
        table = {}
        for number in range(self.groups):
            placing = "preferred"
            if number and self.chance(0.4):
                placing = self.rng.choice(["last_resort", "unallocable"])
            table[f"uuid-{number}"] = {
                "name": f"group{number}",
                "alloc_policy": placing,
                "networks": ["net-1"] if self.chance(0.7) else [],
                "tags": [],
                "ipolicy": self.policy(),
            }
        return table

    def node(self, number: int, count: int) -> dict[str, Any]:
        rng = self.rng
        exclusive = self.exclusive and (self.alike or self.chance(0.9))
        memory = 64 * GIB if self.alike else rng.choice([32, 48, 64, 96]) * GIB
        tags = []
        if self.tagged:
            tags = [f"rack:{number % 3}", rng.choice(["hv:new", "hv:old"])]
            if self.chance(0.2):
                tags.append(f"power:{number % 2}")
        return {
            "tags": tags,
            "offline": self.chance(0.05),
            "drained": self.chance(0.06),
            "vm_capable": not self.chance(0.03),
            "group": f"uuid-{number * self.groups // count}",
            "ndparams": {
                "exclusive_storage": exclusive,
                "spindle_count": 1 if self.alike else rng.choice([1, 2, 4]),
            },
            "total_memory": memory,
            "reserved_memory": rng.choice([1024, 4096]),
            "total_disk": (500 if self.alike else rng.choice([300, 500, 800])) * GIB,
            "total_cpus": 16 if self.alike else rng.choice([8, 16, 24]),
            "reserved_cpus": 1,
            "total_spindles": 16 if exclusive else 0,
            "free_spindles": 16 if exclusive else 0,
        }

    def instance(self, template: str) -> dict[str, Any]:
        rng = self.rng
        if self.alike:
            memory, vcpus, sizes = 4096, 2, [20 * GIB]
        else:
            memory = rng.choice([1, 2, 2, 4, 4, 8, 12]) * GIB
            vcpus = rng.choice([1, 1, 2, 4])
            sizes = [rng.choice([10, 20, 40]) * GIB for _one in range(rng.choice([1, 1, 2]))]
        if template == "diskless":
            sizes = []
        spindles = [rng.choice([1, 2]) if self.exclusive else None for _one in sizes]
        if self.exclusive and self.chance(0.05):
            spindles = [None for _one in sizes]
        tags = []
        if self.tagged and self.chance(0.5):
            tags.append(f"service:{rng.randrange(6)}")
        if self.tagged and self.chance(0.3):
            tags.append(f"rack:{rng.randrange(3)}")
        nic: dict[str, Any] = {"mac": "aa:00:00:00:00:01", "ip": None, "mode": "bridged"}
        if self.chance(0.1):
            nic["network"] = "net-1"
        return {
            "disk_template": template,
            "memory": memory,
            "vcpus": vcpus,
            "spindle_use": rng.choice([1, 1, 2]),
            "tags": tags,
            "disks": [{"size": s, "spindles": p} for s, p in zip(sizes, spindles)],
            "nics": [nic],
            "disk_space_total": sum(sizes) + (128 * len(sizes) if template == "drbd" else 0),
        }

    def fill(self, nodes: dict[str, Any]) -> dict[str, Any]:
        """Place instances at random, more or less where they fit, and use the nodes up."""
        rng = self.rng
        names = list(nodes)
        left = {n: d["total_memory"] - 4096 for n, d in nodes.items()}
        disk = {n: d["total_disk"] for n, d in nodes.items()}
        spindles = {n: d["free_spindles"] for n, d in nodes.items()}
        tight = rng.choice([0.3, 0.5, 0.7, 0.95])
        instances = {}
        for number in range(len(names) * rng.choice([0, 2, 4, 6])):
            instance = self.instance(rng.choice(self.mix))
            primary = rng.choice(names)
            peers = [
                n for n in names if n != primary and nodes[n]["group"] == nodes[primary]["group"]
            ]
            places = [primary]
            if instance["disk_template"] == "drbd":
                if not peers:
                    continue
                places.append(rng.choice(peers))
            total = nodes[primary]["total_memory"] * tight
            used = nodes[primary]["total_memory"] - left[primary]
            if used + instance["memory"] > total:
                continue
            local = instance["disk_template"] in ("drbd", "plain")
            if local and any(disk[n] < instance["disk_space_total"] for n in places):
                continue
            state = rng.choice(["up"] * 9 + ["down", "offline"])
            planned = self.chance(self.planned)
            if state == "up" and not planned:
                left[primary] -= instance["memory"]
            if local and not planned:
                for place in places:
                    disk[place] -= instance["disk_space_total"]
                    spindles[place] -= sum(d["spindles"] or 0 for d in instance["disks"])
            instance.update(admin_state=state, nodes=places, forthcoming=planned)
            instances[f"inst{number}.example.com"] = instance
        for name, node in nodes.items():
            node["free_memory"] = left[name] - (rng.randrange(400) if not self.alike else 0)
            if self.chance(0.03):
                node["free_memory"] = rng.choice([-500, 0, 100])
            node["free_disk"] = disk[name]
            if node["ndparams"]["exclusive_storage"]:
                node["free_spindles"] = spindles[name]
        return instances

    def cluster_tags(self) -> list[str]:
        if not self.tagged:
            return []
        tags = ["htools:iextags:service", "htools:nlocation:rack", "htools:nlocation:power"]
        if self.chance(0.7):
            tags.append("htools:desiredlocation:rack")
        if self.chance(0.4):
            tags.append("htools:migration:hv")
            if self.chance(0.7):
                tags.append("htools:allowmigration:hv:old::hv:new")
        return tags

    def request(self) -> dict[str, Any]:
        rng = self.rng
        count = rng.choice([0, 1, 2, 3, 4, 5, 6, 8, 10]) if self.chance(0.3) else rng.randint(3, 8)
        groups = self.group_table()
        nodes = {f"node{number}.example.com": self.node(number, count) for number in range(count)}
        instances = self.fill(nodes)
        for node in nodes.values():
            if node["offline"] and self.chance(0.5):
                for key in ("total_memory", "free_memory", "total_disk", "free_disk"):
                    del node[key]
        return {
            "version": 2,
            "cluster_tags": self.cluster_tags(),
            "enabled_hypervisors": rng.choice([["kvm"], ["kvm"], ["xen-pvm"], []]),
            "nodegroups": groups,
            "nodes": nodes,
            "instances": instances,
            "request": self.asked(nodes, instances),
        }

    def new_instance(self, number: int, nodes: dict[str, Any]) -> dict[str, Any]:
        template = self.rng.choice(self.mix)
        instance = self.instance(template)
        if self.chance(0.1):
            instance["memory"] *= 8
        desired = 2 if template == "drbd" else 1
        if template != "drbd" and self.chance(0.02):
            desired = self.rng.choice([2, 3])
        instance.update(name=f"new{number}.example.com", required_nodes=desired)
        if self.chance(0.05):
            instance["admin_state"] = self.rng.choice(["down", "offline"])
        return instance

    def asked(self, nodes: dict[str, Any], instances: dict[str, Any]) -> dict[str, Any]:
        rng = self.rng
        named = f"group{rng.randrange(self.groups)}" if self.chance(0.25) else None
        names = list(instances)
        if self.kind == "allocate" or not names:
            asked = self.new_instance(0, nodes)
            asked.update(type="allocate", group_name=named)
            if self.chance(0.1):
                asked["restrict-to-nodes"] = rng.sample(list(nodes), len(nodes) // 2)
            return asked
        if self.kind == "multi-allocate":
            several = [self.new_instance(n, nodes) for n in range(rng.randint(1, 4))]
            return {"type": "multi-allocate", "instances": several, "group_name": named}
        if self.kind == "relocate":
            name = rng.choice(names)
            leave = instances[name]["nodes"][-1:]
            return {
                "type": "relocate",
                "name": name,
                "required_nodes": 1,
                "relocate_from": leave,
            }
        if self.kind == "change-group":
            own = [n for n in names if nodes[instances[n]["nodes"][0]]["group"] == "uuid-0"]
            chosen = rng.sample(own, min(len(own), rng.randint(1, 3)))
            return {
                "type": "change-group",
                "instances": chosen or names[:1],
                "target_groups": rng.choice([[], ["uuid-1"], ["group1"]]),
            }
        if self.kind == "allocate-secondary":
            lone = [n for n in names if len(instances[n]["nodes"]) == 1] or names
            return {"type": "allocate-secondary", "name": rng.choice(lone)}
        at = 0 if self.kind == "primary-only" else -1
        victim = rng.choice(list(nodes))
        chosen = [n for n in names if instances[n]["nodes"][at] == victim]
        if self.kind == "all" or not chosen:
            chosen = rng.sample(names, min(len(names), rng.randint(1, 4)))
        return {"type": "node-evacuate", "instances": chosen, "evac_mode": self.kind} | (
            {} if self.kind in ("primary-only", "secondary-only", "all") else {"evac_mode": "all"}
        )
