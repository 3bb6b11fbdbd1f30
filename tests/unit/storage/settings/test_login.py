# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a node that boots while its iSCSI storage is away gets it back."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.settings.login import (
    check_login,
)


def test_a_unit_that_gives_up_for_good_is_refused_with_what_to_set():
    (told,) = check_login("Restart=no\nLoadState=loaded\n")
    assert "open-iscsi.service has Restart=no" in told
    assert "set Restart=on-failure and RestartSec=10" in told


@pytest.mark.parametrize(
    "shown",
    [
        "Restart=on-failure\nLoadState=loaded\n",
        "Restart=always\nLoadState=loaded\n",
        # Not a distribution that has this unit.
        "Restart=no\nLoadState=not-found\n",
    ],
)
def test_a_unit_that_is_started_again_or_is_not_there_is_right(shown):
    assert check_login(shown) == []
