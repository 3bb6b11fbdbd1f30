# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A resource agent's secrets come from files and programs in the node's folder, and no others."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    AgentError,
    HoldfastError,
    InputError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.metadata import (
    parse_metadata,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.secret_sources import (
    SecretReader,
    sources_in,
)
from ansible_collections.holdfast.ha.tests.unit.ocf.agent_script import METADATA

SECRET = "hunter2 and more"

OWN = METADATA.replace(
    '<parameter name="bare"/>', '<parameter name="mode_file"/><parameter name="bare"/>'
)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "secrets"
    folder.mkdir()
    write(folder / "web", SECRET + "\n")
    return folder


def write(path, text, mode=0o600):
    path.write_text(text)
    path.chmod(mode)


@pytest.mark.parametrize(
    ("parameters", "sources"),
    [
        ({"password_file": "web"}, ("password_file",)),
        ({"password_file": "/FOLDER/web"}, ("password_file",)),
        ({"password_script": "web a b", "bare_file": "x"}, ("password_script", "bare_file")),
        ({"mode_file": "x", "other_file": "x", "password": "1"}, ()),
    ],
)
def test_a_source_is_what_is_no_parameter_but_ends_like_one(folder, parameters, sources):
    given = {name: one.replace("/FOLDER", str(folder)) for name, one in parameters.items()}
    assert sources_in(parse_metadata(OWN), given, folder, "parameters") == sources


@pytest.mark.parametrize(
    "parameters",
    [
        {"password_file": "web", "password": "1"},
        {"password_file": "web", "password_script": "x"},
        {"password_file": "/etc/shadow"},
        {"password_file": "../node.json"},
        {"password_file": "."},
        {"password_script": "/bin/echo x"},
        {"password_script": "'"},
        {"password_script": ""},
    ],
)
def test_no_other_file_is_read_and_no_secret_given_twice(folder, parameters):
    with pytest.raises(InputError, match=r"only one source|the name of a file in"):
        sources_in(parse_metadata(OWN), parameters, folder, "parameters")


def test_the_content_of_the_file_is_the_secret_without_its_last_line_end(folder):
    write(folder / "lines", "a\nb\n\n")
    reader = SecretReader(folder)
    assert reader.read("password_file", "web") == SECRET
    assert reader.read("password_file", "lines") == "a\nb\n"


def test_what_the_program_prints_is_the_secret(folder):
    write(folder / "vault", '#!/bin/sh\necho "of $1 for $2"\n', 0o700)
    assert SecretReader(folder).read("password_script", "vault 'a b' c") == "of a b for c"


@pytest.mark.parametrize(
    ("name", "text", "mode", "why"),
    [
        ("password_file", "x", 0o644, "make it 0600"),
        ("password_file", "a\0b", 0o600, "NUL"),
        ("password_file", None, 0o600, "cannot be read: No such file"),
        ("password_script", "#!/bin/sh\necho x", 0o722, "may be written by others"),
        ("password_script", "#!/bin/sh\necho hunter2; exit 1", 0o700, "exit status 1"),
        ("password_script", "#!/bin/sh\n", 0o700, "printed nothing"),
        ("password_script", None, 0o700, "No such file"),
    ],
)
def test_an_unsafe_or_missing_source_is_named_with_no_part_of_it(folder, name, text, mode, why):
    if text is not None:
        write(folder / "x", text, mode)
    with pytest.raises(AgentError, match=why) as raised:
        SecretReader(folder).read(name, "x")
    assert "hunter2" not in str(raised.value)


def test_a_secret_that_is_lost_is_the_last_one_unless_a_fresh_one_is_needed(folder):
    reader = SecretReader(folder)
    given, sources = {"path": "/x", "password_file": "web"}, ["password_file"]
    whole = {"path": "/x", "password": SECRET}
    assert reader.fill(given, sources, 5.0, fresh=True) == (whole, "")
    (folder / "web").unlink()
    assert reader.fill(given, sources, 5.0, fresh=False) == (whole, "")
    filled, missing = reader.fill(given, sources, 5.0, fresh=True)
    assert filled == {"path": "/x"}
    assert "No such file" in missing
    filled, missing = SecretReader(folder).fill(given, sources, 5.0, fresh=False)
    assert "No such file" in missing


def test_a_record_from_storage_makes_a_node_read_nothing_else(folder):
    reader = SecretReader(folder)
    for name, value in (("password_file", "/etc/passwd"), ("password_script", "/bin/echo x")):
        with pytest.raises(HoldfastError, match="the name of a file in"):
            reader.read(name, value)
