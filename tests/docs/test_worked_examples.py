"""The worked examples: a change of policy on a gateway that runs, and an audit of it once it is stopped, each line by line."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.docs.transcript import Answers, Shell, compare, play
from tests.real.process import ROOT, Server

CHANGE, AUDIT = ROOT / "docs" / "change.md", ROOT / "docs" / "audit.md"
POLICIES, CASES = (Path(f"mine/policies/peer/read_context{end}") for end in (".cedar", "_test.json"))
BEGUN = {
    POLICIES: re.compile(r'@id\("peer/read_context/crm_office_hours"\).*\Z', re.DOTALL),
    CASES: re.compile(r" +\{\n +\"name\": \"[^\"]*say who is refused.*\Z", re.DOTALL),
}


@dataclass(frozen=True, slots=True)
class Played:
    """What the commands of both documents answered, and what a refuted claim was refuted with."""

    change: Answers
    audit: Answers
    refuted: Mapping[str, Any]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """Both documents, one after the other on one data directory."""
    here = tmp_path_factory.mktemp("examples")
    data = here / "data"
    with Server("demo", "--data", data, "--port", "0", "--json") as server:
        shell = Shell(**at_night(server.url, server.said["credentials"]))
        assert server.stop() == 0
    shutil.copytree(data, here / "backup")
    with pytest.MonkeyPatch.context() as patch, Server.serve(data) as server:
        patch.chdir(here)
        for name in [name for name in os.environ if name.startswith("PEERGATE_")]:
            patch.delenv(name)
        patch.setenv("XDG_CONFIG_HOME", str(here / "config"))
        patch.setenv("PEERGATE_URL", server.url)

        def edit(_: str, text: str) -> None:
            file = POLICIES if text.startswith("@id") else CASES
            text = text.replace("CONNECTION", shell.variables["CONNECTION"]).removeprefix("[\n")
            made, count = BEGUN[file].subn(lambda _: text, file.read_text("utf-8"))
            assert count == 1
            file.write_text(made, "utf-8")

        def after(line: str, answer: str) -> None:
            if "policy add" in line:
                shell.variables["POLICY"] = re.findall(r"^id +(\S+)$", answer, re.MULTILINE)[0]

        change = play(CHANGE, shell, edit=edit, after=after)
        assert server.stop() == 0
        shutil.copy(ROOT / "tests" / "policies" / "matrix.txt", here)
        audit = play(AUDIT, Shell(), after=forge)
        yield Played(change, audit, json.loads(Path("refuted.json").read_text("utf-8")))


def at_night(url: str, people: Mapping[str, Any]) -> dict[str, str]:
    """The sample organisation at three in the night: a person is connected, and the agent of the connection has read once.

    Returns the variables of the document.
    """
    with httpx.Client(base_url=url) as http:

        def ask(key: str, method: str, path: str, body: object = None) -> Any:
            answer = http.request(method, path, json=body, headers={"Authorization": f"Bearer {key}"})
            assert answer.is_success, answer.text
            return answer.json()

        owner, platform = people["owner"]["api_key"], people["platform"]
        east = (3 - datetime.now(UTC).hour + 10) % 24 - 10
        ask(owner, "PATCH", "/v1/org/settings", {"time_zone": f"Etc/GMT{-east:+d}"})
        member = {"email": people["member"]["email"]}
        connection = ask(platform["api_key"], "POST", "/v1/platform/users/upsert", member)["connection_id"]
        made = ask(
            platform["api_key"],
            "POST",
            f"/v1/platform/connections/{connection}/bootstrap",
            {"template_id": platform["template_id"]},
        )["summary"]
        ask(made["agent_api_key"], "GET", f"/v1/peers/{made['peer_id']}/context")
    return {
        "CONNECTION": connection,
        "AGENT": made["agent_id"],
        "AGENT_KEY": made["agent_api_key"],
        "PEER": made["peer_id"],
        "SECURITY_KEY": people["security"]["api_key"],
        "PASSWORD": people["security"]["password"],
    }


def forge(line: str, _: str) -> None:
    """Beside the evidence, the same with one answer turned round."""
    if line.startswith("peergate evidence"):
        shutil.copytree("evidence", "forged")
        chain = Path("forged/chain.jsonl")
        text = chain.read_text("utf-8")
        assert '"outcome":"deny"' in text
        chain.write_text(text.replace('"outcome":"deny"', '"outcome":"allow"', 1), "utf-8")


def test_the_change_goes_as_it_is_told(played: Played) -> None:
    compare(CHANGE, played.change)


def test_a_claim_that_is_too_small_is_refuted_with_a_request_of_an_agent(played: Played) -> None:
    [proof] = played.refuted["proofs"]
    case = proof["counterexample"]["case"]
    assert (proof["status"], case["request"]["action"]) == ("refuted", 'Action::"peer.read_context"')
    assert case["request"]["principal"].startswith("Agent::")
    clock = case["request"]["context"]["clock"]
    assert not (clock["weekday"] <= 5 and 540 <= clock["minute"] < 1080)


def test_the_audit_goes_as_it_is_told(played: Played) -> None:
    compare(AUDIT, played.audit)
