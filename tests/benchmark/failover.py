# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long from a power cut to the service answering again over HTTP.

Builds an embedded cluster of three nodes in a temporary folder, with the default
timing, and cuts the power of the node on which the web service runs, again and
again.  Prints for each cut and then as median and maximum:

detection  cut to suspicion and the recorded reason
fence      recorded reason to verified off
start      verified off to the first HTTP answer
total      cut to the first HTTP answer

With --forged RATE every second cut is made while another user sends so many forged datagrams a
second to the daemons; the ratio of the medians is printed last.

Use: python3 tests/benchmark/failover.py [--cuts 20] [--freeze] [--forged 5000]
"""

from __future__ import annotations

import argparse
import http.client
import statistics
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(CHECKOUT / "tests"))

from cluster import EmbeddedCluster  # noqa: E402
from stranger import forged_traffic  # noqa: E402

COLUMNS = ("detection", "fence", "start", "total")
LIMIT = 60.0

NO_BRAKE = {"fence_limit": 1000}
"""All times are the defaults; only the brake that leaves a node off after three fences is off."""


def main() -> int:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cuts", type=int, default=20, help="how often a node is cut off")
    parser.add_argument("--freeze", action="store_true", help="freeze the node instead")
    parser.add_argument("--forged", type=float, help="forged datagrams a second at every second")
    options = parser.parse_args()
    rows = []
    forged = []
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-benchmark-") as folder,
        EmbeddedCluster(Path(folder), NO_BRAKE, authentication="enforce") as cluster,
    ):
        cluster.declare_web()
        for number in range(1, options.cuts + 1):
            attacked = options.forged is not None and number % 2 == 0
            with forged_traffic(cluster, options.forged) if attacked else nullcontext():
                row = one_failover(cluster, options.freeze)
            (forged if attacked else rows).append(row)
            shown = "  ".join(f"{name} {row[name]:5.2f} s" for name in COLUMNS)
            mark = f"{' (manager)' * row['manager']}{' (forged)' * attacked}"
            print(f"{number:3d}  {row['node']}{mark:19s}  {shown}")
    print_summary(rows, "freezes" if options.freeze else "cuts")
    if forged:
        print_summary(forged, f"under {options.forged:g} forged datagrams a second")
        medians = [statistics.median(row["total"] for row in one) for one in (forged, rows)]
        print(f"\nwith forged traffic / without: {medians[0] / medians[1]:.2f}")
    return 0


def print_summary(rows: list[dict], what: str) -> None:
    """Print median and maximum of each column."""
    print(f"\n{len(rows)} {what}, seconds")
    print(f"{'':10s} {'median':>7s} {'maximum':>8s}")
    for name in COLUMNS:
        values = [row[name] for row in rows]
        print(f"{name:10s} {statistics.median(values):7.2f} {max(values):8.2f}")


def one_failover(cluster: EmbeddedCluster, freeze: bool) -> dict:
    """Cut off the node of the web service and return what each part took."""
    before = cluster.wait_settled(LIMIT)
    node = before["services"]["web"]["node"]
    cut = time.time()
    if freeze:
        cluster.freeze(node)
    else:
        cluster.cut(node)
    answered = wait_for_answer(cluster.web_port, cut)
    failover = cluster.wait_failover(node, cut, LIMIT)
    return {
        "node": node,
        "manager": before["manager"]["node"] == node,
        "detection": failover["recorded"] - cut,
        "fence": failover["confirmed"] - failover["recorded"],
        "start": answered - failover["confirmed"],
        "total": answered - cut,
    }


def wait_for_answer(port: int, cut: float) -> float:
    """Return when the service first answered after the cut, in seconds since 1970."""
    while time.time() - cut < LIMIT:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1.0)
        try:
            connection.request("GET", "/")
            if connection.getresponse().status == 200:
                return time.time()
        except OSError:
            pass
        finally:
            connection.close()
        time.sleep(0.01)
    raise SystemExit(f"the service did not answer within {LIMIT:.0f} s")


if __name__ == "__main__":
    raise SystemExit(main())
