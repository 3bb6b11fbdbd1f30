# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command that takes hail's place: options, odd input, exit statuses, reasons."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.htools import hail
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.htools.options import (  # noqa: E501
    read_command_line,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.allocate.dedicated import (  # noqa: E501
    _how_many,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.iallocator.request import (  # noqa: E501
    read_request,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.iallocator.text_format import (  # noqa: E501
    read_text,
    write_text,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.version import PACKAGE
from ansible_collections.holdfast.ha.tests.unit.placement.clusters import (
    instance,
    new,
    node,
    policy,
    request,
)
from ansible_collections.holdfast.ha.tests.unit.placement.random_requests import random_request


@pytest.fixture
def run(capsys, tmp_path):
    def run(message, *options):
        path = tmp_path / "request.json"
        path.write_text(message if isinstance(message, str) else json.dumps(message))
        status = hail.main([*options, str(path)])
        return (status, *capsys.readouterr())

    return run


TWO = {name: node() for name in "ab"}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "Invalid JSON"),
        ("nonsense", "Invalid JSON"),
        ('{"a": tru}', "Malformed JSON"),
        ('{"a": NaN}', "Malformed JSON"),
        ('{"a": 1} x', "Invalid tokens at end of JSON string"),
        ("[" * 200000, "nested too deeply"),
        ("[]", "Unable to read JSObject"),
        ("{}", "key 'request' not found, object contains only []"),
    ],
)
def test_what_is_no_request_ends_in_one_clear_sentence(run, text, error):
    status, output, errors = run(text)
    assert (status, output) == (1, "")
    assert error in errors
    assert errors.startswith("Error: ")
    assert errors.count("\n") == 1


def test_a_missing_file_and_a_wrong_number_of_files_are_said(capsys):
    assert hail.main(["/nonexistent"]) == 1
    assert "/nonexistent cannot be read" in capsys.readouterr().err
    assert hail.main([]) == 1
    assert "This program needs an input file." in capsys.readouterr().err
    assert hail.main(["a", "b"]) == 1
    assert "Only one argument is accepted" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--nonsense=1"], "unrecognized option `--nonsense=1'"),
        (["--nonsense", "--save"], "requires an argument FILE\nunrecognized option `--nonsense'"),
        (["-x"], "unrecognized option `-x'"),
        (["-x1"], "unrecognized option `-x'\nunrecognized option `-1'"),
        (["-v-x"], "unrecognized option `--x'"),
        (["--ver"], "ambiguous"),
        (["--save"], "requires an argument FILE"),
        (["-S"], "requires an argument FILE"),
        (["--help=3"], "doesn't allow an argument"),
    ],
)
def test_a_wrong_command_line_is_told_with_the_usage(capsys, arguments, error):
    assert hail.main(arguments) == 2
    printed = capsys.readouterr().err
    assert error in printed
    assert "Usage:" in printed


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--static-kvm-node-memory=x", "--static-kvm-node-memory=5"], "cannot parse string 'x'"),
        (["--mond=x", "--mond=no"], "Invalid choice 'x'"),
        (["--mond="], "Invalid choice ''"),
    ],
)
def test_a_wrong_value_is_said_even_if_a_good_one_follows(run, options, error):
    status, output, errors = run(request(new(), TWO), *options)
    assert (status, output) == (1, "")
    assert errors.startswith("Error while parsing command line arguments:\n")
    assert error in errors


def test_options_may_be_cut_short_joined_and_stand_anywhere():
    settings = read_command_line(
        hail.OPTIONS, ["file", "-vv", "--no-cap", "-Sx", "-p", "--restrict=a,b", "--", "-other"]
    )
    assert settings.files == ["file", "-other"]
    assert settings.given == [
        ("verbose", None),
        ("verbose", None),
        ("no-capacity-checks", None),
        ("save", "x"),
        ("print-nodes", None),
        ("restrict-allocation-to", "a,b"),
    ]


def test_a_dash_is_standard_input(capsys, monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(json.dumps(request(new(), TWO)).encode()))
    monkeypatch.setattr(sys, "stdin", stream)
    assert hail.main(["-"]) == 0
    assert json.loads(capsys.readouterr().out)["result"] == ["b", "a"]


@pytest.mark.parametrize(
    "change",
    [
        {"total_memory": 0},
        {"total_disk": 0},
        {"total_cpus": 0},
        {"ndparams": {"exclusive_storage": False, "spindle_count": 0}},
        {"free_memory": -100000},
        {"free_disk": -5},
        {"total_memory": 10**300},
        {"total_memory": 10**400},
        {"free_memory": 10**400},
        {"reserved_cpus": -3},
    ],
)
@pytest.mark.parametrize("template", ["drbd", "plain", "rbd"])
def test_sizes_of_any_kind_end_in_an_answer_or_an_error(run, change, template):
    nodes = {"a": node(**change), "b": node(), "c": node(**change)}
    there = {"i": instance("drbd", ("a", "b")), "j": instance("plain", ("b",))}
    for asked in (new(template), {"type": "node-evacuate", "instances": ["i"], "evac_mode": "all"}):
        status, output, errors = run(request(asked, nodes, there))
        assert (status, bool(output)) in ((0, True), (1, False))
        assert status == 0 or errors.startswith("Error: ")


