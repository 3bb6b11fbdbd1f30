# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a cluster from a file: a request of Ganeti's allocator (JSON), or htools' text format."""

from __future__ import annotations

import sys

from ....errors import ClusterDataError
from ....hints import TYPE_CHECKING

if TYPE_CHECKING:
    from ....placement.model.cluster import Cluster

STATIC_NODE_MEMORY = 4096
"""MiB that a node needs for itself under KVM unless said otherwise (htools, CLI)."""


def read_source(name: str) -> str:
    """Return the text of the file *name*, of standard input if it is ``-``.

    Raises `ClusterDataError` if it cannot be read or is not UTF-8.
    """
    try:
        if name == "-":
            content = sys.stdin.buffer.read()
        else:
            with open(name, "rb") as file:  # noqa: PTH123 - pathlib takes longer than the answer
                content = file.read()
    except OSError as error:
        raise ClusterDataError(f"{name} cannot be read: {error.strerror}") from None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ClusterDataError(f"{name} is not UTF-8 text: {error.reason}") from None


def write_file(path: str, text: str) -> None:
    """Write *text* into the file *path*; raises `ClusterDataError` if that fails."""
    try:
        with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(text)
    except OSError as error:
        raise ClusterDataError(f"{path} cannot be written: {error.strerror}") from None
    except UnicodeEncodeError as error:
        name = ascii(error.object[error.start])
        raise ClusterDataError(f"{path} cannot be written: {name} in a name is no text") from None


def save(name: str | None, cluster: Cluster, ending: str, when: str) -> None:
    """Write *cluster* into the file *name*.*ending* and say so, if a *name* is given."""
    if name is None:
        return
    from ....placement.iallocator.text_format import write_text

    path = f"{name}.{ending}"
    write_file(path, write_text(cluster))
    sys.stderr.write(f"The cluster state {when} has been written to file '{path}'\n")


def show_nodes(fields: str | None, cluster: Cluster, domain: str, which: str) -> None:
    """Print the nodes on standard error with the chosen *fields*, names without *domain*."""
    from ....placement.iallocator.node_table import chosen_fields, node_table

    table = node_table(cluster, chosen_fields(fields or ""), domain)
    sys.stderr.write(f"\n{which} cluster status:\n{table}\n")


def ask_loads(cluster: Cluster, of_instances: bool = False, source: str | None = None) -> bool:
    """Set the processor loads that the nodes of *cluster* report; return whether all reported one.

    With *of_instances* these are the loads of each instance (under Xen), else of each node.  With
    *source* the reports are in a file.  Raises `ClusterDataError` for a file that is none.
    """
    from .mond import instance_loads, processor_loads, read_kept

    def say(text: str) -> None:
        sys.stderr.write(f"{text}\n")

    kept = None if source is None else read_kept(read_source(source))
    names = [node.name for node in cluster.nodes]
    if of_instances:
        loads = instance_loads(names, cluster.names, say, kept)
        if loads is not None:
            set_instance_loads(cluster, loads)
    else:
        from ....placement.balance.setup import set_processor_loads

        loads = processor_loads(names, say, kept)
        if loads is not None:
            set_processor_loads(cluster, loads)
    return loads is not None


def set_instance_loads(cluster: Cluster, loads: dict[str, float]) -> None:
    """Set the load of each instance, and for each node the sum of its primaries'."""
    for node in cluster.nodes:
        total = 0.0
        for index in node.primaries:
            instance = cluster.instance(index)
            instance.cpu_load = loads[instance.name]
            total += instance.cpu_load
        node.cpu_load = total


def read_cluster(text: str, static_node_memory: int) -> tuple[Cluster, list[str]]:
    """Return the cluster that *text* describes in either form, and warnings.

    *static_node_memory* is as in `placement.iallocator.request.read_request`.
    """
    if text.lstrip()[:1] in ("{", "["):
        from ....placement.iallocator.request import read_described_cluster

        return read_described_cluster(text, static_node_memory)
    from ....placement.iallocator.text_format import read_text

    return read_text(text)
