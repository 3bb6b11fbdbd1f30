#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_package
short_description: Install the holdfast library on a node
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Installs the library that the modules of this collection use, as one file. Python imports the
    package C(holdfast) from it.
  - The file is replaced as a whole, and only if its content differs. A running daemon keeps the
    version that it has loaded until it is restarted.
extends_documentation_fragment:
  - holdfast.ha.attributes
  - holdfast.ha.attributes.no_group
attributes:
  action:
    support: full
    description: The archive is built on the controller and copied from there.
  async:
    support: none
    description: The file is copied by the controller, which does not wait in the background.
options:
  dest:
    description:
      - Absolute path of the file.
    type: path
    required: true
"""

EXAMPLES = r"""
- name: Install the library
  holdfast.ha.node_package:
    dest: /usr/lib/holdfast/holdfast.pyz
"""

RETURN = r"""
content_hash:
  description: SHA-256 of the installed content.
  returned: success
  type: str
  sample: 4f0c7d0c3f0b0f6f4d4ee0f5f2b1f3f6e2a8f1c7a4b5d6e7f8091a2b3c4d5e6f
dest:
  description: The file.
  returned: success
  type: str
  sample: /usr/lib/holdfast/holdfast.pyz
"""
