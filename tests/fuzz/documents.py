# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Millions of hostile JSON documents: a parser answers or raises an error of the library.

Documents that are right are changed by their structure: a value becomes one of another type, a
number an extreme one, a key goes, comes twice or gets another name, a part of one document comes
into another.  Some are changed as bytes afterwards, and some are bytes alone.  What a parser of a
record accepts is written and read again, and must be the same.  A plain seeded mutator, like
``decoders.py``: a seed gives the same documents everywhere.

Use: python3 tests/fuzz/documents.py [--count 1000000] [--seed 1] [--only TARGET]
"""

from __future__ import annotations

import argparse
import copy
import importlib.util
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(CHECKOUT / ".collections"))

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (  # noqa: E402
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired_codec import (  # noqa: E402, E501
    desired_document,
    desired_from_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.lease_freeing import (  # noqa: E402, E501
    freeing_from_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.policy import (  # noqa: E402
    policy_from_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (  # noqa: E402
    report_document,
    report_from_document,
    sight_from_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.rules import (  # noqa: E402
    node_rule_from_options,
    service_rule_from_options,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (  # noqa: E402
    service_from_options,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (  # noqa: E402
    NodeStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state_codec import (  # noqa: E402, E501
    state_document,
    state_from_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.documents import (  # noqa: E402
    read_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (  # noqa: E402
    HoldfastError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.rehearsal.report import (  # noqa: E402
    load_report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.topology import (  # noqa: E402
    load_fence_configuration,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_storage import (  # noqa: E402
    _parse_freeing,
    parse_intent,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import (  # noqa: E402
    Member,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration_file import (  # noqa: E402
    from_document,
    load,
    to_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.datagrams import (  # noqa: E402
    Correspondence,
    sources_of,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.heartbeat import (  # noqa: E402
    read_trouble,
    trouble_path,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.own_membership import (  # noqa: E402, E501
    fence_digest,
    places,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.record_guard import (  # noqa: E402, E501
    NAME as KEPT_NAME,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.record_guard import (  # noqa: E402, E501
    KeptReport,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.telemetry import (  # noqa: E402
    read_telemetry,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations.export import (  # noqa: E402, E501
    read_backup,
    restored,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report import (  # noqa: E402
    health,
    history,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.inventory import (  # noqa: E402, E501
    checked_status,
    inventory_groups,
    inventory_variables,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.metrics import (  # noqa: E402
    cluster_samples,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.page import (  # noqa: E402
    render_page,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.text import (  # noqa: E402
    render_text,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.authentication import (  # noqa: E402
    KEY_BYTES,
    Authentication,
    Policy,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.block import (  # noqa: E402, E501
    _decode_health,
)
from ansible_collections.holdfast.ha.tests.fuzz.document_samples import (  # noqa: E402
    BACKUP_CLUSTER,
    samples,
)
from ansible_collections.holdfast.ha.tests.fuzz.no_hang import limit, no_hang  # noqa: E402
from ansible_collections.holdfast.ha.tests.unit.node.sample_status import build  # noqa: E402

EVENT_SOURCE = CHECKOUT / "extensions" / "eda" / "plugins" / "event_source" / "cluster_events.py"

LONGEST = 5.0
"""Seconds after which a document counts as one that hangs its parser."""


@dataclass(frozen=True)
class Target:
    """One parser: its samples, and what reads a document.

    ``refusals`` are the errors that say that a document is refused.
    """

    name: str
    samples: tuple[Any, ...]
    read: Callable[[bytes], object]
    refusals: tuple[type[Exception], ...] = (HoldfastError,)


def fuzz(count: int, seed: int, only: str = "") -> dict[str, tuple[int, int]]:
    """Give *count* hostile documents to the parsers; return how many, and how many were accepted.

    Raises ``RuntimeError`` with the document for any other error than one that refuses it, and for
    a parser that hangs.
    """
    dice = random.Random(seed)
    counts: dict[str, list[int]] = {}
    with tempfile.TemporaryDirectory(dir=_memory()) as folder, no_hang():
        every = [one for one in targets(Path(folder)) if only in one.name]
        pool = [part for target in every for sample in target.samples for part in parts(sample)]
        for _number in range(count):
            target = every[int(dice.random() * len(every))]
            data = hostile(dice, target, pool)
            tried = counts.setdefault(target.name, [0, 0])
            tried[0] += 1
            limit(LONGEST)
            try:
                target.read(data)
                tried[1] += 1
            except target.refusals as error:
                if not str(error):
                    raise RuntimeError(
                        f"{target.name} refuses without a reason: {data!r}"
                    ) from None
            except Exception as error:
                raise RuntimeError(f"{target.name} fails with {error!r} for {data!r}") from error
    return {name: (tried, taken) for name, (tried, taken) in sorted(counts.items())}


def _memory() -> str | None:
    """Return a folder in memory, None without one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


