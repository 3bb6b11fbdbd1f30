# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What resource agents make of a service that is being declared, before anything is written.

The agents of this node are called: for their metadata, and with ``validate-all`` for what is new or
changed.  A resource that is declared already is not validated again, so that declaring a thousand
services again calls each agent once, and does not fail because something is missing on this node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from ...cluster.model.allowed_agents import why_not_allowed
from ...cluster.model.desired import DesiredState
from ...cluster.model.service import Resource, Service
from ...errors import AgentError, HoldfastError, InputError
from ...node.cluster_key import ClusterKey
from ...node.configuration import NodeConfiguration
from ...node.daemon.agent_work import agent_extras
from ...node.service_secrets import ServiceSecrets
from ...ocf.agent import AgentCall, locate, parse_agent
from ...ocf.call import INSTALLED, UNIMPLEMENTED, call
from ...ocf.metadata import AgentMetadata, check_parameters, load_metadata, require_api
from ...ocf.secret_sources import SecretReader, parameter_of, sources_in
from ...secret_sources import FILE, given_by
from ...secrets import HIDDEN, has_secret, shown

PARAMETERS = "resources.parameters"

MIGRATION = ("migrate_to", "migrate_from")
"""The actions that an agent needs for a live migration (OCF 1.1, Actions)."""

VALIDATE = "validate-all"

LEAST_WAIT = 20.0
"""Seconds that a validation gets at least; agents advise from 0.5 on, for a node at rest."""


