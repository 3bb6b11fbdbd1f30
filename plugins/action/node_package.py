# Copyright: 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Install the library of this collection on a node as one file.

The archive is the same, byte for byte, for the same sources, so that the copy
action behind it can tell whether anything changed, show it in check mode, and
replace the file as a whole.
"""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
import zipfile
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

PACKAGE = "holdfast"
LIBRARY = Path(__file__).resolve().parent.parent / "module_utils" / "_holdfast"
FIXED_DATE = (2026, 1, 1, 0, 0, 0)


def archive(library: Path) -> bytes:
    """Return the library as a zip archive in which it is the package ``holdfast``."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(library.rglob("*.py")):
            name = f"{PACKAGE}/{path.relative_to(library).as_posix()}"
            entry = zipfile.ZipInfo(name, FIXED_DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            file.writestr(entry, path.read_bytes())
    return buffer.getvalue()


class ActionModule(ActionBase):
    """Builds the archive on the controller and hands it to the copy action."""

    TRANSFERS_FILES = True
    _VALID_ARGS = frozenset({"dest"})

    def run(self, tmp=None, task_vars=None):
        """Install the package and return the copy action's result with the hash of its content."""
        result = super().run(tmp, task_vars)
        dest = self._task.args.get("dest")
        if not dest:
            raise AnsibleActionFail(
                "dest: a path is needed, such as /usr/lib/holdfast/holdfast.pyz."
            )
        content = archive(LIBRARY)
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
