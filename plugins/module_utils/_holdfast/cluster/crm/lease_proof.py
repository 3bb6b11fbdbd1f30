# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a host lease that ran out proves that its node is dead.

It is a proof because the node's watchdog resets the node before the lease counts as dead.  The
watchdog of a virtual machine is usually emulated: it stops while the hypervisor pauses the
machine, and the machine still runs its services when it resumes.
"""

from __future__ import annotations

from typing import Optional

from ..model.report import Report

RAN_OUT = "its host lease ran out, but that does not prove it dead"

REMEDY = (
    "repair its fence device or restart the node; set lease_proof to true for it only if its"
    " watchdog resets it also while it is paused"
)


def why_no_proof(lease_proof: Optional[bool], report: Optional[Report]) -> str:
    """Return why a host lease that ran out behind a watchdog proves nothing; empty if it does.

    *lease_proof* is the node's setting, None for automatic.  *report* is the node's last report,
    None if it cannot be read.  An LRM of a version that did not report ``virtual`` counts as one
    on a physical machine.
    """
    if lease_proof is True:
        return ""
    if lease_proof is False:
        return f"{RAN_OUT}: lease_proof is false for it; {REMEDY}"
    if report is None:
        return f"{RAN_OUT}: its report cannot be read, so it may be a virtual machine; {REMEDY}"
    if report.virtual:
        return (
            f"{RAN_OUT}: it is a virtual machine ({report.virtual}), whose watchdog may stop while"
            f" it is paused; {REMEDY}"
        )
    return ""
