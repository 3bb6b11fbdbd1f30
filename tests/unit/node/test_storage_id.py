# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node joins the cluster only on the device that it was deployed on, whatever its name is."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    LeaseError,
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_storage import (
    ClusterStorage,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration_file import (
    from_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.host_lease import (
    join_lockspace,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.device_header import (
    GRAIN,
    Area,
    DeviceHeader,
    encode_header,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.delta_lease import (  # noqa: E501
    initial_lockspace,
)
from ansible_collections.holdfast.ha.tests.loop_device import loop_device
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import (
    CLUSTER,
    create_storage,
    document,
)

OURS = "6fa459ea-ee8a-3ca4-894e-db77e160355e"
OTHERS = "16fd2706-8baf-433b-82eb-8c7fada847da"


def adopt(configuration):
    with closing(ClusterStorage(configuration)) as storage:
        storage.adopt_host_lease()


@pytest.fixture
def device(tmp_path):
    """A device with a lockspace, of a cluster that has the name of ours."""
    area = initial_lockspace(CLUSTER, 2)
    areas = {"lockspace": Area(GRAIN, len(area))}
    header = encode_header(DeviceHeader(CLUSTER, OTHERS, 512, areas)) * 2
    (tmp_path / "image").write_bytes(header.ljust(GRAIN, b"\0") + area)
    with loop_device(tmp_path / "image", 8 * GRAIN) as name:
        yield name


@pytest.mark.parametrize("use", [adopt, join_lockspace], ids=lambda use: use.__name__)
def test_the_device_of_another_cluster_of_the_same_name_is_refused(tmp_path, device, use):
    configuration = from_document(document(tmp_path, storage=device, storage_id=OURS))
    before = Path(device).read_bytes()
    with pytest.raises(StorageError) as error:
        use(configuration)
    assert str(error.value) == (
        f"{device} is not the device on which this node was deployed: it has the id {OTHERS}, not"
        f" {OURS}; attach the right one, or deploy to this node again."
    )
    assert Path(device).read_bytes() == before


@pytest.mark.parametrize("storage_id", [OTHERS, ""], ids=["its own device", "any device"])
def test_on_its_own_device_a_node_goes_on(tmp_path, device, storage_id):
    configuration = from_document(document(tmp_path, storage=device, storage_id=storage_id))
    with pytest.raises(LeaseError):
        adopt(configuration)


@pytest.mark.parametrize("use", [adopt, join_lockspace], ids=lambda use: use.__name__)
def test_a_device_that_is_not_attached_is_told_as_that(tmp_path, use):
    """After a power failure nodes boot before their storage."""
    absent = "/dev/mapper/absent"
    configuration = from_document(document(tmp_path, storage=absent, storage_id=OURS))
    with pytest.raises(StorageError, match=f"^{absent} does not exist; check that the device"):
        use(configuration)


def test_a_folder_in_place_of_the_device_is_refused(tmp_path):
    create_storage(tmp_path)
    configuration = from_document(document(tmp_path, storage_id=OURS))
    with pytest.raises(StorageError, match="it is no device, not 6fa459ea"):
        adopt(configuration)
