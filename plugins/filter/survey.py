# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter that makes an AWX survey of a playbook's variables."""

from __future__ import annotations

DOCUMENTATION = r"""
name: survey
short_description: The survey of a playbook for AWX
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Turns the variables that a playbook takes, as an argument spec with descriptions, into the
    survey that AWX shows before the playbook is run.
  - AWX has no question for true and false, which becomes a choice of the two, and none for lists
    and dictionaries, which are answered as YAML.
positional: title
options:
  _input:
    description: The variables, each with C(type), C(description) and what else a spec has.
    type: dict
    required: true
  title:
    description: The name of the survey.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Create a job template with a survey
  awx.awx.job_template:
    name: holdfast status
    survey_enabled: true
    survey_spec: "{{ taken | holdfast.ha.survey('status') }}"
  vars:
    taken:
      status_fail: {type: bool, default: false, description: Fail when something is wrong.}
"""

RETURN = r"""
_value:
  description: The survey as AWX's API takes it.
  type: dict
"""

from ..plugin_utils._surveys import survey


class FilterModule:
    """The filter under its name."""

    def filters(self):
        """Return the filters of this file."""
        return {"survey": survey}