EXTREMES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 1.5, -0.0, "", " ", "n1", "web", [], {}, [[]], [{}], {"": {}}),
    *(2**31, 2**63 - 1, 2**63, 2**64 - 1, -(2**63), 1e28, 5e-324, 253402300800.0, 1e15),
    *("\0", "\n", "\x1b[31m", "\u202e", "\ud83d\ude00", "{{ 1 }}", "../../etc", "-o", "a" * 300),
    *("NaN", "1e999", "9" * 30, "started", "error", "fence", "null", "true", "::1", "/", "/\0"),
    *([None] * 3, ["a"] * 3, [1, 2], [1, "a"], ["n1", 1.0, {}], {"a": None}, {"n1": {}}, {"a": []}),
)
"""Values of every type, and those that decoders and what comes behind them stumble over."""

RAW = (
    *(b"1e999", b"-1e999", b"NaN", b"-Infinity", b"9" * 400, b"1" + b"0" * 5000, b"1E400", b"0e99"),
    *(b"[" * 60, b"{" * 60, b'{"a":' * 45, b"[" * 3000, b"]" * 50, b'"\\ud800"', b'"\\u0000"'),
    *(b"\xff", b"\xef\xbb\xbf", b"\0", b'"', b"\\", b",", b"1_0", b"01", b"+1", b"\xd9\xa1", b"/*"),
)
"""What a document has as bytes alone."""


def parts(value: Any) -> Iterator[Any]:
    """Return a value with all that is in it."""
    yield value
    if isinstance(value, dict):
        for one in value.values():
            yield from parts(one)
    if isinstance(value, list):
        for one in value:
            yield from parts(one)


def hostile(dice: random.Random, target: Target, pool: list[Any]) -> bytes:
    """Return a document for a *target*, changed in one to three places; *pool* has parts of all."""
    kind = dice.random()
    if kind < 0.01:
        return dice.randbytes(int(dice.random() * 200))
    value = json.loads(json.dumps(dice.choice(target.samples)))
    for _change in range(1 + int(dice.random() * 3)):
        value = changed(dice, value, pool)
    data = json.dumps(value, ensure_ascii=dice.random() < 0.5).encode("utf-8", "surrogatepass")
    if kind < 0.8:
        return data
    return damaged(dice, bytearray(data))


def changed(dice: random.Random, value: Any, pool: list[Any]) -> Any:
    """Return *value* with one change somewhere in it."""
    if not isinstance(value, (dict, list)) or not value or dice.random() < 0.05:
        return _another(dice, value, pool)
    holder = value
    while True:
        keys: list[Any] = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = keys[int(dice.random() * len(keys))]
        inner = holder[key]
        if isinstance(inner, (dict, list)) and inner and dice.random() < 0.75:
            holder = inner
            continue
        break
    kind = dice.random()
    if kind < 0.15:
        del holder[key]
    elif kind < 0.3 and isinstance(holder, dict):
        holder[_key(dice, pool)] = holder.pop(key) if dice.random() < 0.5 else holder[key]
    elif kind < 0.35 and isinstance(holder, list):
        holder.extend([inner] * int(dice.random() * 5))
    else:
        holder[key] = _another(dice, inner, pool)
    return value


