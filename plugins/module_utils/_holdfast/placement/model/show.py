# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Groups, strings and numbers as a Haskell program shows them, for the texts of htools."""

from __future__ import annotations

from math import isfinite, isnan

from ...hints import Iterable, Sequence
from .cluster import Group, Policy, Spec

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


CONTROL_NAMES = (
    "NUL SOH STX ETX EOT ENQ ACK a b t n v f r SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB "
    "CAN EM SUB ESC FS GS RS US"
)
"""How a Haskell program names the characters before the blank."""


def quoted(value: str) -> str:
    """Return *value* as a Haskell program shows a string."""
    parts: list[str] = []
    after_number = False
    for character in value:
        code = ord(character)
        numeric = False
        if character in '"\\':
            shown = "\\" + character
        elif 32 <= code < 127:
            shown = ("\\&" if after_number and character.isdigit() else "") + character
        elif code < 32:
            shown = "\\" + CONTROL_NAMES.split()[code]
        elif code == 127:
            shown = "\\DEL"
        else:
            shown = f"\\{code}"
            numeric = True
        if shown == "H" and parts and parts[-1] == "\\SO":
            shown = "\\&H"
        after_number = numeric
        parts.append(shown)
    return '"' + "".join(parts) + '"'


def quoted_list(values: Iterable[str]) -> str:
    """Return *values* as a Haskell program shows a list of strings."""
    return "[" + ",".join([quoted(value) for value in values]) + "]"


def table(rows: Sequence[Sequence[str]], numbers: Sequence[bool]) -> str:
    """Return *rows* as aligned columns, those with *numbers* to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numbers)
        ]
        lines.append(" " + " ".join(cells) + "\n")
    return "".join(lines)


def fixed(value: float, places: int) -> str:
    """Return *value* with *places* decimals, rounded as Haskell's printf does.

    It rounds the shortest decimal text that names the number, a half to the even digit;
    C rounds the number itself.  What is no finite number is shown as a word; zero keeps
    its sign.
    """
    if not isfinite(value):
        return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    shortest = repr(value)
    sign = "-" if shortest.startswith("-") else ""
    digits, _e, exponent = shortest.lstrip("-").partition("e")
    whole, _dot, fraction = digits.partition(".")
    if exponent:
        shift = int(exponent)
        if shift < 0:
            whole, fraction = "0", "0" * (-shift - 1) + whole + fraction
        else:
            fraction = fraction.ljust(shift, "0")
            whole, fraction = whole + fraction[:shift], fraction[shift:]
    number = int(whole + fraction[:places].ljust(places, "0"))
    rest = fraction[places:]
    if rest[:1] >= "5" and (number % 2 or rest[:1] > "5" or rest[1:].strip("0")):
        number += 1
    if not places:
        return f"{sign}{number}"
    text = str(number).rjust(places + 1, "0")
    return f"{sign}{text[:-places]}.{text[-places:]}"
