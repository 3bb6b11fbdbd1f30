# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The secrets of services in the files of this node, and whether all nodes have the same.

With a service's definition there is a digest of each of its secret files, keyed with the cluster
key: who can read the shared storage can neither read a secret from it nor try passwords.  It is
made where the service is declared, and each node compares its own files with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ..cluster.model.desired import DesiredState
from ..cluster.model.service import Resource, Service
from ..errors import HoldfastError
from ..ocf.secret_sources import SecretReader
from ..secret_sources import FILE, given_by
from ..storage.authentication import Authenticate, Authentication
from .configuration import NodeConfiguration

SIGNED_AS = "secret of a service"
"""The purpose of a digest's MAC."""

MOST_PROBLEMS = 20
"""How many problems a node reports at most: its record has limited room."""

ANOTHER = (
    "is not the one that the service was declared with; put the same file on all nodes, or declare"
    " the service again"
)


class ServiceSecrets:
    """Reads and compares the secret files of services on this node; not for several threads."""

    def __init__(self, configuration: NodeConfiguration, authenticate: Authenticate) -> None:
        """Remember where secrets are; nothing is read yet."""
        self._node = configuration.node
        self._folder = configuration.secrets_folder
        self._reader = SecretReader(self._folder)
        self._authenticate = authenticate
        self._known: dict[tuple[str, ...], tuple[object, Authentication, str]] = {}
        self._desired: DesiredState | None = None
        self._needed: list[tuple[str, Resource, str]] = []

    def digest(self, service_id: str, resource: str, source: str, value: str) -> str:
        """Return the digest of a secret file, "" without a cluster key.

        Raises an error of the library when the file cannot be read.
        """
        authentication = self._authenticate()
        parts = self._signed(service_id, resource, source, value)
        return authentication.mac(SIGNED_AS, *parts).hex() if authentication.signs else ""

    def signed_again(self, desired: DesiredState) -> DesiredState:
        """Return *desired* with each digest that another key made made with the key that signs now.

        One whose file this node does not have, or has with another content, stays.
        """
        services = dict(desired.services)
        for service, resource, source, digest in _files(desired):
            if digest and not self.problem(service.id, resource, source):
                present = services[service.id]
                made = self.digest(service.id, resource.name, source, resource.parameters[source])
                services[service.id] = replace(
                    present,
                    resources=tuple(
                        replace(one, sources={**one.sources, source: made})
                        if one.name == resource.name
                        else one
                        for one in present.resources
                    ),
                )
        return replace(desired, services=services)

    def problems(self, desired: DesiredState) -> dict[str, str]:
        """Return what is wrong with secret files by ``SERVICE/RESOURCE/PARAMETER``.

        A node on which a service must not run needs no secret of it.
        """
        if desired is not self._desired:
            self._desired, self._known = desired, {}
            self._needed = [
                (service.id, resource, source)
                for service, resource, source, _digest in _files(desired)
                if _may_run(desired, service.id, self._node)
            ]
        found: dict[str, str] = {}
        for service_id, resource, source in self._needed:
            text = self.problem(service_id, resource, source)
            if text and len(found) < MOST_PROBLEMS:
                found[f"{service_id}/{resource.name}/{source}"] = text
        return found

    def problem(self, service_id: str, resource: Resource, source: str) -> str:
        """Return what is wrong with one secret file; it is read again only if it was changed."""
        value, digest = resource.parameters.get(source, ""), resource.sources[source]
        key = (service_id, resource.name, source, value, digest)
        version, authentication = _version(self._folder / value), self._authenticate()
        known = self._known.get(key)
        if known is not None and known[0] == version and known[1] is authentication:
            return known[2]
        try:
            parts = self._signed(service_id, resource.name, source, value)
        except HoldfastError as error:
            text = f"{str(error).rstrip('.')}; put it there on each node"
        else:
            same = not authentication.signs or not digest
            same = same or authentication.accepts(_mac(digest), SIGNED_AS, *parts)
            text = "" if same else f"{self._folder / value} {ANOTHER}"
        self._known[key] = (version, authentication, text)
        return text

    def _signed(self, service_id: str, resource: str, source: str, value: str) -> list[bytes]:
        """Return what is under the digest's MAC, beside the cluster's name."""
        secret = self._reader.read(source, value)
        return [one.encode() for one in (service_id, resource, source, secret)]


def _files(desired: DesiredState) -> Iterator[tuple[Service, Resource, str, str]]:
    """Return each secret file of a service, with its parameter and digest.

    A program may print another secret each time; it is not compared.
    """
    for _id, service in sorted(desired.services.items()):
        for resource in service.resources:
            for source, digest in resource.sources.items():
                if given_by(source, FILE):
                    yield service, resource, source, digest


def _mac(digest: str) -> bytes:
    try:
        return bytes.fromhex(digest)
    except ValueError:
        return b""


def _may_run(desired: DesiredState, service_id: str, node: str) -> bool:
    rules = [rule for rule in desired.node_rules.values() if service_id in rule.services]
    return all(node in rule.nodes for rule in rules if rule.strict)


def _version(path: Path) -> object:
    """Return values that change when a file is written or replaced, or its mode is changed."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_ctime_ns, found.st_size, found.st_ino
