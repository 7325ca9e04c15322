"""The claims: what holds each is there under the name that it is given, and its commands answer as shown."""

from __future__ import annotations

import ast
import re
import shlex
from functools import cache

import pytest

from gateway.cli.main import build_parser
from gateway.policy.bundle import Bundle
from gateway.policy.cases import load_cases
from gateway.policy.guardrails import REQUIRED
from gateway.policy.prove.invariants import INVARIANTS
from tests.docs.test_documents import FENCED
from tests.docs.transcript import Shell, commands, compare
from tests.real.process import ROOT

CLAIMS = ROOT / "docs" / "claims.md"
TEXT = CLAIMS.read_text("utf-8")
#: What a line below a claim names.
KINDS = ("Guardrail", "Proof", "Case", "Test", "Ask")
GUARDRAIL = re.compile(r"`([\w/]+)` in `(policies/guardrails/\w+\.cedar)`")
NAME = re.compile(r"`([^`]+)`")


def sections() -> list[tuple[int, str, str]]:
    """The number, the title and the text of each claim."""
    parts = re.split(r"^## (\d+)\. (.+)$", TEXT, flags=re.MULTILINE)
    return [(int(number), title, text) for number, title, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True)]


def named(kind: str) -> list[str]:
    """What the lines of a kind name, all claims together."""
    return re.findall(rf"^- {kind}: (.+)$", TEXT, re.MULTILINE)


def names(kind: str) -> list[str]:
    """The same where a line is one name in backticks."""
    found = [NAME.fullmatch(line) for line in named(kind)]
    assert None not in found
    return [match[1] for match in found if match is not None]


@cache
def functions(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_claims_are_numbered_from_one_without_a_gap_and_no_two_say_the_same() -> None:
    found = sections()
    assert [number for number, _, _ in found] == list(range(1, len(found) + 1))
    assert len({title for _, title, _ in found}) == len(found)
    assert re.findall(r"^## (.*)$", TEXT, re.MULTILINE) == [f"{number}. {title}" for number, title, _ in found]


def test_each_claim_names_what_it_rests_on_and_where_that_is_no_policy_says_that_it_is_code() -> None:
    assert [title for _, title, text in sections() if not rests_on(text, "Guardrail", "Proof", "Test")] == []
    without = [(title, text) for _, title, text in sections() if not rests_on(text, "Guardrail", "Proof")]
    assert without
    assert [title for title, text in without if not re.search(r"\b[Cc]ode\b", text)] == []


def rests_on(text: str, *kinds: str) -> bool:
    return re.search(rf"^- ({'|'.join(kinds)}): ", text, re.MULTILINE) is not None


def test_each_line_below_a_claim_is_of_a_known_kind() -> None:
    lines = [line for _, _, text in sections() for line in re.findall(r"^- (.*)$", text, re.MULTILINE)]
    assert [line for line in lines if line.partition(":")[0] not in KINDS] == []


def test_each_guardrail_that_is_named_is_in_the_file_that_is_named() -> None:
    bundle = Bundle.load(ROOT / "schema.cedarschema", ROOT / "policies")
    found = [GUARDRAIL.fullmatch(line) for line in named("Guardrail")]
    assert None not in found
    pairs = {match.groups() for match in found if match is not None}
    held = {(id_, f"policies/{info.file}") for id_, info in bundle.policies.items()}
    assert sorted(pairs - held) == []


def test_each_file_of_guardrails_is_named_by_a_claim() -> None:
    files = {
        f"policies/{path.relative_to(ROOT / 'policies').as_posix()}" for path in (ROOT / "policies/guardrails").glob("*.cedar")
    }
    assert len(files) >= len({id_.split("/")[1] for id_ in REQUIRED}) > 10
    assert sorted(files - {match[2] for match in map(GUARDRAIL.fullmatch, named("Guardrail")) if match is not None}) == []


def test_each_case_is_there() -> None:
    there = {case.name for case in load_cases(ROOT / "policies")}
    assert [name for name in names("Case") if name not in there] == []


def test_each_proof_is_one_that_prove_knows_and_each_of_those_is_named() -> None:
    assert sorted(set(names("Proof"))) == sorted(invariant.name for invariant in INVARIANTS)


def test_each_test_is_there() -> None:
    split = [name.partition("::") for name in names("Test")]
    assert [file for file, _, _ in split if not (ROOT / file).is_file()] == []
    assert [f"{file}::{function}" for file, _, function in split if function not in functions(file)] == []


def test_each_command_that_asks_a_gateway_is_one_that_the_parser_takes() -> None:
    parser, asked = build_parser(), names("Ask")
    assert asked
    for command in asked:
        program, *words = shlex.split(command)
        assert program == "peergate"
        try:
            parser.parse_args(['{"text": "x"}' if word == "VALUE" else word for word in words])
        except SystemExit:
            pytest.fail(f"the parser refuses: {command}")


def test_the_other_commands_answer_as_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    shell = Shell()
    compare(CLAIMS, [(line, shell.answer(line)) for line, _ in commands(TEXT)])
    assert {kind for kind, _ in FENCED.findall(TEXT)} == {"console"}
