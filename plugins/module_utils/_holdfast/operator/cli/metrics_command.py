# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``holdfast metrics``: this node's metrics for Prometheus, once or again and again."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from ...errors import HoldfastError, InputError

SUFFIX = ".prom"
"""The node exporter's textfile collector reads files that end so, and no others."""


def register(commands: Any, add_config: Any) -> None:
    """Add the command to the subparsers *commands*; *add_config* adds its option ``--config``."""
    metrics = commands.add_parser("metrics", help="print or write metrics for Prometheus")
    add_config(metrics)
    metrics.add_argument(
        "--write",
        metavar="FILE",
        help=f"a file in the node exporter's textfile folder, ending in {SUFFIX}; as a whole",
    )
    metrics.add_argument(
        "--every", type=float, metavar="SECONDS", help="with --write: go on, so often"
    )
    metrics.add_argument(
        "--rehearsals", metavar="FILE", help="the report of the fence rehearsals, if not the usual"
    )
    metrics.add_argument(
        "--whole-cluster",
        action="store_true",
        help="also what is told by the manager's node alone, on any node",
    )
    metrics.set_defaults(act=_metrics)


def _metrics(options: argparse.Namespace) -> int:
    from ...node.configuration import load
    from ...storage.whole_file import write_text
    from ..report.metrics.collect import DEFAULT_REPORT, node_metrics

    configuration = load(Path(options.config))
    report = Path(options.rehearsals) if options.rehearsals else DEFAULT_REPORT
    _check(options)
    while True:
        text = node_metrics(configuration, report, whole_cluster=options.whole_cluster)
        if not options.write:
            sys.stdout.write(text)
            return 0
        try:
            write_text(Path(options.write), text)
        except HoldfastError as error:
            if not options.every:
                raise
            from ...text import clean

            sys.stderr.write(f"holdfast: {clean(error)}\n")
        if not options.every:
            return 0
        time.sleep(options.every)


def _check(options: argparse.Namespace) -> None:
    if options.write and not options.write.endswith(SUFFIX):
        raise InputError("--write", options.write, f"a file that ends in {SUFFIX}")
    if options.every is not None and not (options.write and options.every > 0):
        raise InputError("--every", options.every, "seconds above 0, beside --write")
