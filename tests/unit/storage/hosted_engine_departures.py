# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the whiteboard's reader departs from hosted engine's on purpose, and why.

By the name of the case; every reader case that is not here has to match.
"""

from __future__ import annotations

NO_CHECKSUM = (
    "hosted engine accepts a block without a checksum from agents older than 2013; here nothing"
    " is decided from a block that cannot be checked"
)

REFUSED_HERE = {
    "good_but_in_wrong_slot_2_(embedded_id_1)": (
        "hosted engine never compares the host id with the slot; here a block in a wrong slot is"
        " refused, for it says nothing about the slot's owner"
    ),
    "seven_tokens_no_crc": NO_CHECKSUM,
    "nine_tokens_no_crc": NO_CHECKSUM,
}
"""Reader cases that hosted engine accepts and that are refused here."""
