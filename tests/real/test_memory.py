"""A few thousand real texts in two hands: what an agent remembers, two remote agents, and the bridge that asks for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.cli.bench.corpus import Passage
from tests.corpus import some
from tests.real.process import Server, init

#: The first rows of these projects are told as untagged, so that there are texts of both kinds about one thing.
FIRST, SECOND = "asyncio", "email"
UNTAGGED = 20
NO_OBLIGATIONS: list[object] = []


@dataclass(frozen=True, slots=True)
class Story:
    """A server with one agent that remembers the corpus, and two remote agents at its bridge."""

    http: httpx.Client
    owner: str = field(repr=False)
    agent: str = field(repr=False)
    bridge: str = field(repr=False)
    rows: dict[str, Passage]

    def as_(self, key: str, method: str, path: str, body: object = None, **query: Any) -> httpx.Response:
        return self.http.request(method, path, json=body, params=query or None, headers={"Authorization": f"Bearer {key}"})

    def arp(self, skill: str, connection: str, **asked: object) -> httpx.Response:
        said = {"connection_id": connection, "source_did": f"did:web:{connection}.example", "obligations": NO_OBLIGATIONS}
        return self.as_(self.bridge, "POST", f"/api/arp/{skill}", {**said, **asked})

    def all_found(self, connection: str, project: str, query: str) -> set[str]:
        """The ids that a remote agent gets for a query, at most fifty."""
        answer = self.arp("notes.search", connection, collection_id=project, query=query, limit=50)
        assert answer.status_code == 200, answer.text
        return {item["id"] for item in answer.json()["items"]}


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    data: Path = tmp_path_factory.mktemp("memory") / "data"
    owner = init(data)["api_key"]
    serve = ("serve", "--data", data, "--port", "0", "--json", "--audit", "relaxed", "--rate-limit", "0")
    # Without a model, whose vectors are tested elsewhere: here it is the number of rows that counts.
    with (
        Server(*serve, environment={"PEERGATE_EMBEDDING": "off"}) as server,
        httpx.Client(base_url=server.url, timeout=60) as http,
    ):
        yield _told(http, owner)
        assert server.stop() == 0
        assert server.errors() == ""


def _told(http: httpx.Client, owner: str) -> Story:
    def post(key: str, path: str, body: object) -> Any:
        answer = http.post(path, json=body, headers={"Authorization": f"Bearer {key}"})
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    made = post(owner, "/v1/agents", {"name": "librarian"})
    agent_id, agent = made["agent"]["id"], made["api_key"]
    seen: Counter[str] = Counter()

    def tell(passage: Passage) -> tuple[str, Passage]:
        body = {"text": passage.text, "layer": passage.layer, "tags": passage.tags, "classification": passage.classification}
        if passage.project_id is not None:
            body["project_id"] = passage.project_id
        return post(agent, "/v1/memories", body)["memory"]["id"], passage

    passages = []
    for passage in some(4_000):
        if passage.project_id in (FIRST, SECOND):
            seen[passage.project_id] += 1
            if seen[passage.project_id] <= UNTAGGED:
                passage = Passage(passage.name, passage.text, passage.layer, None, passage.tags, passage.classification)
        passages.append(passage)
    with ThreadPoolExecutor(16) as many:
        rows = dict(many.map(tell, passages))
    grants: dict[str, list[dict[str, object]]] = {
        "first": [{"scope": {"id": "notes.read", "params": {"collection_id": FIRST}}}],
        "second": [
            {"scope": {"id": "knowledge.query", "params": {"kb_id": SECOND, "max_tokens": 500}}, "classifications": ["public"]},
            {
                "actions": ["search", "read"],
                "project_id": SECOND,
                "classifications": ["public", "internal", "confidential", "pii"],
            },
        ],
    }
    for connection, given in grants.items():
        said = {"id": connection, "agent_id": agent_id, "peer_did": f"did:web:{connection}.example"}
        post(owner, "/v1/connections", said)
        for grant in given:
            post(owner, f"/v1/connections/{connection}/grants", grant)
    bridge = post(owner, f"/v1/agents/{agent_id}/bridge-token", {})["token"]
    return Story(http, owner, agent, bridge, rows)


def expected(story: Story, project: str, tiers: set[str]) -> set[str]:
    return {row_id for row_id, passage in story.rows.items() if passage.project_id == project and passage.classification in tiers}


def test_the_corpus_is_a_few_thousand_rows_of_many_projects_and_every_tier(story: Story) -> None:
    assert len(story.rows) > 3_000
    assert len({passage.project_id for passage in story.rows.values()}) > 30
    assert {passage.classification for passage in story.rows.values()} == {"public", "internal", "confidential", "pii"}
    assert sum(passage.project_id is None for passage in story.rows.values()) > UNTAGGED


def test_each_remote_agent_sees_its_project_in_its_tiers_and_nothing_else(story: Story) -> None:
    for connection, project, tiers in (
        ("first", FIRST, {"public", "internal"}),
        ("second", SECOND, {"public", "internal", "confidential", "pii"}),
    ):
        seen: set[str] = set()
        cursor: str | None = None
        while True:
            query = {"limit": 200, **({"cursor": cursor} if cursor else {})}
            page = story.as_(story.owner, "GET", f"/v1/connections/{connection}/visible", **query).json()
            seen |= {item["id"] for item in page["items"]}
            cursor = page["next_cursor"]
            if cursor is None:
                break
        wanted = expected(story, project, tiers)
        assert seen == wanted
        assert page["total"] == len(wanted)
        found = story.all_found(connection, project, "the")
        assert found
        assert found <= wanted


def test_what_was_not_granted_looks_as_if_there_were_nothing(story: Story) -> None:
    for connection, project in (("first", SECOND), ("second", FIRST), ("first", "no-such-project"), ("second", "json")):
        answer = story.arp("notes.search", connection, collection_id=project, query="the")
        assert (answer.status_code, answer.json()["items"]) == (200, [])
    untagged = next(row_id for row_id, passage in story.rows.items() if passage.project_id is None)
    missing = "00000000-0000-4000-8000-000000000000"
    answers = [story.arp("notes.read", "first", collection_id=FIRST, source_path=path) for path in (untagged, missing)]
    assert answers[0].status_code == 404
    assert answers[0].content == answers[1].content
    assert answers[0].content == story.arp("notes.read", "stranger", collection_id=FIRST, source_path=missing).content


def test_a_remote_agent_reads_a_row_that_it_found(story: Story) -> None:
    row_id = sorted(story.all_found("first", FIRST, "event loop"))[0]
    answer = story.arp("notes.read", "first", collection_id=FIRST, source_path=row_id)
    assert answer.json()["item"]["content"] == story.rows[row_id].text


def test_an_answer_stays_within_the_tokens_and_tiers_of_its_grant(story: Story) -> None:
    answer = story.arp("knowledge.query", "second", kb_id=SECOND, query="parse a message header")
    assert answer.status_code == 200
    said = answer.json()
    assert 0 < len(said["answer"]) <= 500 * 4
    allowed = expected(story, SECOND, {"public"})
    assert {source["source_path"] for source in said["sources"]} <= allowed
    assert said["answer"] == "\n\n".join(source["content"] for source in said["sources"])


def test_revoking_ends_everything_at_once_while_others_read(story: Story) -> None:
    story.as_(story.owner, "POST", "/v1/connections", {
        "id": "third", "agent_id": _agent_id(story), "peer_did": "did:web:third.example",
    })  # fmt: skip
    grant = story.as_(story.owner, "POST", "/v1/connections/third/grants", {"actions": ["search"], "project_id": FIRST}).json()[
        "grant"
    ]
    revoked: list[bool] = []

    def read(_: int) -> tuple[bool, bool]:
        begun_after = bool(revoked)
        return begun_after, bool(story.all_found("third", FIRST, "the"))

    with ThreadPoolExecutor(50) as many:
        readers = [many.submit(read, n) for n in range(150)]
        ended = story.as_(story.owner, "DELETE", f"/v1/connections/third/grants/{grant['id']}")
        revoked.append(True)
        readers += [many.submit(read, n) for n in range(150)]
        answers = [reader.result() for reader in readers]
    assert ended.status_code == 204
    assert [answer for answer in answers if answer == (True, True)] == []
    assert (True, False) in answers


def test_what_was_forgotten_is_nowhere(story: Story) -> None:
    row_id, passage = next((k, p) for k, p in story.rows.items() if p.project_id == "json" and p.layer == "fact")
    marker = story.as_(
        story.agent, "POST", "/v1/memories", {"text": "zanzibarmarker " + passage.text, "project_id": "json"}
    ).json()
    assert story.as_(story.agent, "GET", f"/v1/memories/{marker['memory']['id']}").status_code == 200
    receipt = story.as_(story.agent, "POST", "/v1/memories/forget", {"project_id": "json"}).json()
    assert receipt["total"] > 1
    assert story.as_(story.agent, "GET", f"/v1/memories/{row_id}").status_code == 404
    found = story.as_(story.agent, "POST", "/v1/memories/search", {"query": "zanzibarmarker"})
    assert (found.status_code, found.json()["total"], found.json()["items"]) == (200, 0, [])
    again = story.as_(story.agent, "POST", "/v1/memories/forget", {"project_id": "json"}).json()
    assert again["total"] == 0


def _agent_id(story: Story) -> str:
    made: str = story.as_(story.agent, "GET", "/v1/agents/me").json()["id"]
    return made
