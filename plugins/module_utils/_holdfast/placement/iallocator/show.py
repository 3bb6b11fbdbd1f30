# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A group as htools shows it in the one error text that does."""

from __future__ import annotations

from math import isfinite

from ..allocate.solution import fixed
from .fields import quoted, quoted_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.cluster import Group, Policy, Spec

PLACING = {
    "preferred": "AllocPreferred",
    "last_resort": "AllocLastResort",
    "unallocable": "AllocUnallocable",
}
TEMPLATES = {
    "diskless": "DTDiskless",
    "file": "DTFile",
    "sharedfile": "DTSharedFile",
    "plain": "DTPlain",
    "blockdev": "DTBlock",
    "drbd": "DTDrbd8",
    "rbd": "DTRbd",
    "ext": "DTExt",
    "gluster": "DTGluster",
}


def show_group(group: Group) -> str:
    """Return all of *group* as a Haskell program shows a record."""
    return (
        f"Group {{name = {quoted(group.name)}, uuid = {quoted(group.uuid)}, "
        f"idx = {group.index}, allocPolicy = {PLACING[group.placing]}, "
        f"networks = {quoted_list(group.networks)}, iPolicy = {show_policy(group.policy)}, "
        f"allTags = {quoted_list(group.tags)}}}"
    )


def show_number(value: float) -> str:
    """Return *value* as a Haskell program shows a floating point number."""
    if not isfinite(value):
        return fixed(value, 0)
    digits, _e, power = f"{value!r}".partition("e")
    if value == 0 or (0.1 <= abs(value) < 1e7 and not power):
        return digits if "." in digits else digits + ".0"
    mantissa, _e, exponent = f"{value:.17e}".partition("e")
    for length in range(1, 18):
        short = f"{value:.{length}e}"
        if float(short) == value:
            mantissa, _e, exponent = short.partition("e")
            break
    mantissa = mantissa.rstrip("0")
    return f"{mantissa}{'0' if mantissa.endswith('.') else ''}e{int(exponent)}"


def show_policy(policy: Policy) -> str:
    """Return all of *policy* as a Haskell program shows a record."""
    ranges = ",".join(
        [
            f"MinMaxISpecs {{minMaxISpecsMinSpec = {_show_spec(least)}, "
            f"minMaxISpecsMaxSpec = {_show_spec(most)}}}"
            for least, most in policy.ranges
        ]
    )
    templates = ",".join([TEMPLATES[template] for template in policy.templates])
    return (
        f"IPolicy {{iPolicyMinMaxISpecs = [{ranges}], "
        f"iPolicyStdSpec = {_show_spec(policy.standard)}, "
        f"iPolicyDiskTemplates = [{templates}], "
        f"iPolicyVcpuRatio = {show_number(policy.vcpu_ratio)}, "
        f"iPolicySpindleRatio = {show_number(policy.spindle_ratio)}}}"
    )


def _show_spec(spec: Spec) -> str:
    return (
        f"ISpec {{iSpecMemorySize = {spec.memory}, iSpecCpuCount = {spec.cpus}, "
        f"iSpecDiskSize = {spec.disk}, iSpecDiskCount = {spec.disks}, "
        f"iSpecNicCount = {spec.nics}, iSpecSpindleUse = {spec.spindles}}}"
    )