def test_names_with_any_characters_come_back_as_they_are(run):
    name = 'ü"\\\n\u0001|,'
    status, output, _errors = run(request({**new(), "name": name}, {name: node(), "b": node()}))
    assert status == 0
    assert json.loads(output)["result"] == ["b", name]


@pytest.mark.parametrize("text", ['{"a" 1}', '{"a": 1.}', '{"a": 1 "b": 2}', '{"a": "\\x"}'])
def test_text_that_is_no_json_ends_in_one_clear_sentence_in_a_process_too(tmp_path, text):
    done = as_process(tmp_path, "hail", text)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: Parsing input IAllocator message: Malformed JSON: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("key", ["total_memory", "total_disk"])
def test_a_size_without_end_is_named_with_its_node(run, key):
    text = json.dumps(request(new(), {"a": node(**{key: "end"}), "b": node()}))
    status, output, errors = run(text.replace('"end"', "1e400"))
    assert (status, output) == (1, "")
    assert f"invalid data for node 'a': key '{key}': expected a size in MiB with an end" in errors


HALF = "\ud800"


def as_process(tmp_path, command, message, *options, **streams):
    """Run *command* as a process of its own, as Ganeti does."""
    path = tmp_path / "request.json"
    path.write_text(message if isinstance(message, str) else json.dumps(message))
    (tmp_path / "holdfast").unlink(missing_ok=True)
    (tmp_path / "holdfast").symlink_to(PACKAGE)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); sys.dont_write_bytecode = True; "
        f"from holdfast.operator.cli.htools.{command} import main_and_exit; "
        "main_and_exit(sys.argv[1:])"
    )
    words = [sys.executable, "-I", "-S", "-c", code, *options, str(path)]
    streams = {"stdout": subprocess.PIPE, **streams}
    return subprocess.run(words, stderr=subprocess.PIPE, text=True, check=False, **streams)


