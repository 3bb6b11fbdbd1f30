# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""All layouts of a lockspace that sanlock knows."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.leader_record import (  # noqa: E501
    AREA_HOSTS,
    Layout,
)

LAYOUTS = [Layout(*sizes) for sizes in sorted(AREA_HOSTS)]


@pytest.fixture(params=LAYOUTS, ids=[f"{one.sector_size}-{one.area_bytes}" for one in LAYOUTS])
def layout(request):
    return request.param
