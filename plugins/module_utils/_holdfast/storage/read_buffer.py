# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory for large direct reads that are repeated."""

from __future__ import annotations

import mmap
import threading


class ReadBuffer:
    """Memory for large reads, kept from one to the next.

    To give 8 MB their pages one by one takes longer than to read 8 MB.  Huge pages avoid that,
    but only for private memory, which must not be under direct I/O while another thread forks
    (open(2), NOTES on O_DIRECT).  So a process with a single thread gets private memory, any
    other shared memory.
    """

    def __init__(self) -> None:
        """Hold nothing yet."""
        self._memory: mmap.mmap | None = None
        self._private = False

    def of(self, length: int) -> mmap.mmap:
        """Return memory for *length* bytes, the same as before where possible."""
        alone = threading.active_count() == 1
        held = self._memory
        if held is None or len(held) != length or (self._private and not alone):
            self._private = alone
            held = self._memory = _private_memory(length) if alone else mmap.mmap(-1, length)
        return held


def _private_memory(length: int) -> mmap.mmap:
    """Return private memory, of huge pages where the kernel has them."""
    memory = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        memory.madvise(mmap.MADV_HUGEPAGE)
    except (AttributeError, OSError):
        # Python or the kernel may not have them: ordinary pages serve as well.
        pass
    return memory
