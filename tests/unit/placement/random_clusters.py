# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random clusters that are unevenly filled, in htools' text format: there is much to balance.

One seed, one cluster.  Nodes are of several sizes and attract instances more or less; what
is placed fits, with N+1 for mirrored instances, so that nothing stands in the way of moves.
"""

from __future__ import annotations

import random

GIB = 1024
MIXES = [["drbd"], ["drbd"], ["drbd"], ["rbd"], ["drbd", "drbd", "plain"], ["drbd", "rbd", "file"]]
TAGS = ["htools:iextags:service", "htools:nlocation:rack", "htools:desiredlocation:rack"]
MIGRATION = ["htools:migration:hv", "htools:allowmigration:hv:old::hv:new"]
POLICY = "128,1,1024,1,1,1|128,1,1024,1,1,1;65536,16,1048576,16,8,12|drbd,plain,rbd,file|4.0|32.0"


def uneven_cluster(
    seed: int, size: int = 0, per_node: int = 0, plain: bool = False, odd: bool = True
) -> str:
    """Return the cluster of *seed*: of *size* nodes with *per_node* instances for each.

    With 0 these are random, up to 12 nodes.  With *plain* all instances are mirrored and
    nothing has a tag; unless *odd*, all nodes are in service.
    """
    return _Maker(seed, size, per_node, plain, odd).text()


class _Node:
    def __init__(self, rng: random.Random, number: int, per_node: int) -> None:
        kind = rng.choice([0.75, 1, 1, 1, 1.5])
        self.name = f"node{number:03d}.example.com"
        self.memory = int(per_node * 11.8 * kind) * GIB + 4 * GIB
        self.disk = int(per_node * 260 * kind) * GIB
        self.cpus = rng.choice([16, 24, 32, 48]) * max(1, per_node // 10)
        self.spindles = rng.choice([1, 2, 4])
        self.weight = rng.choice([0.15, 0.4, 1.0, 1.0, 2.0])
        self.used_memory = 4 * GIB
        self.idle = self.used_disk = self.used_cpus = self.used_spindles = 0
        self.peers: dict[str, int] = {}

    def room(self, extra: int) -> bool:
        kept = max([extra, *self.peers.values()])
        return self.memory - self.used_memory - 512 > kept

    def takes_disk(self, disk: int) -> bool:
        return self.used_disk + disk < self.disk * 0.97 and self.used_spindles < 32 * self.spindles


class _Maker:
    def __init__(self, seed: int, size: int, per_node: int, plain: bool, odd: bool) -> None:
        self.rng = rng = random.Random(seed)
        size = size or rng.randint(3, 12)
        per_node = per_node or rng.choice([3, 5, 8])
        self.mix = ["drbd"] if plain else rng.choice(MIXES)
        self.tagged = not plain and rng.random() < 0.3
        self.migration = self.tagged and rng.random() < 0.5
        self.odd = odd and rng.random() < 0.4
        self.nodes = [_Node(rng, number, per_node) for number in range(size)]
        self.lines: list[str] = []
        for number in range(size * per_node):
            self._place(number)

    def _place(self, number: int) -> None:
        rng, template = self.rng, self.rng.choice(self.mix)
        memory = rng.choice([1, 2, 2, 4, 4, 4, 6, 8, 8, 12, 16]) * GIB
        disk = rng.choice([10, 20, 20, 40, 60, 80, 160]) * GIB + 128
        cpus = rng.choice([1, 1, 2, 2, 4])
        local = template in ("drbd", "plain")
        weights = [node.weight for node in self.nodes]
        for _try in range(25):
            primary, secondary = rng.choices(self.nodes, weights, k=2)
            if not primary.room(memory + max([0, *primary.peers.values()])):
                continue
            if local and not primary.takes_disk(disk):
                continue
            if primary.used_cpus + cpus > 4 * primary.cpus:
                continue
            if template == "drbd":
                kept = secondary.peers.get(primary.name, 0) + memory
                if secondary is primary or not secondary.room(kept):
                    continue
                if not secondary.takes_disk(disk):
                    continue
                secondary.peers[primary.name] = kept
            self._add(number, template, primary, secondary, (memory, disk, cpus))
            return

    def _add(
        self,
        number: int,
        template: str,
        primary: _Node,
        secondary: _Node,
        sizes: tuple[int, int, int],
    ) -> None:
        rng, (memory, disk, cpus) = self.rng, sizes
        runs = rng.random() < 0.96
        places = [primary, secondary] if template == "drbd" else [primary]
        primary.used_memory += memory
        primary.idle += 0 if runs else memory
        primary.used_cpus += cpus
        for node in places if template in ("drbd", "plain") else []:
            node.used_disk += disk
            node.used_spindles += 1
        tags = []
        if self.tagged and rng.random() < 0.3:
            tags.append(f"service:{rng.randrange(8)}")
        if self.tagged and rng.random() < 0.2:
            tags.append(f"rack:{rng.randrange(3)}")
        fields = [f"inst{number:04d}.example.com", memory, disk, cpus]
        fields += ["running" if runs else "ADMIN_down", "Y", primary.name]
        fields += [secondary.name if template == "drbd" else "", template, ",".join(tags), 1]
        self.lines.append("|".join([str(field) for field in fields]))

    def _node_line(self, number: int, node: _Node) -> str:
        state, tags = "N", []
        if self.odd and self.rng.random() < 0.15:
            state = "Y"
        if self.tagged:
            tags.append(f"rack:{number % 3}")
        if self.migration:
            tags.append("hv:new" if number % 3 else "hv:old")
        free = node.memory - node.used_memory + node.idle - self.rng.randrange(400)
        fields = [node.name, node.memory, 4096, free, node.disk, node.disk - node.used_disk]
        fields += [node.cpus, state, "uuid", node.spindles, ",".join(tags), "N", 0, 1, 1.0]
        return "|".join([str(field) for field in fields])

    def text(self) -> str:
        nodes = [self._node_line(number, node) for number, node in enumerate(self.nodes)]
        tags = (TAGS if self.tagged else []) + (MIGRATION if self.migration else [])
        parts = [["default|uuid|preferred||"], nodes, self.lines, tags]
        parts.append([f"|{POLICY}", f"default|{POLICY}"])
        return "\n\n".join(["\n".join(lines) for lines in parts]) + "\n"
