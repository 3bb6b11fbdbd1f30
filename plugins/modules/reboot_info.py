#!/usr/bin/python
# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: reboot_info
short_description: Report whether a node needs a reboot after updates
version_added: 0.1.0
author:
  - The holdfast authors (@holdfast)
description:
  - Looks for C(/run/reboot-required), asks C(needs-restarting -r) or else
    C(dnf needs-restarting -r), and looks whether a kernel was installed since the node booted. One
    of them is enough for a reboot to be due, and what is not there is passed over.
  - A newer kernel that existed already when the node booted causes a warning and is no reason,
    since the boot loader starts another one.
  - Where nothing shows it, a warning is given. A container has neither a kernel nor, as a rule, one
    of the commands.
extends_documentation_fragment:
  - holdfast.ha.attributes.info_module
  - holdfast.ha.attributes.no_group
options: {}
"""

EXAMPLES = r"""
- name: Does the node wait for a reboot?
  holdfast.ha.reboot_info:
  become: true
  register: reboot

- name: Reboot it then
  ansible.builtin.reboot:
  become: true
  when: reboot.due
"""

RETURN = r"""
due:
  description: Whether a reboot is due, as far as anything shows it.
  returned: success
  type: bool
  sample: true
known:
  description: Whether anything shows it.
  returned: success
  type: bool
  sample: true
reasons:
  description: Why it is due.
  returned: success
  type: list
  elements: str
  sample:
    - the kernel 6.12.48+deb13-amd64 was installed, and 6.12.43+deb13-amd64 runs
"""

from ..module_utils._holdfast.operator.forecast.outages import reboot_info
from ..module_utils._module import Options, run

OPTIONS = Options()


def main() -> None:
    """Run the module."""
    run(OPTIONS, reboot_info)


if __name__ == "__main__":
    main()
