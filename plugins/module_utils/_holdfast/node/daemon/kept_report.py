# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The copy of a node's last report on its own local disk.

The shared storage can go back in time; what a node has acted on must not be forgotten with it.
So an LRM keeps each report here too, before it acts on it, and the next LRM takes the newer of
both.  The file is for root only.  It survives the end of a daemon; a power cut may take the last
seconds of it, as it is not synced: then the node runs nothing any more.
"""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from ...cluster.model.report import Report, report_document, report_from_document
from ...errors import MALFORMED, StorageError

NAME = "report.json"

MAX_BYTES = 64 << 20
"""No report is larger than the largest copy of a record (storage/records.py)."""


class KeptReport:
    """One node's copy of its report in *folder*; not for several threads."""

    def __init__(self, folder: Path, cluster: str) -> None:
        """Remember where it is; nothing is opened yet.  A copy of another *cluster* is no copy."""
        self._path = folder / NAME
        self._cluster = cluster

    def read(self) -> tuple[int, Report | None]:
        """Return the number of the record and the report; 0 and None if there is none.

        What cannot be understood counts as none: it only is a second copy.
        """
        try:
            if self._path.stat().st_size > MAX_BYTES:
                return 0, None
            document = json.loads(self._path.read_text(encoding="utf-8"))
            if document["cluster"] != self._cluster:
                return 0, None
            return int(document["number"]), report_from_document(document["report"])
        except (OSError, *MALFORMED):
            return 0, None

    def write(self, number: int, report: Report) -> None:
        """Keep *report*, which is record *number* of this node, whole or not at all.

        Raises ``StorageError`` when the local disk does not take it.
        """
        document = {"cluster": self._cluster, "number": number, "report": report_document(report)}
        text = json.dumps(document)
        temporary = ""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(prefix=f".{NAME}.", dir=self._path.parent)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            Path(temporary).replace(self._path)
        except OSError as error:
            with suppress(OSError):
                if temporary:
                    Path(temporary).unlink()
            raise StorageError(f"{self._path} cannot be written: {error.strerror}.") from error
