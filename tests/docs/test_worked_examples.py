"""The worked examples: a change of policy on a gateway that runs, and an audit of it once it is stopped, each line by line."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.docs.test_documents import FENCED
from tests.docs.transcript import Answers, Shell, compare, play
from tests.real.process import ROOT, Server

CHANGE, AUDIT = ROOT / "docs" / "change.md", ROOT / "docs" / "audit.md"
VARIABLES = ("CONNECTION", "AGENT", "AGENT_KEY", "PEER", "SECURITY_KEY", "PASSWORD")
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

        def edit(kind: str, text: str) -> None:
            if kind == "sh":
                return
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
        shutil.copy(ROOT / "tests" / "policies" / "matrix.txt", here / "reviewed.txt")
        audit = play(AUDIT, Shell(), after=forge)
        yield Played(change, audit, json.loads(Path("refuted.json").read_text("utf-8")))


def at_night(url: str, people: Mapping[str, Any]) -> dict[str, str]:
    """The sample organisation at three in the night: a person is connected, and the agent of the connection has read once.

    It is what the document says to run before. Returns the variables of the document.
    """
    known = {
        "OWNER_KEY": people["owner"]["api_key"],
        "PLATFORM_KEY": people["platform"]["api_key"],
        "SECURITY_KEY": people["security"]["api_key"],
        "PASSWORD": people["security"]["password"],
    }
    script = block(CHANGE, "OWNER_KEY=").replace("http://127.0.0.1:8787", url)
    for name, value in known.items():
        script, count = re.subn(rf"^{name}=….*$", f"{name}={value}", script, flags=re.MULTILINE)
        assert count == 1
    shown = "\necho" + "".join(f'\necho "{name} ${name}"' for name in VARIABLES)
    ended = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script + shown], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return dict(line.split() for line in ended.stdout.splitlines()[-len(VARIABLES) :])


def block(document: Path, begin: str) -> str:
    """The only block of shell of a document with these words."""
    [found] = [text for kind, text in FENCED.findall(document.read_text("utf-8")) if kind == "sh" and begin in text]
    return str(found)


def forge(line: str, _: str) -> None:
    """Beside the evidence, the same with one answer turned round, as the document says to make it."""
    if line.startswith("peergate evidence"):
        subprocess.run(["bash", "-e", "-c", block(AUDIT, "forged")], check=True)
        assert Path("forged/chain.jsonl").read_text("utf-8") != Path("evidence/chain.jsonl").read_text("utf-8")


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
