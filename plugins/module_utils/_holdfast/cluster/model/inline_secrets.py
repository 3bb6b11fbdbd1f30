# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets that are in the definition of a service, and with it on shared storage.

None is declared any more, but those that are stay until they are removed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from ...secrets import has_secret, shown
from .desired import DesiredState
from .service import Resource, Service


def inline_secret_names(service: Service) -> list[str]:
    """Return the parameters of a service that have a secret, as ``RESOURCE.PARAMETER``."""
    return [
        f"{resource.name}.{name}"
        for resource in service.resources
        for name, _value in _secret_parameters(resource)
    ]


def inline_secrets(desired: DesiredState) -> frozenset[str]:
    """Return the values of all parameters that have a secret."""
    return frozenset(
        value
        for service in desired.services.values()
        for resource in service.resources
        for _name, value in _secret_parameters(resource)
    )


def without_inline_secrets(desired: DesiredState, kept: Collection[str]) -> DesiredState:
    """Return *desired* with secrets hidden, but for parameters whose value is in *kept*."""
    return replace(
        desired,
        services={
            service_id: replace(
                service,
                resources=tuple(_without_secrets(one, kept) for one in service.resources),
            )
            for service_id, service in desired.services.items()
        },
    )


def _without_secrets(resource: Resource, kept: Collection[str]) -> Resource:
    hidden = {
        name: str(shown(name, value, resource.secrets))
        for name, value in _secret_parameters(resource)
        if value not in kept
    }
    return replace(resource, parameters={**resource.parameters, **hidden})


def _secret_parameters(resource: Resource) -> Iterator[tuple[str, str]]:
    for name, value in resource.parameters.items():
        # One that is hidden already is none.
        if (
            has_secret(name, value, resource.secrets)
            and shown(name, value, resource.secrets) != value
        ):
            yield name, value
