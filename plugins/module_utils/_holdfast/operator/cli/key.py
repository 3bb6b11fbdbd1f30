# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``holdfast key``: which cluster key this node has, and what on the storage it has signed.

Exit status: 0 all is signed with the key that signs now, or was signed; 1 something is not.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from .arguments import add_actions, add_commands, add_config, add_output, load_config, write_answer

ALL_SIGNED, NOT_SIGNED = 0, 1


def register(commands: Any) -> None:
    """Add the commands to the subparsers *commands*."""
    actions = add_actions(commands, "key", "the cluster key, by which nodes believe each other")
    show, sign = add_commands(
        actions,
        ("show", _show, "show fingerprints of the keys, and what was not signed with the first"),
        ("sign", _sign, "sign this node's copy of the configuration with the first key"),
    )
    add_output(show)
    add_config(show)
    add_config(sign)


def _show(options: argparse.Namespace) -> int:
    from ...text import clean
    from ..operations.cluster_key import key_document
    from ..report.status import in_time

    configuration = load_config(options)
    shown = in_time(configuration, lambda: key_document(configuration))
    write_answer(options, shown, lambda: "\n".join(map(clean, _lines(shown))))
    return NOT_SIGNED if shown["not_signed"] or shown["not_authentic"] else ALL_SIGNED


def _lines(shown: dict[str, Any]) -> list[str]:
    lines = [f"authentication: {shown['policy']}"]
    uses = ("signs, and is accepted", "is accepted")
    lines.extend(f"key {name} {use}" for name, use in zip(shown["fingerprints"], uses))
    lines.extend(f"{one}." for one in (*shown["not_authentic"], *shown["not_signed"]))
    return lines


def _sign(options: argparse.Namespace) -> int:
    from ..operations.cluster_key import sign_configuration

    signed = sign_configuration(load_config(options))
    sys.stdout.write("signed\n" if signed else "already signed; no change\n")
    return ALL_SIGNED
