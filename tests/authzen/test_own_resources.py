"""The gateway's own store: peers that a plan narrows down, and resources that have to be read before they are asked about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.authzen.asking import ACTIONS, BATCH, RESOURCES, SINGLE, SUBJECTS, Body, Pep, rows_of
from tests.builders import Client, Gateway, done
from tests.operations.asking import ABSENT, ask


@dataclass(frozen=True, slots=True)
class Asked:
    """A gateway with an approval that an agent asked for, and another organisation's."""

    gateway: Gateway
    agent: Client
    other: Client
    approval: str
    elsewhere: str


def about(subject: Client | None, action: str, kind: str, id_: str = "-", *, human: bool = False) -> Body:
    named = {"type": "Human" if human else "Agent", "id": subject.id if subject is not None else "-"}
    return {"subject": named, "action": {"name": action}, "resource": {"type": kind, "id": id_}}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    gateway = Gateway(tmp_path_factory.mktemp("gateway") / "data")
    agent, other = gateway.agent("asking", by=gateway.member), gateway.agent("another")
    away = gateway.agent("away", by=gateway.other_owner)
    yield Asked(gateway, agent, other, ask(agent)["id"], ask(away)["id"])
    gateway.close()


def test_an_approval_is_asked_about_by_its_id(home: Asked) -> None:
    owner = Pep(home.gateway.owner)
    for agent in (home.agent, home.other):
        read = agent.get(f"/v1/approvals/{home.approval}").status_code == 200
        assert owner.decision(about(agent, "approval.read", "Approval", home.approval)) is read
    assert owner.decision(about(home.gateway.member, "approval.decide", "Approval", home.approval, human=True)) is True
    assert owner.decision(about(home.gateway.auditor, "approval.decide", "Approval", home.approval, human=True)) is False


def test_a_recorded_decision_is_asked_about_by_its_id(home: Asked) -> None:
    done(home.agent.get(f"/v1/approvals/{home.approval}"), 200)
    decision = home.gateway.services.database.read_sync(
        lambda rows: rows.all("SELECT id FROM log WHERE action = 'approval.read' ORDER BY seq")
    )[-1][0]
    owner = Pep(home.gateway.owner)
    for human, wanted in ((home.gateway.auditor, True), (home.gateway.member, False)):
        read = human.get(f"/v1/decisions/{decision}").status_code == 200
        assert owner.decision(about(human, "decision.read", "Decision", decision, human=True)) is read is wanted


def test_so_it_is_in_a_batch_and_in_searches_about_it(home: Asked) -> None:
    owner, known = Pep(home.gateway.owner), {"type": "Approval", "id": home.approval}
    body = about(home.agent, "approval.read", "Approval")
    ids = [home.approval, home.elsewhere, ABSENT, "no id", home.approval]
    assert owner.decisions(body | {"evaluations": [{"resource": known | {"id": each}} for each in ids]}) == [
        True, False, False, False, True,
    ]  # fmt: skip
    found = owner.found(SUBJECTS, about(None, "approval.read", "Approval", home.approval))
    assert found == [{"type": "Agent", "id": home.agent.id}]
    named = {each["name"] for each in owner.found(ACTIONS, about(home.agent, "", "Approval", home.approval))}
    assert {"approval.read", "approval.cancel"} <= named
    assert "approval.decide" not in named


@pytest.mark.parametrize("path", [SINGLE, BATCH, SUBJECTS, ACTIONS])
def test_an_approval_of_another_organisation_is_the_same_as_unknown(home: Asked, path: str) -> None:
    for client in (home.gateway.owner, home.agent, home.gateway.member):
        answers = [client.post(path, about(home.agent, "approval.read", "Approval", id_)) for id_ in (home.elsewhere, ABSENT)]
        assert answers[0].content == answers[1].content
        assert answers[0].status_code == 200


def test_an_agent_is_told_no_about_what_is_not_its_own(home: Asked) -> None:
    question = about(home.agent, "approval.read", "Approval", home.approval)
    assert Pep(home.agent).decision(question) is True
    assert Pep(home.other).decision(question) is False
    assert Pep(home.other).decision(about(home.other, "approval.read", "Approval", home.approval)) is False


def test_memories_and_proposals_are_not_asked_about_here(home: Asked) -> None:
    owner = Pep(home.gateway.owner)
    for kind, action in (("Memory", "memory.read"), ("ProposedAction", "suggest_auto")):
        assert owner.decision(about(home.agent, action, kind, ABSENT)) is False
    for kind in ("Memory", "ProposedAction", "Approval", "Decision"):
        assert owner.found(RESOURCES, about(home.agent, "approval.read", kind)) == []


@dataclass(slots=True)
class Counted:
    """How often the policies were asked about somebody."""

    inner: Any
    times: int = 0

    def __call__(self, *args: Any) -> Any:
        self.times += 1
        return self.inner(*args)


def test_a_search_of_peers_asks_about_those_alone_that_a_plan_keeps(home: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = home.gateway
    people = [gateway.human("member") for _ in range(6)]
    watched = [gateway.peer(person=human, observers=[home.agent])["id"] for human in people[:2]]
    for human in people[2:]:
        gateway.peer(person=human)
    counted = Counted(gateway.services.access.answer)
    monkeypatch.setattr(gateway.services.access, "answer", counted)
    owner = Pep(gateway.owner)
    found = owner.found(RESOURCES, about(home.agent, "peer.read_context", "Peer"))
    assert ([each["id"] for each in found], counted.times) == (sorted(watched), 2)
    # Whose policies have no translation is asked about peer by peer.
    owner.found(RESOURCES, about(gateway.owner, "peer.link", "Peer", human=True))
    assert counted.times == 2 + 6


def test_every_action_finds_the_peers_that_it_evaluates_to_yes_for(home: Asked) -> None:
    gateway, owner = home.gateway, Pep(home.gateway.owner)
    gateway.peer(person=gateway.security, observers=[home.agent, home.other])
    peers = sorted(peer.id for peer in gateway.services.state.peers.values())
    actions = [name for name, kinds in gateway.services.access.engine.bundle.vocabulary.resources.items() if "Peer" in kinds]
    for subject, human in ((home.agent, False), (home.other, False), (gateway.security, True), (gateway.owner, True)):
        for action in actions:
            body = about(subject, action, "Peer", human=human)
            items = [{"resource": {"type": "Peer", "id": peer}} for peer in peers]
            wanted = [peer for peer, yes in zip(peers, owner.decisions(body | {"evaluations": items}), strict=True) if yes]
            assert [each["id"] for each in owner.found(RESOURCES, body)] == wanted


def test_searching_by_a_plan_is_one_recorded_decision(home: Asked) -> None:
    before = len(rows_of(home.gateway, "authzen.search")), len(rows_of(home.gateway, "peer.read_context"))
    Pep(home.gateway.auditor).found(RESOURCES, about(home.agent, "peer.read_context", "Peer"))
    after = len(rows_of(home.gateway, "authzen.search")), len(rows_of(home.gateway, "peer.read_context"))
    assert after == (before[0] + 1, before[1])
