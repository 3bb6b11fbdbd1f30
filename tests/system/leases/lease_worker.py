# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A process that has leases and does with them what it is told; it can be killed without warning.

Called with: backend, lockspace file, leases file, host id.  Reads pickled (method,
arguments) from its standard input and answers with ("ok", result) or ("error", class,
text).  While it waits it renews, as a machine of an embedded cluster does.
"""

from __future__ import annotations

import pickle
import select
import sys

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import HoldfastError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.embedded import (
    EmbeddedLeases,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.sanlock import (
    SanlockLeases,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.sanlock_binding import (
    BindingDaemon,
    load_binding,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.sanlock_command import (
    CommandDaemon,
)


def make(backend, lockspace, leases, host_id):
    if backend == "embedded":
        return EmbeddedLeases(lockspace, leases, host_id)
    daemon = CommandDaemon() if backend == "command" else BindingDaemon(load_binding())
    return SanlockLeases(lockspace, leases, host_id, daemon=daemon)


def main():
    backend, lockspace, leases_path, host_id = sys.argv[1:]
    leases = make(backend, lockspace, leases_path, int(host_id))
    while True:
        if not select.select([sys.stdin.buffer], [], [], 0.5)[0]:
            try:
                leases.renew()
            except HoldfastError:
                pass
            continue
        try:
            method, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            break
        try:
            value = getattr(leases, method)
            answer = ("ok", value(*arguments) if callable(value) else value)
        except HoldfastError as error:
            answer = ("error", type(error).__name__, str(error))
        pickle.dump(answer, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    leases.close()


if __name__ == "__main__":
    main()
