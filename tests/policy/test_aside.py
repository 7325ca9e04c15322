"""Policies that are read while others decide: the same bundle, the same refusals, and no end of this process."""

from __future__ import annotations

import gc
import os

import pytest

from gateway.policy import aside, guardrails
from gateway.policy.files import read_texts
from gateway.policy.finding import PolicyError
from tests.world import ROOT, shipped

TEXTS = read_texts(ROOT / "policies")
SCHEMA = shipped().schema_text
OWN = """@id("session/end/own")
@reason("Nobody ends a session.")
forbid (
  principal,
  action == Action::"session.end",
  resource
);
"""
FILE = "session/end.cedar"
GUARDRAIL = next(iter(sorted(guardrails.REQUIRED)))


def more(text: str) -> dict[str, str]:
    return {**TEXTS, FILE: f"{TEXTS[FILE]}\n{text}"}


def test_what_is_read_aside_is_what_is_read_at_the_start() -> None:
    assert aside.load(SCHEMA, TEXTS, TEXTS) == shipped()
    made = aside.load(SCHEMA, more(OWN), TEXTS)
    assert made == guardrails.load(SCHEMA, more(OWN), TEXTS)
    assert made.members["session.end"] == guardrails.load(SCHEMA, more(OWN), TEXTS).members["session.end"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (OWN.replace("principal,", "principal ,"), "is not formatted"),
        (OWN.replace("resource\n)", "resource\n)\nwhen { resource.nothing }"), "nothing"),
        (OWN.replace("session/end/own", "elsewhere"), "does not start with"),
        ("permit", "unexpected"),
    ],
)
def test_all_that_a_start_refuses_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message) as refused:
        aside.load(SCHEMA, more(text), TEXTS)
    with pytest.raises(PolicyError) as at_start:
        guardrails.load(SCHEMA, more(text), TEXTS)
    assert refused.value.findings == at_start.value.findings


def test_a_guardrail_that_is_not_as_it_was_shipped_is_refused() -> None:
    [file] = [file for file, text in TEXTS.items() if f'"{GUARDRAIL}"' in text]
    changed = TEXTS[file].replace('@reason("', '@reason("So: ', 1)
    with pytest.raises(PolicyError, match="is not the guardrail as it was shipped"):
        aside.load(SCHEMA, {**TEXTS, file: changed}, TEXTS)


def test_a_guardrail_that_is_missing_is_refused_in_one_s_own_policies_and_in_what_was_shipped() -> None:
    [file] = [file for file, text in TEXTS.items() if f'"{GUARDRAIL}"' in text]
    lacking = {name: text for name, text in TEXTS.items() if name != file}
    for own, shipped_texts in ((lacking, TEXTS), (TEXTS, lacking), (lacking, lacking)):
        with pytest.raises(PolicyError, match=f"`{GUARDRAIL}`: is required and missing"):
            guardrails.load(SCHEMA, own, shipped_texts)
    with pytest.raises(PolicyError, match=f"`{GUARDRAIL}`: is required and missing"):
        aside.load(SCHEMA, lacking, TEXTS)


def test_texts_that_end_the_process_which_checks_them_do_not_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aside, "COMMAND", ("-c", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"))
    with pytest.raises(PolicyError, match="the process that read it has died of it"):
        aside.load(SCHEMA, TEXTS, TEXTS)


def test_the_process_that_checks_them_gives_way_to_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    told = """
import os
from gateway.policy import aside, guardrails
from gateway.policy.finding import Finding, PolicyError
def load(**given):
    raise PolicyError([Finding("", 0, "", f"nice {os.nice(0)}")])
guardrails.load = load
aside.main()
"""
    monkeypatch.setattr(aside, "COMMAND", ("-c", told))
    with pytest.raises(PolicyError, match=f"nice {os.nice(0) + aside.NICE}"):
        aside.load(SCHEMA, TEXTS, TEXTS)


def test_what_was_read_is_never_looked_through_for_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aside, "COMMAND", ("-c", "print('[]')"))
    gc.unfreeze()
    made = aside.load(SCHEMA, TEXTS, TEXTS)
    assert gc.get_freeze_count() > len(made.policies)
    assert not any(made.trees is tracked for tracked in gc.get_objects())
    gc.unfreeze()


def test_garbage_is_collected_again_afterwards_whatever_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aside, "COMMAND", ("-c", "print('[]')"))
    aside.load(SCHEMA, TEXTS, TEXTS)
    assert gc.isenabled()
    with pytest.raises(PolicyError):
        aside.load(SCHEMA, more("permit"), TEXTS)
    assert gc.isenabled()
