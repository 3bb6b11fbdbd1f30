# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Install the library of this collection on a node as one file.

The copy action behind it tells from the content whether anything changed, shows it in
check mode, and replaces the file as a whole.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from ansible.plugins.action import ActionBase

from ..module_utils._holdfast.errors import InputError
from ..module_utils._holdfast.names import absolute_path
from ..module_utils._holdfast.operator.cli.install import library_archive


class ActionModule(ActionBase):
    """Builds the archive on the controller and hands it to the copy action."""

    TRANSFERS_FILES = True
    _VALID_ARGS = frozenset({"dest"})

    def run(self, tmp=None, task_vars=None):
        """Install the package and return the copy action's result with the hash of its content."""
        result = super().run(tmp, task_vars)
        dest = self._task.args.get("dest")
        try:
            absolute_path(dest, "dest")
        except InputError as error:
            # Returned, not raised: before ansible-core 2.19 a task could not expect it otherwise.
            return {**result, "failed": True, "msg": str(error)}
        content = library_archive()
        descriptor, source = tempfile.mkstemp(suffix=".pyz")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            result.update(self._copy(source, dest, task_vars))
        finally:
            Path(source).unlink()
        result["content_hash"] = hashlib.sha256(content).hexdigest()
        return result

    def _copy(self, source, dest, task_vars):
        task = self._task.copy()
        task.args = {"src": source, "dest": dest, "mode": "0644"}
        action = self._shared_loader_obj.action_loader.get(
            "ansible.legacy.copy",
            task=task,
            connection=self._connection,
            play_context=self._play_context,
            loader=self._loader,
            templar=self._templar,
            shared_loader_obj=self._shared_loader_obj,
        )
        return action.run(task_vars=task_vars)
