# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster key for those who hand it out, and what it has signed.

A new key is brought in without a restart: each node first accepts it, then signs with it, and at
last no longer accepts the old one.  Between the second step and the third, everything on the
storage is signed again: records by the daemons, the configuration by ``sign``.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from ... import names
from ...errors import InputError, StorageError
from ...node import record_faults
from ...node.cluster_key import fingerprint, keys_text, make_key, parse_keys, read_keys
from ...node.cluster_storage import ClusterStorage
from ...node.configuration import NodeConfiguration
from ...node.service_secrets import ServiceSecrets
from ...result import Result
from ...storage.whole_file import write_text
from .change import change_desired
from .node_files import make_folder


def declare_key(options: Mapping[str, Any], check: bool) -> Result:
    """Write the keys into the node's file; the operation of the module ``cluster_key``.

    Without keys the file stays as it is; if there is none, a new key is made.
    """
    path = names.absolute_path(options["path"], "path")
    before = _present(path)
    keys = _given(options["keys"], path) if options["keys"] else before or (make_key(),)
    changed = keys != before
    if changed and not check:
        make_folder(path.parent)
        write_text(path, keys_text(keys), mode=0o600)
    # In check mode a new key is another one than the key that would be made.
    told = [] if check and not (options["keys"] or before) else list(map(fingerprint, keys))
    return Result(
        changed,
        {"path": str(path), "fingerprints": told},
        {"fingerprints": list(map(fingerprint, before))},
        {"fingerprints": told},
    )


def _given(keys: list[str], path: Path) -> tuple[bytes, ...]:
    try:
        return parse_keys("\n".join(keys), str(path))
    except StorageError:
        expected = "one or two different keys of 64 hexadecimal digits in lower case"
        raise InputError("keys", f"{len(keys)} keys", expected) from None


def _present(path: Path) -> tuple[bytes, ...]:
    """Return the keys in the file, none if it has to be written again."""
    try:
        return read_keys(path)
    except StorageError:
        return ()


def key_document(configuration: NodeConfiguration) -> dict[str, Any]:
    """Return the policy, the fingerprints of this node's keys, and what they did not sign."""
    with closing(ClusterStorage(configuration)) as storage:
        keys = storage.key.authentication().keys
        return {
            "policy": configuration.authentication.value,
            "fingerprints": list(map(fingerprint, keys)),
            "not_signed": record_faults.not_signed(storage),
            "not_authentic": record_faults.not_authentic(storage, storage.board.read()),
        }


def sign_configuration(configuration: NodeConfiguration) -> bool:
    """Sign this node's record of the configuration with the key that signs now, if it is not yet.

    The newest configuration is written into this node's slot with the next version, and the
    digests of secrets in it are made again.
    """
    with closing(ClusterStorage(configuration)) as storage:
        if record_faults.is_own_configuration_signed(storage):
            return False
        secrets = ServiceSecrets(configuration, storage.key.authentication)
        change_desired(configuration, secrets.signed_again, check=False, again=True)
    return True
