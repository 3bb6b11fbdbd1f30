# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a proved fence costs over its agent, and how much longer 64 of them take than one.

*One call* is a status of a simulated management board by fence_ipmilan, by our checked call
and by a bare ``subprocess.run``, in turns.  The goal is at most 10 ms more in the median.

*A verified off* is compared with the agent's own off, in turns, on the same board.  The
proof is a second question, so the agent runs twice.  The goal is at most 0.2 s more.

*64 devices* are switched off by what one task of the module ``fence`` calls, and compared
with one.  The goal is at most 1.3 times as long, for devices whose agents wait, as for a
real board: one has ``power_wait`` of 2 s.  The simulated boards are measured too, without a
goal: there fence_ipmilan and the boards themselves share the processors of this machine, and
the processor time of one fence says what 64 of them take at least.

Use: python3 tests/benchmark/fencing.py [--rounds 15] [--devices 64]
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(CHECKOUT / ".collections"))

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.apply import operate  # noqa: E402
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.call import (  # noqa: E402
    call_fence_agent,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.known_agents import (  # noqa: E402
    fence_environment,
    locate_fence_agent,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.metadata import (  # noqa: E402
    load_fence_metadata,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.prove import (  # noqa: E402
    power_off,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.topology import (  # noqa: E402
    FenceConfiguration,
    parse_fence_configuration,
)
from ansible_collections.holdfast.ha.tests.system.fencing import ipmi_boards  # noqa: E402

CALL_GOAL = 0.010
PROOF_GOAL = 0.2
MANY_GOAL = 1.3
TIMEOUT = 120.0

WAITING_AGENT = """#!/bin/sh
# A device that takes its time and no processor: 0.2 s for a question, 2.5 s for a switch,
# as measured for fence_ipmilan with its power_wait of 2 s.
action='' folder=''
while IFS='=' read -r name value; do
    case $name in action) action=$value ;; folder) folder=$value ;; esac
done
case $action in
    metadata) cat <<'XML'
<?xml version="1.0" ?>
<resource-agent name="fence_waiting" shortdesc="A device that takes its time">
<parameters>
<parameter name="action" required="1"><content type="string"/></parameter>
<parameter name="folder" required="1"><content type="string"/></parameter>
</parameters>
<actions>
<action name="on" automatic="0"/><action name="off"/><action name="status"/>
<action name="monitor"/><action name="metadata"/>
</actions>
</resource-agent>
XML
    ;;
    status) sleep 0.2; read -r power <"$folder/power"; [ "$power" = on ] || exit 2 ;;
    on | off) sleep 2.5; echo "$action" >"$folder/power" ;;
    *) exit 1 ;;
esac
"""


def main() -> int:
    """Run the benchmark; 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15, help="how often each is measured")
    parser.add_argument("--devices", type=int, default=64, help="how many are fenced at once")
    options = parser.parse_args()
    missing = ipmi_boards.missing()
    results = []
    if missing:
        print(f"simulated management boards: left out, {missing}")
    else:
        with ipmi_boards.boards(1) as (board,):
            results.append(one_call(board, options.rounds))
            results.append(verified_off(board, options.rounds))
    results.append(many_that_wait(options.devices, max(3, options.rounds // 5)))
    if not missing:
        many_boards(options.devices)
    return 0 if all(results) else 1


def one_call(board: ipmi_boards.Board, rounds: int) -> bool:
    """Measure what our call of an agent takes over the agent; return whether the goal is met."""
    path = locate_fence_agent("fence_ipmilan")
    metadata = load_fence_metadata(path)
    ours, bare = [], []
    for _round in range(rounds):
        bare.append(seconds(lambda: run_bare(path, "status", board.parameters)))
        ours.append(
            seconds(
                lambda: call_fence_agent(
                    path, metadata, "status", board.parameters, timeout=TIMEOUT
                )
            )
        )
    print(f"one status of a simulated board by fence_ipmilan, {rounds} rounds")
    show("bare subprocess.run", bare)
    show("our call", ours)
    return goal(statistics.median(ours) - statistics.median(bare), CALL_GOAL)


def verified_off(board: ipmi_boards.Board, rounds: int) -> bool:
    """Measure what a proof takes over the agent's own off; return whether the goal is met."""
    configuration = boards_configuration([board], power_wait=0)
    path = locate_fence_agent("fence_ipmilan")
    alone, proved = [], []
    for _round in range(rounds):
        board.switch_on()
        alone.append(seconds(lambda: run_bare(path, "off", board.parameters)))
        board.switch_on()
        proved.append(seconds(lambda: prove_off(configuration)))
    print(f"off of a simulated board, power_wait=0, {rounds} rounds")
    show("the agent's own off", alone)
    show("verified off", proved)
    return goal(statistics.median(proved) - statistics.median(alone), PROOF_GOAL)


def many_that_wait(count: int, rounds: int) -> bool:
    """Measure one device that waits and *count* of them; return whether the goal is met."""
    with tempfile.TemporaryDirectory(prefix="holdfast-benchmark-") as name:
        folder = Path(name)
        agent = folder / "fence_waiting"
        agent.write_text(WAITING_AGENT)
        agent.chmod(0o755)
        configuration = waiting_configuration(folder, agent, count)
        one, many = [], []
        for _round in range(rounds):
            for times, nodes in ((one, ["n1"]), (many, list(configuration.levels))):
                for node in nodes:
                    (folder / node / "power").write_text("on\n")
                times.append(seconds(lambda nodes=nodes: fence(configuration, nodes)))
    print(f"devices that wait (0.2 s a question, 2.5 s a switch), {rounds} rounds")
    show("1 device", one)
    show(f"{count} devices, one task", many)
    return goal(statistics.median(many) / statistics.median(one), MANY_GOAL, " times")


def many_boards(count: int) -> None:
    """Measure one simulated board and *count* of them, with the agent's own power_wait of 2 s."""
    with ipmi_boards.boards(count) as made:
        configuration = boards_configuration(made, power_wait=2)
        processor = processor_seconds()
        one = seconds(lambda: fence(configuration, ["n1"]))
        processor = processor_seconds() - processor
        made[0].switch_on()
        many = seconds(lambda: fence(configuration, list(configuration.levels)))
        running = sum(board.machine_runs for board in made)
    if running:
        raise RuntimeError(f"{running} machines still run")
    cores = len(os.sched_getaffinity(0))
    least = count * processor / cores
    print(f"simulated boards by fence_ipmilan, power_wait=2, on {cores} processors")
    print(f"  1 board {one:6.2f} s, of it {processor:.2f} s of processor for its agents")
    print(f"  {count} boards, one task {many:6.2f} s, {many / one:.1f} times as long")
    print(f"  the agents of {count} boards need at least {least:.2f} s of these processors")


def waiting_configuration(folder: Path, agent: Path, count: int) -> FenceConfiguration:
    """Return *count* nodes with a waiting device each."""
    names = [f"n{number}" for number in range(1, count + 1)]
    for name in names:
        (folder / name).mkdir()
    return configured(
        {
            name: {"agent": str(agent), "parameters": {"folder": str(folder / name)}}
            for name in names
        }
    )


def boards_configuration(made: Sequence[ipmi_boards.Board], power_wait: int) -> FenceConfiguration:
    """Return a node for each board."""
    return configured(
        {
            f"n{number}": {
                "agent": "fence_ipmilan",
                "parameters": {**board.parameters, "power_wait": power_wait},
            }
            for number, board in enumerate(made, 1)
        }
    )


def configured(devices: Mapping[str, Mapping[str, Any]]) -> FenceConfiguration:
    """Return a configuration in which each node has the device of its own name."""
    return parse_fence_configuration(
        {
            "devices": {name: {**one, "timeout": TIMEOUT} for name, one in devices.items()},
            "nodes": {name: {"levels": [[{"device": name}]]} for name in devices},
        }
    )


def fence(configuration: FenceConfiguration, nodes: Sequence[str]) -> None:
    """Switch *nodes* off as one task of the module ``fence`` does."""
    result = operate(configuration, nodes, "off", check=False)
    if result.failure or len(result.values["nodes"]) != len(nodes):
        raise RuntimeError(result.failure or "not all nodes were fenced")


def prove_off(configuration: FenceConfiguration) -> None:
    """Switch the one node off."""
    result = power_off(configuration, "n1")
    if not result.confirmed:
        raise RuntimeError(result.reason)


def run_bare(path: str, action: str, parameters: Mapping[str, object]) -> None:
    """Call a fence agent without anything of ours."""
    lines = "".join(f"{name}={value}\n" for name, value in parameters.items())
    done = subprocess.run(
        [path],
        input=f"action={action}\n{lines}".encode(),
        capture_output=True,
        timeout=TIMEOUT,
        env=fence_environment(),
        check=False,
    )
    if done.returncode not in (0, 2):
        raise RuntimeError(done.stderr.decode(errors="replace"))


def processor_seconds() -> float:
    """Return the processor time of this process and of all children that ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def seconds(work: Callable[[], object]) -> float:
    """Return how long *work* takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def show(name: str, times: Sequence[float]) -> None:
    """Print median, fastest and slowest."""
    values = (statistics.median(times), min(times), max(times))
    print("  {:28} median {:6.3f}  min {:6.3f}  max {:6.3f} s".format(name, *values))


def goal(found: float, desired: float, unit: str = " s more") -> bool:
    """Print whether *found* is at most *desired*, and return it."""
    met = found <= desired
    print(f"  {found:.3f}{unit}, goal {desired:g}: {'met' if met else 'MISSED'}")
    return met


if __name__ == "__main__":
    raise SystemExit(main())
