"""Numbers of a payload: read as they are written, hashed as they were sent, shown as they came."""

from __future__ import annotations

import hashlib
import json

import pytest

from tests.builders import Client, Gateway, Response, done
from tests.operations.asking import ORDER
from tests.operations.peer_acts import path

SPELLINGS = ("10e-1", "1e0", "1E400", "-0", "-0.0", "-0e0", "1.00000")


def sent(client: Client, where: str, body: str, method: str = "POST") -> Response:
    headers = {"Authorization": f"Bearer {client.key}", "Content-Type": "application/json"}
    return client.http.request(method, where, content=body.encode(), headers=headers)


def asked(agent: Client, payload: str) -> Response:
    return sent(agent, "/v1/approvals/request", json.dumps(ORDER)[:-1] + f', "payload": {payload}}}')


@pytest.mark.parametrize("text", SPELLINGS)
def test_an_amount_is_refused_wherever_it_is_read_unless_it_is_a_plain_decimal(gateway: Gateway, text: str) -> None:
    agent = gateway.agent()
    peer = gateway.peer(observers=[agent])
    payload = f'{{"amount_usd": {text}}}'
    judged = f'{{"action": "refund.create", "decision": "approved", "payload": {payload}}}'
    rule = f'{{"action_type": "refund.create", "mode": "allow", "require_for_amount_above_usd": {text}}}'
    for made in (
        asked(agent, payload),
        sent(
            agent,
            path(peer, "/predict-approval"),
            f'{{"action_type": "refund.create", "effective_risk_tier": 1, "payload": {payload}}}',
        ),
        sent(agent, path(peer, "/events"), f'{{"event_type": "approval", "content": {judged}}}'),
        sent(gateway.owner, f"/v1/agents/{agent.id}", f'{{"action_approval_policy": {{"rules": [{rule}]}}}}', "PATCH"),
    ):
        assert (made.status_code, text in made.text or "out of range" in made.text) == (400, True)


@pytest.mark.parametrize("text", ["10e-1", "-0", "1.50", "0.12345678901234567890123456789", "123456789012345678901234.5"])
def test_any_other_number_is_hashed_stored_and_shown_as_it_was_sent(gateway: Gateway, text: str) -> None:
    agent = gateway.agent()
    made = asked(agent, f'{{"weight": {text}}}')
    approval = done(made, 202)
    canonical = f'{{"action":"refund.create","payload":{{"weight":{text}}}}}'
    assert approval["payload_hash"] == hashlib.sha256(canonical.encode()).hexdigest()
    for shown in (made, agent.get(f"/v1/approvals/{approval['id']}")):
        assert f'"payload":{{"weight":{text}}}' in shown.text


def test_an_event_comes_back_in_an_export_as_it_was_sent(gateway: Gateway) -> None:
    peer = gateway.peer()
    content = '{"a":1.2345678901234567890123,"b":10e-1,"c":-0}'
    done(sent(gateway.owner, path(peer, "/events"), f'{{"event_type": "message", "content": {content}}}'), 201)
    exported = gateway.owner.request("GET", path(peer, "/export"), headers={"X-Auth-Confirm": gateway.owner.password})
    assert f'"content":{content}' in exported.text
