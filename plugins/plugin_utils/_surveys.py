# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a playbook takes, as the questions that AWX asks before it runs it.

PRIVATE to the collection.  A playbook's variables stand once, in ``playbooks/vars``; its
survey is made of them, so that the two cannot differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml
from ansible.errors import AnsibleFilterError

KINDS = {
    "str": "text",
    "path": "text",
    "int": "integer",
    "float": "float",
    "list": "textarea",
    "dict": "textarea",
    "bool": "multiplechoice",
}
"""The kind of question for each type; AWX has none for true and false, nor for a structure."""

TRUTHS = ("true", "false")
LONGEST_TEXT = 1024
LARGEST_NUMBER = 10**9

_ENDS = {
    "text": (1, LONGEST_TEXT),
    "textarea": (1, 64 * LONGEST_TEXT),
    "integer": (-LARGEST_NUMBER, LARGEST_NUMBER),
    "float": (-LARGEST_NUMBER, LARGEST_NUMBER),
}
"""The shortest and the longest text of a kind of question, or its least and largest number.

What was not answered AWX takes for an answer of no length, and gives it to the playbook if a
text may be so short (``awx/main/models/mixins.py``, ``_update_unified_job_kwargs``).
"""


def survey(variables: Mapping[str, Mapping[str, Any]], title: str = "") -> dict[str, Any]:
    """Return the survey of a playbook with these *variables*, as AWX's API takes it.

    The rules are those by which AWX checks a survey (``awx/api/views``,
    ``_validate_spec_data``): a name, a description and for each question its text, its
    variable, its kind, whether it must be answered, and a default of the right type.
    """
    return {
        "name": title,
        "description": "",
        "spec": [_question(name, spec) for name, spec in variables.items()],
    }


def given(values: Mapping[str, Any], variables: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return *values* with each structure that was answered as text read as YAML.

    A survey can ask for no list.  Raises ``AnsibleFilterError`` for a text that is no YAML.
    """
    found = dict(values)
    for name, value in values.items():
        if variables.get(name, {}).get("type") in ("list", "dict") and isinstance(value, str):
            try:
                found[name] = yaml.safe_load(value)
            except yaml.YAMLError as error:
                raise AnsibleFilterError(f"{name}: not accepted; expected YAML: {error}") from error
    return found


def _question(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    kind = "multiplechoice" if "choices" in spec else KINDS[spec["type"]]
    question: dict[str, Any] = {
        "question_name": name,
        "question_description": spec["description"],
        "variable": name,
        "type": kind,
        "required": bool(spec.get("required", False)),
        "default": _default(spec, kind),
    }
    if kind == "multiplechoice":
        choices = spec.get("choices", TRUTHS)
        # Without an answer the playbook's own default counts.
        question["choices"] = [str(one) for one in choices]
    least, most = _ENDS.get(kind, (None, None))
    question["min"], question["max"] = least, most
    return question


def _default(spec: Mapping[str, Any], kind: str) -> Any:
    """Return the default, of the very type that AWX wants for the kind; empty for none."""
    value = spec.get("default", "")
    if value == "":
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return float(value) if kind == "float" else value
