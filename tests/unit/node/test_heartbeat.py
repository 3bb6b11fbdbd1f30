# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node says of itself fits into its block, whatever it says."""

from __future__ import annotations

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.heartbeat import (
    TOLD,
    heartbeat,
    report_number,
    trouble_told,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.block import (  # noqa: E501
    decode_host,
    encode_host,
)
from hypothesis import given
from hypothesis import strategies as st


@given(trouble=st.text(max_size=400), drained=st.booleans())
def test_the_longest_block_of_a_node_reads_back_with_its_trouble(trouble, drained):
    block = heartbeat(
        2000, "n" * 63, 1e9, running=99999, drained=drained, report=2**31, trouble=trouble
    )
    read = decode_host(encode_host(block), 2000)
    assert report_number(read) == 2**31
    assert len(trouble_told(read)) == min(len(trouble), TOLD)
    assert (read.score == 0) == bool(drained or trouble)


def test_a_node_without_trouble_tells_none():
    block = heartbeat(1, "n1", 5.0, running=0, drained=False, report=7)
    assert trouble_told(decode_host(encode_host(block), 1)) == trouble_told(None) == ""
