"""What an explanation keeps back: labels that a person chose, and nothing that is an id, a flag, a number or a time."""

from __future__ import annotations

import pytest

from gateway.policy.bundle import Bundle
from gateway.policy.cases import load_cases, prepare
from gateway.policy.engine import PolicyEngine
from gateway.policy.explain import explain
from gateway.policy.redaction import PLAIN, split, unlabelled
from tests.world import ROOT, shipped

SHOWN = {
    "principal": 'Human::"canary"',
    "ancestors(principal)": 'Org::"home", Role::"auditor"',
    "resource.archived": "false",
    "resource.risk_tier": "2",
    "resource.amount_usd": "12.5000",
    "context.now": "2026-03-04T10:00:00Z",
    "context.clock.date": '"2026-03-04"',
    "resource.classification": '"pii"',
    "principal.tiers": '["internal", "public"]',
    "principal.grants": '["g1"]',
    "principal.approval.getTag(resource.action_type).mode": '"approve"',
    "resource.person": None,
    "resource.project": None,
    "resource.tags": "[]",
}
HIDDEN = {
    "resource.project": '"alpha"',
    "resource.tags": '["Sarah"]',
    "principal.projects": '["alpha"]',
    "resource.anything_new": '"a text"',
    "context.record": '{"a":1}',
    "context.records": '[{"a":1}]',
    'resource["classification of"]': '"a text"',
}


def test_ids_flags_numbers_times_and_words_of_the_product_are_shown() -> None:
    assert split(SHOWN) == (SHOWN, ())


def test_labels_and_whatever_text_is_not_known_are_kept_back_and_named() -> None:
    assert split(HIDDEN) == ({}, tuple(HIDDEN))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('resource.project == "alpha"', 'resource.project == "…"'),
        ('(resource.tags).containsAll(["a", "b\\"c"])', '(resource.tags).containsAll(["…", "…"])'),
        ('["internal", "pii"].contains(resource.classification)', '["internal", "pii"].contains(resource.classification)'),
        ('principal == Connection::"partner"', 'principal == Connection::"partner"'),
        ("resource.agent == principal.agent", "resource.agent == principal.agent"),
    ],
)
def test_a_grant_s_text_keeps_its_tiers_and_ids_and_loses_its_labels(text: str, shown: str) -> None:
    assert unlabelled(text) == shown


def test_no_text_of_the_cases_is_shown_that_is_no_word_of_the_product() -> None:
    """Every value that a nearest permit of the shipped cases reads is an id, or under an attribute that is listed here."""
    bundle: Bundle = shipped()
    engine = PolicyEngine(bundle, salt=b"")
    kept_back = set()
    cases = [case for case in load_cases(ROOT / "policies") if case.action.startswith("memory.")]
    for case, query, slice in prepare(engine, cases):
        near = explain(engine, query, slice, case.grants).nearest
        kept_back |= set() if near is None else set(split(near.unmet.values)[1])
    assert kept_back == {"resource.project", "resource.tags"}
    assert not {"project", "projects", "tags"} & PLAIN