class Agents:
    """The resource agents of this node.

    ``known`` has the metadata of those that were asked, by names such as ``ocf:heartbeat:IPaddr2``.
    """

    def __init__(self, configuration: NodeConfiguration) -> None:
        """Ask no agent yet."""
        self._configuration = configuration
        self.known: dict[str, AgentMetadata] = {}

    def check(
        self, present: DesiredState, service: Service, options: Mapping[str, Any]
    ) -> list[str]:
        """Refuse what the agents of *service* cannot do, and return warnings.

        *service* is what *options* and the *present* configuration make of it.  Resources that are
        not among the options are not checked again, unless they are to migrate.  Raises
        ``InputError`` or ``AgentError``.
        """
        given = bool(options.get("resources"))
        if service.node:
            self._configuration.require_member(service.node)
        refused = why_not_allowed(service.agents, self._configuration.allowed_agents)
        if given and refused:
            expected = f"an agent that {self._configuration.node} may run; {refused}"
            raise InputError("resources.agent", ", ".join(service.agents), expected)
        for resource in service.resources if given or service.live_migration else ():
            metadata = self._metadata(resource.agent)
            if given:
                _check_parameters(metadata, resource, self._configuration)
                _refuse_new_secrets(metadata, service.id, resource, present, self._configuration)
            missing = [one for one in MIGRATION if not metadata.supports(one)]
            if service.live_migration and missing:
                actions = " and ".join(missing)
                expected = f"false for {service.id!r}: {resource.agent} has no action {actions}"
                raise InputError("live_migration", True, expected)
        if not given or not options.get("validate", True):
            return []
        changed = _changed(present.services.get(service.id), service)
        return [told for resource in changed if (told := self._validate(service, resource))]

    def with_sources(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return *options* with the sources of secrets in each resource and their digests.

        They were checked before.  A file that this node cannot read has no digest: the node on
        which the service is to be started says so.
        """
        if options.get("resources") is None:
            return options
        configuration = self._configuration
        secrets = ServiceSecrets(configuration, ClusterKey(configuration).authentication)
        folder = configuration.secrets_folder
        rows = []
        for row in options["resources"]:
            parameters = {str(key): str(one) for key, one in (row.get("parameters") or {}).items()}
            found = sources_in(self.known[row["agent"]], parameters, folder, PARAMETERS)
            sources = dict.fromkeys(found, "")
            for source in sources:
                if given_by(source, FILE):
                    with suppress(HoldfastError):
                        value = parameters[source]
                        sources[source] = secrets.digest(
                            options["name"], row["name"], source, value
                        )
            rows.append({**row, "sources": sources})
        return {**options, "resources": rows}

    def _metadata(self, agent: str) -> AgentMetadata:
        """Return the metadata of an agent of this node; each is asked once."""
        if agent not in self.known:
            name = parse_agent(agent, "resources.agent")
            path = locate(name, self._configuration.agent_directories)
            metadata = load_metadata(path, agent=name)
            require_api(metadata, agent)
            self.known[agent] = metadata
        return self.known[agent]

    def _validate(self, service: Service, resource: Resource) -> str:
        """Call ``validate-all``, which changes nothing; return a warning, or "".

        Raises ``AgentError`` when the agent refuses the parameters.  That a program or file is
        missing is a warning: agents look for these on this node, and with level 0 too, although
        the service may be for other nodes, or its storage not be mounted yet.
        """
        metadata = self.known[resource.agent]
        if not metadata.supports(VALIDATE):
            return ""
        agent = parse_agent(resource.agent)
        about = f"resource {resource.name!r} of service {service.id!r} ({agent})"
        folder = self._configuration.secrets_folder
        sources = sources_in(metadata, resource.parameters, folder, PARAMETERS)
        parameters, missing = SecretReader(folder).fill(
            resource.parameters, sources, LEAST_WAIT, fresh=True
        )
        if missing:
            return f"{self._configuration.node} cannot validate {about}: {missing}"
        request = AgentCall(
            agent,
            VALIDATE,
            instance=f"{service.id}.{resource.name}",
            timeout=max(LEAST_WAIT, metadata.advised_timeout(VALIDATE)),
            parameters=parameters,
            node_name=self._configuration.node,
            run_directory=str(self._configuration.run_directory),
            extra=agent_extras(self._configuration),
            secrets=(*resource.secrets, *map(parameter_of, sources)),
        )
        result = call(locate(agent, self._configuration.agent_directories), request)
        if result.succeeded or result.code == UNIMPLEMENTED:
            return ""
        about = f"{about}: {result}"
        if result.exit_status is None or result.code == INSTALLED:
            return f"{self._configuration.node} cannot validate {about}."
        raise AgentError(
            f"The resource agent on {self._configuration.node} refuses {about}. Correct its"
            " parameters; or declare it with validate=false if they are right on the nodes that"
            " run it."
        )


def _check_parameters(
    metadata: AgentMetadata, resource: Resource, configuration: NodeConfiguration
) -> None:
    sources = sources_in(metadata, resource.parameters, configuration.secrets_folder, PARAMETERS)
    others = {name: one for name, one in resource.parameters.items() if name not in sources}
    check_parameters(metadata, others, PARAMETERS, [parameter_of(one) for one in sources])
    for name in resource.secrets:
        if metadata.parameter(name) is None:
            raise InputError("resources.secrets", name, f"a parameter of {resource.agent}")


def _refuse_new_secrets(
    metadata: AgentMetadata,
    service_id: str,
    resource: Resource,
    present: DesiredState,
    configuration: NodeConfiguration,
) -> None:
    """Raise ``InputError`` for a secret that is not declared yet and would be on shared storage."""
    declared = present.services.get(service_id)
    before = next(
        (one for one in (declared.resources if declared else ()) if one.name == resource.name), None
    )
    known = before.parameters if before is not None else {}
    for name, value in resource.parameters.items():
        parameter = metadata.parameter(name)
        if value == known.get(name) or (parameter is not None and value == parameter.default):
            continue
        if has_secret(name, value, resource.secrets):
            file = f"{service_id}.{resource.name}.{name}"
            raise InputError(
                f"{PARAMETERS}.{name}",
                HIDDEN,
                "no secret, as a declaration is on shared storage: write the value into"
                f" {configuration.secrets_folder / file} on each node, with mode 0600, and declare"
                f" {name}{FILE}: {file} instead",
            )


def refuse_shared_values(
    before: Mapping[str, Service],
    after: Mapping[str, Service],
    known: Mapping[str, AgentMetadata],
) -> None:
    """Raise ``InputError`` if two resources share what their agent calls unique.

    Only resources that are new or changed *after* are refused, and only with *known* metadata.  The
    parameters of a unique group count together (OCF 1.1, unique-group), by their defaults where
    they are not given; but a group of which a resource has none says nothing, as its default may
    be made from the name of the resource.
    """
    users: dict[tuple[str, str, tuple[str | None, ...]], list[tuple[Service, Resource]]] = {}
    for service in after.values():
        for resource in service.resources:
            for group, values in _unique_values(resource, known.get(resource.agent)):
                users.setdefault((resource.agent, group, values), []).append((service, resource))
    for (agent, group, _values), found in users.items():
        if len(found) < 2:
            continue
        names = known[agent].unique_groups()[group]
        for service, resource in found:
            if resource not in _changed(before.get(service.id), service):
                continue
            given = [name for name in names if name in resource.parameters]
            if not given:
                continue
            other, same = next(one for one in found if one != (service, resource))
            value = ", ".join(
                str(shown(name, resource.parameters[name], resource.secrets)) for name in given
            )
            raise InputError(
                f"resources.parameters.{', '.join(given)}",
                value,
                f"for service {service.id!r} a value that no other resource of {agent} has, as the"
                f" agent calls {' with '.join(names)} unique; resource {same.name!r} of service"
                f" {other.id!r} has it. Use another value, or validate=false",
            )


def _unique_values(
    resource: Resource, metadata: AgentMetadata | None
) -> Iterator[tuple[str, tuple[str | None, ...]]]:
    """Yield each unique group of a resource's agent and the values of its parameters."""
    if metadata is None:
        return
    defaults = {one.name: one.default for one in metadata.parameters}
    for group, names in metadata.unique_groups().items():
        yield group, tuple(resource.parameters.get(name, defaults[name]) for name in names)


def _changed(before: Service | None, after: Service) -> list[Resource]:
    """Return the resources whose name, agent or parameters are new."""
    known = [(one.name, one.agent, one.parameters) for one in before.resources] if before else []
    return [one for one in after.resources if (one.name, one.agent, one.parameters) not in known]
