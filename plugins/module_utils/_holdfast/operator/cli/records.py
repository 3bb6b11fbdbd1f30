# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``holdfast records repair``: the way out when the records on storage went back in time.

Exit status: 0 repaired, or nothing to repair; 2 it was refused, or not taken up in time.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...errors import HoldfastError
from ...node.configuration import load

DONE = 0
WAIT = 60.0
"""Seconds: a manager takes a repair up within a round or two."""


def register(commands: Any, add_config: Callable[[argparse.ArgumentParser], None]) -> None:
    """Add the command to the subparsers *commands*; *add_config* adds the option ``--config``."""
    records = commands.add_parser(
        "records", help="repair the records on storage after they went back in time"
    )
    actions = records.add_subparsers(required=True, metavar="ACTION")
    repair = actions.add_parser(
        "repair",
        help="begin a new generation of the records; every service is looked for on every node",
    )
    repair.add_argument(
        "--keep",
        choices=("running", "file"),
        required=True,
        help="running: what runs goes on, also what the configuration on storage lost;"
        " file: what the configuration on storage does not have is stopped",
    )
    repair.add_argument("--reason", metavar="TEXT", default="records repaired", help="why")
    repair.add_argument("--dry-run", action="store_true", help="show the repair; change nothing")
    repair.add_argument(
        "--yes", action="store_true", help="do not ask; needed where there is no terminal"
    )
    repair.add_argument(
        "--timeout",
        type=float,
        default=WAIT,
        metavar="SECONDS",
        help=f"for the manager to take the repair up (default {WAIT:g}; 0: do not wait)",
    )
    add_config(repair)
    repair.set_defaults(act=_repair)


def _repair(options: argparse.Namespace) -> int:
    from ...cluster.crm.repair_plan import Keep
    from ...cluster.model.maintenance import Maintenance
    from ...text import clean
    from ..operations.maintenance import user_name
    from ..operations.repair_records import describe, repair_records

    configuration = load(Path(options.config))
    keep = Keep(options.keep)
    by = Maintenance(options.reason, user_name(), time.time())
    if not options.dry_run and not options.yes:
        _ask_for_consent(configuration.cluster)
    repair = repair_records(configuration, keep, by, check=options.dry_run, timeout=options.timeout)
    if not repair.regressions:
        verb = "would be" if options.dry_run else "was"
        again = f"; a copy of the configuration is damaged: it {verb} written again"
        sys.stdout.write(f"the records are current{again if repair.written_again else ''}\n")
        return DONE
    for line in describe(repair, keep):
        sys.stdout.write(f"{clean(line)}\n")
    if options.dry_run:
        sys.stdout.write("dry run: nothing was changed\n")
    return DONE


def _ask_for_consent(cluster: str) -> None:
    if not sys.stdin.isatty():
        raise HoldfastError(
            "not repairing the records: no terminal to confirm; look at --dry-run, then use --yes"
        )
    sys.stdout.write(
        f"This replaces the records of cluster {cluster}; look at --dry-run first.\n"
        "Type the cluster's name to go on: "
    )
    sys.stdout.flush()
    said = sys.stdin.readline().strip()
    if said != cluster:
        raise HoldfastError(f"not repairing the records: {said!r} is not {cluster!r}")
