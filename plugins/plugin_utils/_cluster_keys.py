# Copyright 2026 The holdfast authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which cluster key the nodes are to have, and the steps to another one.

No error here has a key in its text.
"""

from __future__ import annotations

from collections.abc import Sequence

from ansible.errors import AnsibleFilterError

from ..module_utils._holdfast.errors import StorageError
from ..module_utils._holdfast.node.cluster_key import parse_keys


def cluster_keys(files: Sequence[str], given: Sequence[str], new: str) -> list[str]:
    """Return the keys for all nodes: those *given*, those that the nodes have, or a *new* one.

    *files* are the contents of the key files that nodes have.
    """
    if given:
        return _keys("\n".join(given), "holdfast_cluster_keys")
    found = {tuple(_keys(text, "/etc/holdfast/cluster.key")) for text in files}
    if len(found) > 1:
        raise AnsibleFilterError(
            "The nodes have different cluster keys. If an exchange of the key was interrupted, run"
            " the playbook cluster_key again; or say which one is right, with"
            " holdfast_cluster_keys."
        )
    return list(found.pop()) if found else [new]


def cluster_key_steps(files: Sequence[str], new: str) -> list[list[str]]:
    """Return the keys that all nodes get, step by step, to exchange their key for a *new* one.

    Before each step all that is on the storage is signed with the first key of the last step.  An
    exchange that was interrupted left some nodes with two keys.  If one of them is common to all,
    it has signed everything, and it is where the steps begin; if both are, the exchange is ended.
    """
    _keys(new, "holdfast_next_cluster_key")
    every = [_keys(text, "/etc/holdfast/cluster.key") for text in files]
    common = [key for key in every[0] if all(key in keys for keys in every)] if every else []
    if not common:
        raise AnsibleFilterError(
            "The nodes have no cluster key in common, so they do not believe each other: run the"
            " playbook deploy with holdfast_cluster_keys."
        )
    if len(common) > 1:
        return [common, common[:1]]
    (old,) = common
    begin = [[old]] if any(len(keys) > 1 for keys in every) else []
    return begin if new == old else [*begin, [old, new], [new, old], [new]]


def _keys(text: str, where: str) -> list[str]:
    try:
        return [key.hex() for key in parse_keys(text, where)]
    except StorageError as error:
        raise AnsibleFilterError(str(error)) from None
