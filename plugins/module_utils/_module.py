# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the library as an Ansible module; modules import nothing else of Ansible.

PRIVATE to the collection.  A module states its options, calls the library and returns a
``Result``.  ``run`` builds the ``AnsibleModule``, turns errors of the library into a failed task,
and fills in ``changed`` and the diff, which come from the plan that is applied.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, NoReturn

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ._holdfast.errors import HoldfastError, InputError, of_system
from ._holdfast.names import did_you_mean
from ._holdfast.numbers import check_numbers
from ._holdfast.result import Result
from ._holdfast.secrets import HIDDEN, secret_values
from ._holdfast.text import clean, printable


@dataclass(frozen=True)
class Options:
    """A set of module options with the constraints that belong to them."""

    argument_spec: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    required_if: Sequence[Sequence[Any]] = ()
    required_together: Sequence[Sequence[str]] = ()
    required_one_of: Sequence[Sequence[str]] = ()
    mutually_exclusive: Sequence[Sequence[str]] = ()
    required_by: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def merge(self, *others: Options, **spec: Mapping[str, Any]) -> Options:
        """Return these options with those of *others* and of *spec*; a later one wins by name."""
        every = (self, *others, Options(spec))
        return Options(
            argument_spec={name: row for one in every for name, row in one.argument_spec.items()},
            required_if=[row for one in every for row in one.required_if],
            required_together=[row for one in every for row in one.required_together],
            required_one_of=[row for one in every for row in one.required_one_of],
            mutually_exclusive=[row for one in every for row in one.mutually_exclusive],
            required_by={name: row for one in every for name, row in one.required_by.items()},
        )


NODE_OPTIONS = Options(
    argument_spec={"config": {"type": "path", "default": "/etc/holdfast/node.json"}}
)
"""For modules that act through a node's own configuration file."""


CLUSTER_FILES = Options(
    argument_spec={
        "name": {"type": "str", "required": True},
        "path": {"type": "path", "required": True},
    }
)
"""For modules that act on a cluster's files in a folder; documented in cluster_files."""


RESOURCE_AGENTS = Options(
    argument_spec={
        "agent_directories": {"type": "list", "elements": "path", "aliases": ["directories"]},
        "ocf_root": {"type": "path", "default": "/usr/lib/ocf"},
    }
)
"""For modules that run resource agents; documented in resource_agents."""


MAINTENANCE = Options(
    argument_spec={
        "reason": {"type": "str"},
        "owner": {"type": "str"},
        "until": {"type": "str"},
        "duration": {"type": "float"},
    },
    mutually_exclusive=[["until", "duration"]],
)
"""Why there is a maintenance, by whom, and until when; documented in maintenance."""


class _Module(AnsibleModule):
    """An ``AnsibleModule`` that learns of secrets before it logs how it was called."""

    def __init__(self, prepare: Callable[[AnsibleModule], None] | None, **arguments: Any) -> None:
        """Build the module; *prepare* is called once, before the invocation is logged."""
        self._prepare = prepare
        super().__init__(**arguments)

    def mark_secrets(self) -> None:
        """Call *prepare*, unless that was done already."""
        if self._prepare is not None:
            self._prepare(self)
            # Only now: as long as it has not ended, options may hold secrets nobody knows of.
            self._prepare = None

    def _log_invocation(self) -> None:
        self.mark_secrets()
        super()._log_invocation()

    def fail_json(self, msg: str, **values: Any) -> NoReturn:
        """Fail; options that are not acceptable yet are not repeated: they may hold secrets."""
        if self._prepare is not None:
            values.setdefault("invocation", {"module_args": "not shown, as it may hold secrets"})
        super().fail_json(msg, **values)


def check_rows(module: AnsibleModule, name: str, options: Options) -> None:
    """Check each entry of the list option *name* as a module with *options* would, or fail.

    A list that was not given stays null, and an option of an entry that is null was not given.
    """
    if module.params[name] is None:
        return
    validator = _validator(options)
    checked = []
    for number, row in enumerate(module.params[name], start=1):
        told = f"{name}[{number if row.get('name') is None else row['name']}]"
        checked.append(_checked(module, told, row, validator))
    module.params[name] = checked