def test_half_of_a_character_in_a_name_comes_back_as_json_writes_it(tmp_path):
    message = request(new("plain"), {f"n{HALF}": node()})
    done = as_process(tmp_path, "hail", message, "--no-capacity-checks")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["result"] == [f"n{HALF}"]
    done = as_process(tmp_path, "hail", message, "-S", str(tmp_path / "saved"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "saved.pre-ialloc cannot be written: '\\ud800' in a name is no text" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
@pytest.mark.parametrize("command", ["hail", "hbal"])
def test_an_answer_that_cannot_be_written_is_said_in_one_sentence(tmp_path, command):
    options = ["--like-hbal", "-I"] if command == "hbal" else []
    message = request(new("plain"), TWO, {"i": instance("drbd", ("a", "b"))})
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = as_process(tmp_path, command, message, *options, stdout=full)
    assert done.returncode == 1
    assert done.stderr.endswith("Error: the answer cannot be written: No space left on device\n")
    assert "Traceback" not in done.stderr
    assert done.stderr.count("Error: ") == 1


def closed(stream):
    """Return what closes *stream* in a process that is about to start."""
    return {"preexec_fn": lambda: os.close(stream)}


@pytest.mark.parametrize("command", ["hail", "hbal"])
@pytest.mark.parametrize("options", [[], ["--help"], ["--version"]])
def test_a_closed_standard_output_is_said_in_one_sentence(tmp_path, command, options):
    options = [*options, "--like-hbal", "-I"] if command == "hbal" else options
    done = as_process(tmp_path, command, request(new("plain"), TWO), *options, **closed(1))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Error: the answer cannot be written: standard output is closed\n"


@pytest.mark.parametrize("command", ["hail", "hbal"])
def test_a_closed_standard_error_stops_no_answer(tmp_path, command):
    options = ["--like-hbal", "-I"] if command == "hbal" else ["-v"]
    nodes = {"a": node(free_memory=10000), "b": node()}
    message = request(new("plain"), nodes, {"i": instance("drbd", ("a", "b"))})
    told = as_process(tmp_path, command, message, *options)
    done = as_process(tmp_path, command, message, *options, **closed(2))
    assert "inconsistent data" in told.stderr
    assert (done.returncode, done.stdout) == (0, told.stdout)


def of_two_groups(asked, **changes):
    """Return a request about two groups of two nodes each, with an instance in the second."""
    nodes = {name: node(group=group, **changes) for name, group in zip("abcd", "gghh")}
    disks = [{"size": 10240, "spindles": 1}]
    message = request({**asked, "disks": disks}, nodes, {"old": instance("plain", ("c",))})
    message["nodegroups"]["h"] = {**message["nodegroups"]["g"], "name": "other"}
    return message


def shown_and_saved(run, message, tmp_path):
    """Return the nodes with their instances, and the names of those saved, after the answer."""
    options = ["--no-capacity-checks", "-pname,plist", "-S", str(tmp_path / "c")]
    status, _output, errors = run(message, *options)
    assert status == 0
    table = errors.partition("Final cluster status:\n")[2].split("\n\n")[0]
    lines = (tmp_path / "c.post-ialloc").read_text().split("\n\n")[2].split("\n")
    return [line.split() for line in table.split("\n")[1:]], [line.split("|")[0] for line in lines]


def test_a_new_instance_is_shown_without_a_number_and_saved_first_as_hail_does(run, tmp_path):
    rows, names = shown_and_saved(run, of_two_groups(new("plain")), tmp_path)
    assert [name for name, _primaries in rows] == ["a", "b", "c", "d"]
    assert [row for row in rows if "-1" in row[1]] == [["d", "[-1]"]]
    assert names == ["new", "old"]


OWN = {
    "ndparams": {"exclusive_storage": True, "spindle_count": 1},
    "total_spindles": 9,
    "free_spindles": 9,
}


@pytest.mark.parametrize(
    ("asked", "changes", "left"),
    [
        ({"group_name": "default"}, {}, (["a", "b"], ["new"])),
        ({"group_name": "other"}, {}, (["c", "d"], ["new", "old"])),
        ({}, OWN, (["c", "d"], ["new", "old"])),
    ],
)
def test_only_the_group_that_was_named_or_has_exclusive_storage_is_left_as_in_hail(
    run, tmp_path, asked, changes, left
):
    message = of_two_groups({**new("plain"), **asked}, **changes)
    rows, names = shown_and_saved(run, message, tmp_path)
    assert ([name for name, _primaries in rows], names) == left


def test_the_instance_on_an_unknown_node_is_named(run):
    status, _output, errors = run(request(new(), TWO, {"i": instance("plain", ("zz",))}))
    assert status == 1
    assert errors == "Error: Unknown node 'zz' for instance i\n"


@pytest.mark.parametrize(
    "asked",
    [
        {"type": "relocate", "name": "i", "required_nodes": 1, "relocate_from": ["b"]},
        {"type": "node-evacuate", "instances": ["i"], "evac_mode": "all"},
        {"type": "change-group", "instances": ["i"], "target_groups": []},
        {"type": "allocate-secondary", "name": "i"},
    ],
)
def test_an_instance_that_the_cluster_named_in_its_place_lacks_is_said(run, asked):
    message = request(asked, TWO, {"i": instance("drbd", ("a", "b"))})
    status, output, errors = run(message, "--simulate=preferred,3,900g,64g,8")
    assert (status, output) == (1, "")
    assert "the request is about 'i', its instance number 1" in errors
    assert "has 0 instances only" in errors


def test_a_mirrored_instance_without_a_second_node_is_no_crash(run):
    there = {"i": instance("drbd", ("a",))}
    for asked in (
        new(),
        {"type": "node-evacuate", "instances": ["i"], "evac_mode": "primary-only"},
        {"type": "relocate", "name": "i", "required_nodes": 1, "relocate_from": []},
        {"type": "allocate-secondary", "name": "i"},
        {"type": "change-group", "instances": ["i"], "target_groups": []},
    ):
        status, output, _errors = run(request(asked, TWO, there))
        assert status == 0
        assert "info" in json.loads(output)


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("secondary-only", "Can't find any good node: "),
        ("all", "Can't find any good nodes for relocation: no nodes available"),
    ],
)
def test_a_mirrored_instance_without_a_second_node_and_without_a_way_out_is_told_as_by_hail(
    run, mode, why
):
    asked = {"type": "node-evacuate", "instances": ["i"], "evac_mode": mode}
    message = request(asked, {"a": node()}, {"i": instance("drbd", ("a",))})
    status, output, _errors = run(message)
    assert status == 0
    assert json.loads(output)["result"][1] == [["i", why]]


