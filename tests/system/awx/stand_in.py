# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for AWX's API: what awx.awx asks of it, with the checks that AWX makes.

Objects are kept by kind and number.  What AWX would refuse is refused here too: a name that is
taken, an object that is not there, a playbook that is not in the project, a survey or a rule of
repetition that is not well made, a variable that the template does not ask for, a link of what
takes none.  Every request that would change something is kept.
"""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

TOKEN = "a-token-that-nobody-may-see"

SINGULAR = {
    "organizations": "organization",
    "credentials": "credential",
    "projects": "project",
    "inventories": "inventory",
    "inventory_sources": "inventory_source",
    "credential_types": "credential_type",
    "execution_environments": "execution_environment",
    "notification_templates": "notification_template",
    "job_templates": "job_template",
    "workflow_job_templates": "workflow_job_template",
    "workflow_job_template_nodes": "workflow_job_template_node",
    "workflow_approval_templates": "workflow_approval_template",
    "schedules": "schedule",
}
UNIFIED = ("projects", "inventory_sources", "job_templates", "workflow_job_templates")
LINKS = {
    "job_templates": ("credentials", "notification_templates_error"),
    "workflow_job_templates": (
        "notification_templates_error",
        "notification_templates_approvals",
    ),
    "workflow_job_template_nodes": ("success_nodes", "failure_nodes", "always_nodes"),
}
"""What may be associated with an object of a kind."""

REFERENCES = {
    "organization": "organizations",
    "inventory": "inventories",
    "project": "projects",
    "source_project": "projects",
    "credential": "credentials",
    "execution_environment": "execution_environments",
    "workflow_job_template": "workflow_job_templates",
}
ANSWERS: dict[str, type | tuple[type, ...]] = {
    "text": str,
    "textarea": str,
    "password": str,
    "multiplechoice": str,
    "multiselect": str,
    "integer": int,
    "float": float,
}


class Refused(Exception):
    """What AWX answers with 400 and a word."""


@dataclass
class StandIn:
    """The objects of an AWX, and what was asked of it."""

    playbooks: frozenset[str]
    objects: dict[str, dict[int, dict[str, Any]]] = field(default_factory=dict)
    links: dict[tuple[str, int, str], list[int]] = field(default_factory=dict)
    surveys: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    changes: list[tuple[str, str, Any]] = field(default_factory=list)
    unwanted: str = ""
    """The name of an object that cannot be made, for a failure half-way."""

    def __post_init__(self) -> None:
        for kind in SINGULAR:
            self.objects[kind] = {}
        self._number = 0
        self._add("organizations", {"name": "Default"})
        self._add("credentials", {"name": "ssh", "organization": 1})

    def named(self, kind: str, name: str) -> dict[str, Any]:
        """Return the one object of a kind with a name."""
        (found,) = (one for one in self.objects[kind].values() if one["name"] == name)
        return found

    def linked(self, kind: str, number: int, link: str) -> list[int]:
        """Return what is associated with an object."""
        return self.links.get((kind, number, link), [])

    def listing(self, kind: str, asked: dict[str, str]) -> dict[str, Any]:
        """Return the objects of a kind that have all values that are *asked* for."""
        if kind == "unified_job_templates":
            rows = [one for each in UNIFIED for one in self.objects[each].values()]
        else:
            rows = list(self.objects[kind].values())
        found = [
            one for one in rows if all(str(one.get(key)) == value for key, value in asked.items())
        ]
        return {"count": len(found), "next": None, "previous": None, "results": found}

    def create(self, kind: str, body: dict[str, Any]) -> dict[str, Any]:
        """Make an object; raise ``Refused`` as AWX would."""
        if self.unwanted and body.get("name") == self.unwanted:
            raise Refused(f"no {self.unwanted} today")
        self._check(kind, body, None)
        return self._add(kind, body)

    def change(self, kind: str, number: int, body: dict[str, Any]) -> dict[str, Any]:
        """Change an object."""
        self._check(kind, {**self.objects[kind][number], **body}, number)
        self.objects[kind][number].update(body)
        return self.objects[kind][number]

    def approve_by(self, number: int, body: dict[str, Any]) -> dict[str, Any]:
        """Make the approval of a step of a workflow."""
        made = self._add("workflow_approval_templates", body)
        node = self.objects["workflow_job_template_nodes"][number]
        node["unified_job_template"] = made["id"]
        node["related"]["unified_job_template"] = made["url"]
        return made

    def set_survey(self, kind: str, number: int, survey: dict[str, Any]) -> None:
        """Keep a survey that is well made, by the rules of AWX's ``_validate_spec_data``."""
        if set(survey) != {"name", "description", "spec"} or not survey["spec"]:
            raise Refused("name, description and spec are needed")
        variables: set[str] = set()
        for one in survey["spec"]:
            for key in ("type", "question_name", "variable", "required"):
                if key not in one:
                    raise Refused(f"{key} is missing")
            if one["type"] not in ANSWERS:
                raise Refused(f"{one['type']} is no kind of question")
            if not one["question_name"] or not one["variable"] or one["variable"] in variables:
                raise Refused(f"{one['variable']}: no name, or twice")
            variables.add(one["variable"])
            default = one.get("default", "")
            if default != "" and not isinstance(default, ANSWERS[one["type"]]):
                raise Refused(f"{one['variable']}: the default is no {one['type']}")
            for key in ("min", "max"):
                if one.get(key) is not None and not isinstance(one[key], int):
                    raise Refused(f"{one['variable']}: {key} is no number")
            choices = one.get("choices", [])
            if one["type"] in ("multiplechoice", "multiselect"):
                if not choices or not all(isinstance(choice, str) for choice in choices):
                    raise Refused(f"{one['variable']}: no choices")
                if default not in ("", *choices):
                    raise Refused(f"{one['variable']}: the default is no choice")
        self.surveys[kind, number] = survey

    def link(self, kind: str, number: int, link: str, body: dict[str, Any]) -> None:
        """Associate, or take away."""
        row = self.links.setdefault((kind, number, link), [])
        if body.get("disassociate"):
            row.remove(body["id"])
        else:
            row.append(body["id"])

    def _add(self, kind: str, body: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        url = f"/api/v2/{kind}/{self._number}/"
        related = {"survey_spec": f"{url}survey_spec/"} if "job_templates" in kind else {}
        made = {
            **{"organization": None, "scm_revision": "", "kind": ""},
            **body,
            **{"id": self._number, "type": SINGULAR[kind], "url": url},
            **{"related": related, "summary_fields": {}},
        }
        self.objects[kind][self._number] = made
        return made

    def _check(self, kind: str, body: dict[str, Any], number: int | None) -> None:
        key = "identifier" if kind == "workflow_job_template_nodes" else "name"
        if not body.get(key):
            raise Refused(f"{key}: may not be empty")
        for other, one in self.objects[kind].items():
            same = all(
                one.get(part) == body.get(part)
                for part in (key, "organization", "workflow_job_template")
            )
            if other != number and same:
                raise Refused(f"{key}: {body[key]} is taken")
        for name, there in REFERENCES.items():
            if body.get(name) not in (None, *self.objects[there]):
                raise Refused(f"{name}: {body[name]} is not there")
        if kind == "job_templates" and body["playbook"] not in self.playbooks:
            raise Refused(f"playbook: {body['playbook']} is not in the project")
        if kind == "schedules":
            self._check_rule(body["rrule"])
        if kind in ("schedules", "workflow_job_template_nodes"):
            self._check_answers(body)

    @staticmethod
    def _check_rule(rule: str) -> None:
        if not re.fullmatch(r"DTSTART:\d{8}T\d{6}Z RRULE:FREQ=[A-Z]+;INTERVAL=\d+", rule):
            raise Refused(f"rrule: {rule}")

    def _check_answers(self, body: dict[str, Any]) -> None:
        """Refuse a variable that the template has no question for."""
        template = body.get("unified_job_template")
        survey = self.surveys.get(("job_templates", template or 0), {"spec": []})
        asked = {one["variable"] for one in survey["spec"]}
        for name in body.get("extra_data") or {}:
            if name not in asked:
                raise Refused(f"{name} is not asked for on launch")


class Server(ThreadingHTTPServer):
    """The stand-in on a port of loopback."""

    daemon_threads = True

    def __init__(self, awx: StandIn) -> None:
        """Listen; nothing is served before ``__enter__``."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self.awx = awx
        self.lock = threading.Lock()
        self._thread = threading.Thread(target=self.serve_forever, daemon=True)

    @property
    def address(self) -> str:
        """Return where it is, for ``CONTROLLER_HOST``."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> Server:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def do_PATCH(self) -> None:
        self._answer("PATCH")

    def log_message(self, *words: object) -> None:
        """Say nothing."""

    def _answer(self, method: str) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size) or b"{}")
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self._send(401, {"detail": "who are you?"})
        address = urlsplit(self.path)
        words = address.path.removeprefix("/api/v2/").strip("/").split("/")
        with self.server.lock:
            if method != "GET":
                self.server.awx.changes.append((method, "/".join(words), body))
            try:
                status, answer = self._act(method, words, dict(parse_qsl(address.query)), body)
            except Refused as error:
                status, answer = 400, {"detail": str(error)}
        return self._send(status, answer)

    def _act(
        self, method: str, words: list[str], asked: dict[str, str], body: dict[str, Any]
    ) -> tuple[int, Any]:
        awx, kind = self.server.awx, words[0]
        if kind not in (*SINGULAR, "unified_job_templates"):
            return 404, {}
        if len(words) == 1:
            if method == "GET":
                return 200, awx.listing(kind, asked)
            return 201, awx.create(kind, body)
        number = int(words[1])
        if number not in awx.objects[kind]:
            return 404, {}
        if len(words) == 2:
            if method == "GET":
                return 200, awx.objects[kind][number]
            return 200, awx.change(kind, number, body)
        if words[2] == "survey_spec" and "job_templates" in kind:
            if method == "GET":
                return 200, awx.surveys.get((kind, number), {})
            awx.set_survey(kind, number, body)
            return 200, {}
        if words[2] == "create_approval_template" and method == "POST":
            return 201, awx.approve_by(number, body)
        if words[2] not in LINKS.get(kind, ()):
            return 404, {}
        if method == "GET":
            rows = [{"id": one} for one in awx.linked(kind, number, words[2])]
            return 200, {"count": len(rows), "next": None, "results": rows}
        awx.link(kind, number, words[2], body)
        return 204, None

    def _send(self, status: int, answer: Any) -> None:
        content = b"" if answer is None else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("X-API-Product-Name", "AWX")
        self.send_header("X-API-Product-Version", "24.6.1")
        self.end_headers()
        self.wfile.write(content)
