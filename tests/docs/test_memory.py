"""What the documents say of memory runs as it is written: the README's section as its owner, the requests of a bridge."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from gateway.config import Settings
from tests.builders import Client, Gateway, done
from tests.docs.test_documents import FENCED, ROOT
from tests.real.process import Server, init, run

README = (ROOT / "README.md").read_text("utf-8")
ARP = (ROOT / "docs" / "arp.md").read_text("utf-8")


def section(heading: str) -> str:
    return README.partition(f"## {heading}\n")[2].partition("\n## ")[0]


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of an owner after `init`, `serve` and `login`."""
    data = tmp_path / "data"
    made = init(data)
    with Server.serve(data) as server:
        yield {"PEERGATE_URL": server.url, "PEERGATE_KEY": made["api_key"]}
        assert server.stop() == 0


def test_the_memory_section_of_the_readme_runs_line_by_line(owner: dict[str, str]) -> None:
    [block] = [block for kind, block in FENCED.findall(section("Memory, and who else sees it")) if kind == "sh"]
    printed: dict[str, str] = {}
    for line in block.splitlines():
        words = shlex.split(line.replace("AGENT", printed.get("agent create", "AGENT")), comments=True)
        ended = run(*words[1:], **owner)
        assert (ended.returncode, ended.stderr) == (0, ""), line
        printed[" ".join(words[1:3])] = ended.stdout.split()[1] if words[1:3] == ["agent", "create"] else ended.stdout
    assert "Sarah joined alpha" in printed["memory visible"]
    assert "Elm Street" not in printed["memory visible"]
    assert "Elm Street" in printed["memory untagged"]
    assert "Sarah joined alpha" not in printed["memory untagged"]
    assert "barred for good: partner-1" in printed["forget --connection"]


def test_the_settings_in_the_readme_are_those_that_there_are() -> None:
    named = re.findall(r"^\| `(\w+)` \|", section("Settings"), re.MULTILINE)
    assert named == [field.name for field in fields(Settings)]


def test_the_requests_of_a_bridge_are_answered_as_their_page_says(gateway: Gateway) -> None:
    agent, owner = gateway.agent(), gateway.owner
    row = done(agent.post("/v1/memories", {"text": "Sarah joined: who", "project_id": "alpha"}), 201)["memory"]["id"]
    connection = {"agent_id": agent.id, "peer_did": "did:web:partner.example", "id": "partner-1"}
    done(owner.post("/v1/connections", connection), 201)
    actions = {"project_id": "alpha", "actions": ["search", "read", "query"]}
    done(owner.post("/v1/connections/partner-1/grants", actions), 201)
    bridge = Client(gateway.http, agent.id, done(owner.post(f"/v1/agents/{agent.id}/bridge-token"), 201)["token"])
    [common] = re.findall(r"^FROM='(.*)'$", ARP, re.MULTILINE)
    answers = {}
    for route, body in re.findall(r'^ask (\S+) "(.*)"$', ARP, re.MULTILINE):
        sent = json.loads(body.replace('\\"', '"').replace("$FROM", common).replace("ID", row))
        answers[route] = done(bridge.post(f"/api/arp/{route}", sent), 200)
    [found], [source] = answers["notes.search"]["items"], answers["knowledge.query"]["sources"]
    assert answers["notes.read"]["item"] == found
    shown = {route: names.split(", ") for route, names in re.findall(r"^\| `([\w.]+)` \| .*`\{(.*)\}`", ARP, re.MULTILINE)}
    assert shown == {"notes.search": list(found), "knowledge.query": list(source)}
    assert answers["notes.search"].keys() == {"ok", "items", "redactions_applied"}
    assert answers["knowledge.query"].keys() == {"ok", "answer", "sources"}
