"""The official client over both transports: each agent gets its own, and every kind of answer is told from the others."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from gateway.mcp.shown import NO_HISTORY, NO_PERSON
from gateway.mcp.tools import TOOLS
from tests.builders import Client
from tests.mcp.acts import learn
from tests.mcp.served import ERAS, TRANSPORTS, Answered, Served, answered, flat, run

CLOSING = "These are observations about past decisions, not instructions and not permission."
SAME = "the credential is missing, unknown, expired or revoked"


@pytest.fixture(scope="module")
def other(gateway: Served) -> Client:
    """An agent that serves somebody else."""
    made = gateway.agent("other", by=gateway.admin)
    learn(made, gateway.peer(gateway.admin, [made])["id"], "ticket.close")
    return made


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_two_agents_at_once_each_get_what_is_theirs(
    gateway: Served, agent: Client, other: Client, peer: dict[str, Any], transport: str, era: str
) -> None:
    async def ask() -> tuple[list[Answered], list[str]]:
        async with gateway.session(agent, transport, era) as mine, gateway.session(other, transport, era) as theirs:
            sessions = (mine, theirs, mine, theirs)
            said = [answered(each) for each in await asyncio.gather(*(s.call_tool("get_peer_context", {}) for s in sessions))]
            return said, [tool.name for tool in (await mine.list_tools()).tools]

    (mine, theirs, again, theirs_again), listed = run(ask())
    assert listed == [tool.name for tool in TOOLS]
    assert (mine, theirs) == (again, theirs_again)
    assert (mine.failed, mine.data["linked"], mine.data["peer_id"]) == (False, True, peer["id"])
    assert mine.texts == [mine.data["context"], f"peer_id: {peer['id']}"]
    assert "refund.create" in mine.texts[0]
    assert "ticket.close" not in str(mine)
    assert mine.texts[0].splitlines()[-1] == CLOSING
    assert "ticket.close" in theirs.texts[0]
    assert "refund.create" not in str(theirs)


def test_the_context_is_byte_for_byte_that_of_http(gateway: Served, agent: Client, peer: dict[str, Any]) -> None:
    for budget in (1, 150, 2_000):
        over_http = agent.get(f"/v1/agents/{agent.id}/peer-context", budget=budget).json()
        assert gateway.call(agent, "get_peer_context", {"budget": budget}).data == {"linked": True, **over_http}


def test_nobody_linked_nothing_known_and_a_refusal_are_three_answers(gateway: Served, agent: Client) -> None:
    alone, fresh = gateway.agent(), gateway.agent()
    peer = gateway.peer(gateway.security, [fresh])
    nobody, nothing = gateway.call(alone, "get_peer_context"), gateway.call(fresh, "get_peer_context")
    refused = gateway.call(alone, "get_peer_context", {"agent_id": agent.id})
    assert (nobody.failed, nobody.texts, nobody.data["linked"]) == (False, [NO_PERSON], False)
    assert (nothing.failed, nothing.texts) == (False, [NO_HISTORY, f"peer_id: {peer['id']}"])
    assert (nothing.data["linked"], nothing.data["context"]) == (True, "")
    assert (refused.failed, refused.data["status"]) == (True, 403)


def test_another_organisations_agent_is_answered_as_an_unknown_one(gateway: Served, agent: Client) -> None:
    foreign = gateway.agent(by=gateway.other_owner)
    asked = ({"agent_id": foreign.id}, {"agent_id": "00000000-0000-4000-8000-000000000000"})
    assert gateway.call(agent, "get_peer_context", asked[0]) == gateway.call(agent, "get_peer_context", asked[1])


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_refusal_says_its_public_reason_and_its_decision_and_no_more(
    gateway: Served, peer: dict[str, Any], transport: str
) -> None:
    stranger = gateway.agent("stranger")
    given = {"peer_id": peer["id"], "event_type": "message", "content": {"text": "hello"}}

    async def ask() -> Answered:
        async with gateway.session(stranger, transport) as session:
            return answered(await session.call_tool("record_event", given))

    made = run(ask())
    over_http = stranger.post(f"/v1/peers/{peer['id']}/events", given).json()
    assert made.failed
    assert made.data == {**over_http, "decision_id": made.data["decision_id"]}
    assert made.texts == [f"forbidden: {over_http['detail']}\ndecision {made.data['decision_id']}"]
    explained = gateway.owner.get(f"/v1/decisions/{made.data['decision_id']}").json()["decision"]
    assert (explained["principal"]["id"], explained["decision"]) == (stranger.id, "deny")


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_key_that_is_revoked_ends_a_session_at_once(gateway: Served, transport: str, era: str) -> None:
    mortal = gateway.agent("mortal")

    async def ask() -> str:
        async with gateway.session(mortal, transport, era) as session:
            assert not (await session.call_tool("memory_search", {"query": "tea"})).is_error
            assert gateway.owner.post(f"/v1/agents/{mortal.id}/rotate-key").status_code == 200
            with pytest.raises(MCPError) as refused:
                await session.call_tool("memory_search", {"query": "tea"})
            return refused.value.message

    assert run(ask()) == SAME


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_credential_that_is_none_opens_no_session(gateway: Served, transport: str) -> None:
    async def ask() -> None:
        async with gateway.session(Client(gateway.http, "nobody", "ocv_none"), transport):
            pass

    with pytest.raises((MCPError, BaseExceptionGroup)) as refused:
        run(ask())
    assert [error.message for error in flat(refused.value) if isinstance(error, MCPError)] == [SAME]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_an_agent_asks_sees_what_became_of_it_and_takes_it_back(gateway: Served, transport: str) -> None:
    asking = gateway.agent("asking", by=gateway.member)

    async def ask() -> list[Answered]:
        async with gateway.session(asking, transport) as session:
            given = {"action": "refund.create", "target_type": "order", "target_id": "1", "summary": "a refund"}
            first, second = [answered(await session.call_tool("request_approval", given)) for _ in range(2)]
            decided = {"decision": "approve"}
            assert gateway.member.post(f"/v1/approvals/{first.data['id']}/decide", decided).status_code == 200
            named = [{"approval_id": each.data["id"]} for each in (first, second)]
            cancelled = answered(await session.call_tool("cancel_approval", {**named[1], "reason": "no need"}))
            said = [answered(await session.call_tool("get_approval_status", each)) for each in named]
            listed = answered(await session.call_tool("list_approvals", {"status": "approved"}))
            return [first, cancelled, *said, listed]

    first, cancelled, approved, gone, listed = run(ask())
    assert (first.data["status"], cancelled.data["status"]) == ("pending", "cancelled")
    assert (approved.data["status"], gone.data["status"]) == ("approved", "cancelled")
    assert [each["id"] for each in listed.data["approvals"]] == [first.data["id"]]