def _key(dice: random.Random, pool: list[Any]) -> str:
    rows = [
        one for one in (dice.choice(pool) for _try in range(5)) if isinstance(one, dict) and one
    ]
    if rows and dice.random() < 0.7:
        return str(dice.choice(list(rows[0])))
    return str(dice.choice(EXTREMES))


def _another(dice: random.Random, value: Any, pool: list[Any]) -> Any:
    kind = dice.random()
    if kind < 0.6:
        return copy.deepcopy(dice.choice(EXTREMES))
    if kind < 0.85:
        return json.loads(json.dumps(dice.choice(pool)))
    if kind < 0.9:
        for _level in range(int(dice.random() * 50)):
            value = [value] if dice.random() < 0.5 else {"a": value}
        return value
    if isinstance(value, (int, float)):
        return value * dice.choice((-1, 0, 1e6, 1e12, 2))
    return [value] if kind < 0.95 else str(value)[:400]


def damaged(dice: random.Random, data: bytearray) -> bytes:
    """Return *data* with bytes changed, lost or put in."""
    for _change in range(1 + int(dice.random() * 3)):
        place = int(dice.random() * (len(data) + 1))
        kind = dice.random()
        if kind < 0.4:
            data[place:place] = dice.choice(RAW)
        elif kind < 0.6:
            # In place of a value, where most of these are valid as tokens.
            start = data.find(b": ", place)
            end = min(
                (one for one in (data.find(b",", start), data.find(b"}", start)) if one > 0),
                default=-1,
            )
            if 0 < start < end:
                data[start + 2 : end] = dice.choice(RAW)
        elif kind < 0.75:
            del data[place : place + 1 + int(dice.random() * 8)]
        elif kind < 0.9:
            data[place : place + 1] = bytes([int(dice.random() * 256)])
        else:
            del data[place:]
    return bytes(data)


