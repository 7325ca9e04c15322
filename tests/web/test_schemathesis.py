"""The gateway held against its own description: requests are made from it, right ones and wrong ones, and each answer is checked.

They go to stores that are thrown away, in an order that is always the same, from every kind of caller.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import pytest
import schemathesis
from schemathesis import Case, GenerationMode, Response
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi import checks
from schemathesis.specs.openapi.schemas import OpenApiSchema

from gateway.operations.openapi import describe
from gateway.operations.operation import Operation
from gateway.operations.registry import OPERATIONS, OWN
from gateway.operations.schema import NO_NUL
from tests.held import Held, left_out_of
from tests.web.test_routes import named

#: What ends something comes last, so that the others meet it.
ALL = tuple(sorted((*OWN, *OPERATIONS), key=lambda each: each.method == "DELETE" or each.name.endswith(".revoke")))
#: No NUL: no text of this wire holds one, as the description says once and for all. No credential that is made up: each
#: request shows one of those that there are, or none.
CONFIG = {"generation": {"allow-x00": False, "deterministic": True, "with-security-parameters": False}}
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
    checks.unsupported_method,
    checks.allow_header_conformance,
]
DISTINCT = "two entries of its list may not be about the same thing"
TOGETHER = "some of its members are needed, or refused, only beside others"
ASKER = "who asks says which members it takes: people name an agent, which a connection must not"
THERE = "what it names has to be there"
WRITTEN = "what is written in it has to be right as well"
#: Operations that refuse what is right by the schema, each with why; all others take it.
TAKE_LESS = {
    "session.refresh": "it always refuses",
    **dict.fromkeys(("agent.create", "agent.update", "agent.create_child", "agent.simulate_policy"), DISTINCT),
    **dict.fromkeys(("platform_template.create", "peer.set_observers"), DISTINCT),
    **dict.fromkeys(("me.reauth_complete", "grant.create", "memory.retag", "authzen.evaluate_all"), TOGETHER),
    **dict.fromkeys(("arp.search_notes", "arp.read_note", "arp.query_knowledge"), TOGETHER),
    **dict.fromkeys(("memory.remember", "memory.list", "memory.list_untagged", "memory.search", "memory.query"), ASKER),
    **dict.fromkeys(("memory.forget", "memory.index", "remote_connection.list"), ASKER),
    **dict.fromkeys(("settings.update", "peer.create", "peer.predict", "peer.ask_me", "peer.preview"), THERE),
    **dict.fromkeys(("policy.create", "policy.update", "policy.test", "policy.replay"), WRITTEN),
}
SECRET = "it takes a secret, and none is made up"
OPERATOR = "a store of two organisations is copied, rewritten and loaded again by its operator alone"
UNSET = "no issuer is set, and no address with a path"
CHANGED = "what it is about was changed by an operation before it"
OTHERS = "what it is about is held of others: of a connection without a peer, or of an agent that does not ask"
#: Operations that answer no first request with success, each with why.
ONLY_REFUSED = {
    "session.refresh": "it always refuses",
    **dict.fromkeys(("session.sign_in", "session.exchange_human_key", "session.exchange_agent_key", "session.claim"), SECRET),
    **dict.fromkeys(("me.reauth_complete", "me.totp_enrol", "me.change_password"), SECRET),
    **dict.fromkeys(("approval.approve", "approval.deny", "peer.ask_me", "peer.withdraw_dispute"), CHANGED),
    **dict.fromkeys(("policy.promote", "policy.rollback"), CHANGED),
    **dict.fromkeys(("peer.read_by_connection", "agent.read_context", "platform.read_approval", "arp.read_note"), OTHERS),
    **dict.fromkeys(("admin.backup", "admin.erase", "admin.reload"), OPERATOR),
    **dict.fromkeys(("resource.metadata", "resource.mcp_metadata", "authzen.metadata_of_path"), UNSET),
}


class Described:
    """A gateway that holds one of everything, and its description with that as examples.

    Left out are members of another way of asking, and what is not held: one request has all the others.
    """

    def __init__(self, held: Held) -> None:
        self.held = held
        described: dict[str, Any] = json.loads(json.dumps(describe(ALL)), object_hook=without_pattern)
        described["components"]["parameters"]["Confirm"]["schema"]["examples"] = [held.gateway.owner.password]
        for found in (found for methods in described["paths"].values() for found in methods.values()):
            self._exemplify(found)
        self.schema: OpenApiSchema = schemathesis.openapi.from_dict(described, config=SchemathesisConfig.from_dict(CONFIG))
        self.schema.app = held.gateway.http.app

    def _exemplify(self, found: dict[str, Any]) -> None:
        name = found["operationId"]
        parameters = found.get("parameters", [])
        parameters[:] = [each for each in parameters if each.get("name") != "cursor"]
        for parameter in parameters:
            if parameter.get("in") == "path" and parameter["name"] != "tenant":
                parameter["schema"]["examples"] = [self.held.example(name, parameter["name"])]
            elif parameter.get("name") == "agent_id":
                parameter["schema"]["examples"] = [self.held.agent.id]
        if "requestBody" in found:
            members = found["requestBody"]["content"]["application/json"]["schema"]["properties"]
            for member in left_out_of(name):
                del members[member]
            for member, value in self.held.body(name).items():
                members[member]["examples"] = [value]

    def cases(self, operation: Operation) -> Iterator[Case]:
        """Right and wrong requests, at the ends of every range and beyond; the first is a right one."""
        found = self.schema[operation.path][operation.method]
        generation = self.schema.config.generation_for(operation=found)
        yield from self.schema.iter_coverage_cases(found, generation_modes=[*GenerationMode], generation_config=generation)

    def check(self, case: Case, key: str | None) -> Response:
        """Send a request and check the answer, in which there is nothing of what was shown to be let in."""
        made = case.call(headers={} if key is None else {"Authorization": f"Bearer {key}"})
        name = case.operation.definition.raw["operationId"]
        case.validate_response(made, checks=CHECKS if name in TAKE_LESS else [*CHECKS, checks.positive_data_acceptance])
        for secret in (key, self.held.gateway.owner.password):
            assert secret is None or secret.encode() not in made.content, case
        return made


def without_pattern(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without the pattern that refuses a NUL, by which long texts take seconds to make."""
    return {name: value for name, value in schema.items() if name != "pattern" or value != NO_NUL}


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Described]:
    held = Held(tmp_path_factory.mktemp("held") / "data")
    yield Described(held)
    held.gateway.close()


@pytest.mark.parametrize("operation", ALL, ids=named)
def test_every_request_is_answered_as_described(described: Described, operation: Operation) -> None:
    """Whoever is let in sends them all, because a refusal of who asks says nothing of what was sent; others some of them."""
    cases, callers = described.cases(operation), described.held.callers.values()
    first = next(cases)
    let_in = next((key for key in callers if described.check(first, key).status_code < 400), described.held.gateway.owner.key)
    others = cycle(callers)
    for index, case in enumerate(cases):
        described.check(case, let_in)
        if index % 4 == 0:
            described.check(case, next(others))


def test_a_right_request_of_every_kind_of_caller_is_answered_as_described(tmp_path_factory: pytest.TempPathFactory) -> None:
    held = Held(tmp_path_factory.mktemp("first") / "data")
    described, refused = Described(held), []
    for operation in ALL:
        case = next(described.cases(operation))
        statuses = [described.check(case, key).status_code for key in held.callers.values()]
        if all(status >= 400 for status in statuses):
            refused.append(operation.name)
    held.gateway.close()
    assert sorted(refused) == sorted(ONLY_REFUSED)
