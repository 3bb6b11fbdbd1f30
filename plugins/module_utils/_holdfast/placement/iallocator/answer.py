# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answer an allocator's request, in the words and shapes of htools 3.0.2.

An answer has success or failure, the reason, and the result.  Only input that cannot be read at
all is an error instead.
"""

from __future__ import annotations

from ...errors import ClusterDataError
from ...hints import TYPE_CHECKING, Any, Sequence, dataclass
from ..allocate.solution import Options, Unplaceable
from ..model.cluster import Cluster
from .json_text import encode

if TYPE_CHECKING:
    from .query import Request


@dataclass
class Answer:
    """An answer, and the cluster after it.

    ``failed`` are the names of those of several instances that have no place, with the reason.
    """

    success: bool
    info: str
    result: Any
    cluster: Cluster
    failed: Sequence[list[str]] = ()

    def words(self) -> str:
        """Return the info as a sentence about the request."""
        return ("Request successful: " if self.success else "Request failed: ") + self.info

    def document(self) -> dict[str, Any]:
        """Return the answer as plain data."""
        return {"success": self.success, "info": self.words(), "result": self.result}

    def text(self) -> str:
        """Return the answer as one line of JSON."""
        return encode(self.document())


def answer(cluster: Cluster, request: Request, options: Options) -> Answer:
    """Answer *request* about *cluster*.

    With ``options.better`` the info ends with htools' answer if that differs, and of several
    instances those that failed are in the result by name.
    """
    if not options.better:
        return _answer(cluster, request, options)
    from ..allocate.solution import Options as Plain

    plain = Plain(options.ignore_soft_errors, options.capacity_checks, options.restrict)
    theirs = _answer(cluster, request, plain)
    ours = _answer(cluster, request, options)
    said = ""
    if ours.document() != theirs.document():
        said = f"; hail would have said: {theirs.words()}"
        if ours.success and theirs.success and ours.result != theirs.result:
            said += f" ({encode(theirs.result)})"
    if ours.failed:
        # Ganeti refuses an answer with pairs there, as hail gives it.
        ours.result[1] = [name for name, _why in ours.failed]
        ours.info += "".join([f"; {name}: {why}" for name, why in ours.failed])
    ours.info += said
    return ours


def _answer(cluster: Cluster, request: Request, options: Options) -> Answer:
    try:
        found: Answer = _ANSWERS[request.kind](cluster, request, options)
    except (Unplaceable, ClusterDataError) as error:
        return Answer(False, str(error), [], cluster)
    return found


def dedicated(cluster: Cluster, request: Request) -> bool:
    """Return whether *request* places instances where all storage is exclusive."""
    if request.kind not in ("allocate", "multi-allocate"):
        return False
    from ..allocate.dedicated import is_dedicated

    names = {placement.group for placement in request.placements} - {None}
    return is_dedicated(cluster, names.pop() if len(names) == 1 else None)


def _allocate(cluster: Cluster, request: Request, options: Options) -> Answer:
    options = options.restricted(request.restrict)
    after, ((_instance, solution, lines),) = _placed(cluster, request, options)
    info = ", ".join(lines)
    if solution.metric is None:
        raise Unplaceable(info)
    return Answer(True, info, [node.name for node in solution.nodes], after)


def _placed(cluster: Cluster, request: Request, options: Options) -> Any:
    """Return the cluster after all placements of *request*, and each of them (`place_all`)."""
    from ..allocate.allocate import place_all

    desired = [
        (each.instance, each.count, (options.better and each.own_group) or each.group)
        for each in request.placements
    ]
    several = request.kind == "multi-allocate"
    return place_all(cluster, desired, options, dedicated(cluster, request), several)


def _multi_allocate(cluster: Cluster, request: Request, options: Options) -> Answer:
    after, placed = _placed(cluster, request, options)
    done = [
        [instance.name, [node.name for node in solution.nodes]]
        for instance, solution, _lines in placed
        if solution.metric is not None
    ]
    failed = [
        [instance.name, ", ".join(lines)]
        for instance, solution, lines in placed
        if solution.metric is None
    ]
    info = f"{len(failed)} instances failed to allocate and {len(done)} were allocated successfully"
    return Answer(True, info, [done, failed], after, failed)


def _relocate(cluster: Cluster, request: Request, options: Options) -> Answer:
    from ..allocate.evacuate import relocate

    (index,) = request.instances
    after, nodes = relocate(cluster, index, request.count, request.leave, options)
    return Answer(True, "success", [after.nodes[node].name for node in nodes], after)


def _evacuate(cluster: Cluster, request: Request, options: Options) -> Answer:
    from ..allocate.evacuate import change_group, evacuate

    if request.kind == "change-group":
        result = change_group(cluster, request.instances, request.groups, options)
    else:
        result = evacuate(cluster, request.instances, request.mode, options)
    moved = [
        [
            cluster.instance(instance).name,
            cluster.groups[group].name,
            [cluster.nodes[node].name for node in nodes],
        ]
        for instance, group, nodes in result.moved
    ]
    failed = [[cluster.instance(index).name, why] for index, why in result.failed]
    info = f"{len(failed)} instances failed to move and {len(moved)} were moved successfully"
    return Answer(True, info, [moved, failed, result.jobs], result.cluster)


def _allocate_secondary(cluster: Cluster, request: Request, options: Options) -> Answer:
    from ..allocate.allocate import place_secondary

    (index,) = request.instances
    bare, solution = place_secondary(cluster, index, options)
    info = solution.description()
    if solution.metric is None:
        raise Unplaceable(info)
    return Answer(True, info, solution.nodes[1].name, solution.applied_to(bare))


_ANSWERS: dict[str, Any] = {
    "allocate": _allocate,
    "multi-allocate": _multi_allocate,
    "relocate": _relocate,
    "change-group": _evacuate,
    "node-evacuate": _evacuate,
    "allocate-secondary": _allocate_secondary,
}