def test_of_peers_with_as_much_memory_the_one_that_changed_last_comes_first_as_in_hail(run):
    nodes = {name: node() for name in "abcd"}
    there = {
        name: instance("drbd", (peer, "a"), memory=memory)
        for name, peer, memory in (("i", "b", 2048), ("j", "c", 4096), ("k", "b", 2048))
    }
    asked = {"type": "relocate", "name": "m", "required_nodes": 1, "relocate_from": ["b"]}
    there["m"] = instance("drbd", ("d", "b"))
    for name in "cd":
        nodes[name]["free_disk"] = 5
    message = request(asked, nodes, there)
    _status, _output, errors = run(message, "-pname,peermap", "--no-capacity-checks")
    rows = [line.split() for line in errors.split("\n") if line.startswith(" a")]
    assert rows == [["a", "[(1,4096),(2,4096)]"], ["a", "[(3,4096),(1,4096),(2,4096)]"]]


def test_an_instance_whose_nodes_are_one_and_the_same_is_only_mirrored_there_as_in_hail(run):
    there = {"i": instance("drbd", ("a", "a"))}
    fields = "-pname,imem,ucpu,pcnt,scnt,rmem"
    _status, _output, errors = run(request(new("plain"), TWO, there), fields)
    table = errors.partition("Initial cluster status:\n")[2].split("\n\n")[0].split("\n")
    assert [line.split() for line in table[1:]] == [
        ["a", "0", "1", "0", "1", "4096"],
        ["b", "0", "1", "0", "0", "0"],
    ]


def test_why_names_each_limit_that_a_node_breaks_and_by_how_much(run, tmp_path):
    nodes = {**TWO, "c": node(free_memory=2000, free_disk=5000)}
    path = tmp_path / "why.json"
    status, output, _errors = run(request(new("plain"), nodes), f"--reasons={path}")
    (why,) = json.loads(path.read_text())["instances"]
    assert status == 0
    assert why["nodes"] == json.loads(output)["result"]
    (rejected,) = why["rejected"]
    assert (rejected["node"], rejected["failure"]) == ("c", "FailMem")
    limits = {limit["limit"]: limit["short_by"] for limit in rejected["limits"]}
    assert limits["free memory"] == 2097
    assert limits["free disk"] == 5241
    terms = why["score"]
    assert terms["total_after"] == pytest.approx(sum(terms["after"].values()))
    assert all(other["score"] >= terms["total_after"] - 1e-9 for other in terms["others"])


@pytest.mark.parametrize("seed", range(60))
def test_every_random_request_has_reasons_and_a_text_that_reads_back(run, seed, tmp_path):
    path = tmp_path / "why.json"
    status, output, _errors = run(random_request(seed), f"--reasons={path}")
    assert status == 0
    assert json.loads(path.read_text())["success"] == json.loads(output)["success"]
    cluster, _asked, _warnings = read_request(json.dumps(random_request(seed)), 4096)
    text = write_text(cluster)
    again = read_text(text)[0]
    assert write_text(again) == text
    kept = (
        "name",
        "memory",
        "disk",
        "vcpus",
        "state",
        "template",
        "tags",
        "spindle_use",
        "spindles",
    )
    for one, other in zip(cluster.instances(), again.instances()):
        assert [getattr(one, field) for field in kept] == [getattr(other, field) for field in kept]


def test_how_many_fit_is_what_adding_them_one_by_one_gives():
    sizes = policy()["std"]
    nodes = {
        str(cpus): node(total_cpus=cpus, free_memory=memory, free_disk=disk)
        for cpus, memory, disk in (
            (1, 61440, 10**6),
            (16, 1000, 10**6),
            (16, 61440, 7),
            (3, 50, 50),
        )
    }
    message = request(new("plain"), nodes)
    message["nodegroups"]["g"]["ipolicy"] = policy(
        minmax=[{"min": {**sizes, "memory-size": 7, "disk-size": 3, "cpu-count": 1}, "max": sizes}]
    )
    cluster, _asked, _warnings = read_request(json.dumps(message), 4096)
    for each in cluster.nodes:
        least = each.policy.ranges[0][0]
        count = 0
        while (
            each.unallocated - (count + 1) * least.memory > 0
            and each.free_disk - (count + 1) * least.disk > 0
            and (each.used_cpus + count + 1) / each.total_cpus <= each.policy.vcpu_ratio
            and each.used_spindles + (count + 1) * least.spindles <= each.high_spindles
        ):
            count += 1
        assert _how_many(each, least) == count


def test_the_start_pulls_in_nothing_heavy(tmp_path):
    path = tmp_path / "request.json"
    path.write_text(json.dumps(request(new(), TWO)))
    (tmp_path / "holdfast").symlink_to(PACKAGE)
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from holdfast.operator.cli.htools.hail import main\n"
        f"status = main([{str(path)!r}])\n"
        "heavy = {'argparse', 'json', 're', 'typing', 'dataclasses', 'pathlib'}\n"
        "heavy &= set(sys.modules)\n"
        "sys.stderr.write(','.join(sorted(heavy)))\n"
        "raise SystemExit(status)\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert done.stderr == ""
    assert json.loads(done.stdout)["success"]