def check_dict(module: AnsibleModule, name: str, options: Options) -> None:
    """Check the dictionary option *name* as a module with *options* would, or fail.

    A dictionary that was not given stays null, and an option in it that is null was not given.
    """
    if module.params[name] is not None:
        module.params[name] = _checked(module, name, module.params[name], _validator(options))


def _validator(options: Options) -> ArgumentSpecValidator:
    """Return the validator for options inside of an option of a module."""
    return ArgumentSpecValidator(
        {key: dict(spec) for key, spec in options.argument_spec.items()},
        mutually_exclusive=[list(row) for row in options.mutually_exclusive],
        required_if=[list(row) for row in options.required_if],
    )


def _checked(
    module: AnsibleModule, told: str, row: Mapping[str, Any], validator: ArgumentSpecValidator
) -> Mapping[str, Any]:
    """Return *row* with its types and defaults, or fail; *told* is its name in errors."""
    result = validator.validate({key: value for key, value in row.items() if value is not None})
    for wrong in sorted(str(key) for key in result.unsupported_parameters):
        known = sorted(validator.argument_spec)
        expected = f"one of {', '.join(known)}{did_you_mean(wrong, known)}"
        module.fail_json(msg=str(InputError(told, wrong, expected)))
    if result.error_messages:
        module.fail_json(msg=f"{told}: {result.error_messages[0]}.")
    checked: Mapping[str, Any] = result.validated_parameters
    return checked


def hide_agent_secrets(
    module: AnsibleModule, parameters: object, named: Sequence[str] = ()
) -> None:
    """Keep the secrets among the *parameters* of an agent, and those *named*, from being shown."""
    if isinstance(parameters, Mapping):
        # HIDDEN replaces a secret in an export: it is no secret, and is in every diff.
        for value in {*secret_values(parameters, named)} - {HIDDEN}:
            # The log has the parameters as Python prints a dictionary.
            module.no_log_values.update({value, repr(value)[1:-1]})


def run(
    options: Options,
    act: Callable[[Mapping[str, Any], bool], Result],
    prepare: Callable[[AnsibleModule], None] | None = None,
) -> None:
    """Run a module: call *act* with its options and whether this is check mode.

    *prepare* may mark secrets (``module.no_log_values``) before anything runs.  An error of the
    library fails the task with the error's text.
    """
    module = _Module(
        prepare,
        argument_spec={name: dict(spec) for name, spec in options.argument_spec.items()},
        required_if=[list(row) for row in options.required_if],
        required_together=[list(row) for row in options.required_together],
        required_one_of=[list(row) for row in options.required_one_of],
        mutually_exclusive=[list(row) for row in options.mutually_exclusive],
        required_by={name: list(row) for name, row in options.required_by.items()},
        supports_check_mode=True,
    )
    module.mark_secrets()
    try:
        check_numbers(module.params)
        result = act(module.params, module.check_mode)
    except HoldfastError as error:
        module.fail_json(msg=printable(str(error)))
    except OSError as error:
        # Such as a path that is too long for the system.
        module.fail_json(msg=printable(str(of_system(error))))
    for warning in result.warnings:
        module.warn(clean(warning))
    values = _json_data(dict(result.values))
    if module._diff and (result.before is not None or result.after is not None):
        values["diff"] = {"before": _text(result.before), "after": _text(result.after)}
    if result.failure:
        module.fail_json(msg=printable(result.failure), changed=result.changed, **values)
    module.exit_json(changed=result.changed, **values)


def _json_data(values: dict[str, Any]) -> dict[str, Any]:
    """Return plain data with null for infinite numbers and NaN, which JSON does not have."""
    try:
        json.dumps(values, allow_nan=False)
    except (TypeError, ValueError):
        converted: dict[str, Any] = _without_infinity(values)
        return converted
    return values


def _without_infinity(value: Any) -> Any:
    if isinstance(value, float) and not isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _without_infinity(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_infinity(each) for each in value]
    return value


def _text(value: object | None) -> str:
    """Return plain data as stable text, for a diff that a person can read."""
    if value is None:
        return ""
    if isinstance(value, str):
        return printable(value)
    return json.dumps(value, indent=2, sort_keys=True) + "\n"
