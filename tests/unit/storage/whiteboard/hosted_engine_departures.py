# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the whiteboard's reader and writer depart from hosted engine's on purpose, and why.

By the name of the case; every case that is not here has to match.
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

GLOBAL_REFUSED_HERE = {
    "web_page_spacing": (
        "hosted engine overlooks a maintenance that is spelt as its page has it; here it is"
        " refused on a board of 4096-byte blocks, so that maintenance is unknown, which holds"
        " everything, instead of silently off"
    ),
}
"""Global reader cases that hosted engine accepts and that are refused here."""

CONTAINED_HERE = {
    "one block holds a non-UTF-8 byte": (
        "hosted engine's whole read fails; here that block is a problem and all others are read"
    ),
    "hostname with one 2-byte UTF-8 char in block 1": (
        "hosted engine counts in characters and loses all later blocks; here blocks are cut by"
        " bytes, and lint says which block harms the others"
    ),
    "file shorter than the 2001-block window": (
        "hosted engine takes the missing end for blank blocks; here the board has as many blocks"
        " as the file, and a file that ends within a block is refused until it is repaired"
    ),
    "5120-byte payload for host 1": (
        "hosted engine writes into the next host's block; here that is refused, and where hosted"
        " engine did it only the block that was hit is a problem"
    ),
    "global_two_keys_peer_bug": (
        "hosted engine writes two keys without a line feed between them; here a global block has"
        " one key, and lint rewrites the other"
    ),
}
"""File level cases: what becomes of a peer's defect here."""