def targets(folder: Path) -> tuple[Target, ...]:
    """Return all parsers; those of files read one in *folder*."""
    known = samples()
    source = _event_source()
    configuration = from_document(known["node"][0])
    members = places(configuration)

    def same(read: Callable[[Any], Any], write: Callable[[Any], Any]) -> Callable[[bytes], object]:
        def check(data: bytes) -> None:
            found = read(read_document(data, "The record"))
            again = read(read_document(json.dumps(write(found)), "The record"))
            if again != found:
                raise AssertionError("it does not read back as it was")

        return check

    def plain(*readers: Callable[[Any], Any]) -> Callable[[bytes], object]:
        def check(data: bytes) -> None:
            value = read_document(data, "The record")
            for read in readers:
                read(value)

        return check

    def file(name: str, read: Callable[[Path], object]) -> Callable[[bytes], object]:
        path = folder / name
        path.touch(0o600)

        def check(data: bytes) -> None:
            path.write_bytes(data)
            read(path)

        return check

    def inventory(value: object) -> None:
        status = checked_status(value)
        inventory_groups(status)
        inventory_variables(status)

    def restore(path: Path) -> None:
        kept = read_backup(path, configuration)
        desired_document(restored(DesiredState(), kept, exact=True))

    def events(data: bytes) -> None:
        status = source.read_status(data.decode("utf-8", "replace"))
        cluster = source.Cluster()
        cluster.look(status, source.drift(status, None))
        for event in cluster.look({**status, "problems": []}):
            for one in event.values():
                if isinstance(one, str) and not one.isprintable():
                    raise AssertionError(f"a control character in {event}")

    def measures(data: bytes) -> None:
        # Lines of metrics, not JSON: the document is what stands in them.
        text = data.decode("utf-8", "replace")
        lines = [
            f'holdfast_x{{cluster="c",node="{text}"}} 1',
            f'holdfast_x{{node="n1"}} {text}',
            text,
        ]
        source.Measures(source.checked({})).look({"n1": "\n".join(lines)})

    def expected(path: Path) -> None:
        status = source.read_status(json.dumps(known["status"][0]))
        source.drift(status, str(path))

    def status(value: object) -> None:
        state = state_from_document(value)
        # Members come from a node's own configuration, whatever a record has.
        nodes = {name: state.nodes.get(name, NodeStatus()) for name in members}
        found = json.loads(json.dumps(build(replace(state, nodes=nodes))))
        shown = [render_text(found, colour=False), render_page(found)]
        shown += [*history.lines(found["events"]), health.judge_health(found).line()]
        for one in shown:
            if not one.replace("\n", "").isprintable():
                raise AssertionError("a control character in a status")
        list(cluster_samples(found))
        inventory(found)

    def datagram(data: bytes) -> object:
        member = Member("n2", 2, "127.0.0.1", 7410)
        key = Authentication(Policy.ENFORCE, "c1", (b"k" * KEY_BYTES,))
        heard = Correspondence("c1", "n1", sources_of([member]), lambda: key)
        return heard.believed(data, member.at(0), 0.0)

    return (
        Target("manager's record", known["state"], same(state_from_document, state_document)),
        Target("report", known["report"], same(report_from_document, report_document)),
        Target("report, shown", known["report"], plain(sight_from_document)),
        Target("configuration", known["wanted"], same(desired_from_document, desired_document)),
        Target("candidate's record", known["crm"], plain(parse_intent, _parse_freeing)),
        Target("freeing", known["freeing"], plain(freeing_from_document)),
        Target("node file", known["node"], file("node.json", lambda path: to_document(load(path)))),
        Target("backup", known["backup"], file("backup.json", restore)),
        Target(
            "fence configuration",
            known["fence"],
            file("fence.json", lambda path: load_fence_configuration(str(path))),
        ),
        Target(
            "fence digest",
            known["fence"],
            file("digest.json", lambda path: fence_digest(path, members)),
        ),
        Target("rehearsals", known["rehearsals"], file("rehearsals.json", load_report)),
        Target(
            "kept report",
            known["kept"],
            file(KEPT_NAME, lambda path: KeptReport(folder, BACKUP_CLUSTER).read()),
        ),
        Target(
            "telemetry",
            known["telemetry"],
            file("telemetry.json", lambda path: read_telemetry(path, 1e9)),
        ),
        Target(
            "trouble",
            known["trouble"],
            file(trouble_path(folder).name, lambda path: read_trouble(folder, 100.0)),
        ),
        Target("datagram", known["datagram"], datagram),
        Target("inventory", known["status"], plain(inventory)),
        Target("status of a record", known["state"], plain(status)),
        Target("event source", known["status"], events, (ValueError,)),
        Target("metrics of the event source", known["trouble"], measures, (ValueError,)),
        Target("expected of the event source", known["expected"], file("expected.yml", expected)),
        Target(
            "health of a block",
            known["health"],
            lambda data: _decode_health(data.decode("utf-8", "replace")),
        ),
        Target("module service", known["services"], plain(service_from_options)),
        Target(
            "module rule",
            known["rules"],
            plain(lambda value: _either(node_rule_from_options, service_rule_from_options, value)),
        ),
        Target("module cluster_maintenance", known["policy"], plain(policy_from_document)),
    )


def _either(first: Callable[[Any], Any], second: Callable[[Any], Any], value: Any) -> None:
    try:
        first(value)
    except HoldfastError:
        second(value)


def _event_source() -> Any:
    specification = importlib.util.spec_from_file_location("cluster_events", EVENT_SOURCE)
    if specification is None or specification.loader is None:
        raise RuntimeError(f"{EVENT_SOURCE} cannot be loaded")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def main() -> int:
    """Fuzz with the arguments of the command line, and print what was done."""
    parser = argparse.ArgumentParser(description="Give hostile documents to every parser.")
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="a part of the name of a target")
    options = parser.parse_args()
    began = time.monotonic()
    counts = fuzz(options.count, options.seed, options.only)
    took = time.monotonic() - began
    for name, (tried, taken) in counts.items():
        print(f"{name:30} {tried:>10} documents, {taken:>10} accepted")
    print(f"{options.count} documents in {took:.1f} s, {options.count / took:.0f} a second")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
