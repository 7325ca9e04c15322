from __future__ import annotations

import pytest

from gateway.model.decision import Query
from gateway.model.entity import EntityUid
from gateway.policy import holding
from gateway.policy.context import Context
from gateway.policy.holding import Held, Probes
from tests.policy import builders as b

POLICIES = """
@id("active") permit (principal, action == Action::"read", resource) when { principal.active };
@id("high") forbid (principal, action, resource is Doc) when { resource.level > 5 };
@id("low") forbid (principal, action == Action::"read", resource) when { resource.level < 5 };
@id("errs") permit (principal, action == Action::"read", resource) when { principal.level + 9223372036854775807 > 0 };
@id("edits") permit (principal, action == Action::"edit", resource);
"""
ENGINE = b.an_engine(POLICIES)
PROBES = Probes(ENGINE.bundle, ENGINE.bundle.trees)


def test_each_policy_is_asked_for_itself_permit_or_forbid() -> None:
    slice = ENGINE.slice(b.an_org(), b.a_user(), b.a_doc())
    held = PROBES.held(b.a_query(), slice)
    assert held == Held(frozenset({"active", "low"}), frozenset({"errs"}))
    assert [held.of(id_) for id_ in ("active", "high", "errs", "edits")] == [True, False, None, False]
    assert PROBES.held(b.a_query("edit"), slice) == Held(frozenset({"edits"}), frozenset())


def test_keys_are_of_any_kind() -> None:
    slice = ENGINE.slice(b.an_org(), b.a_user(), b.a_doc())
    probes = Probes(ENGINE.bundle, {("a", 1): ENGINE.bundle.trees["active"], ("a", 2): ENGINE.bundle.trees["high"]})
    query = b.a_query()
    prepared = Query(query.principal, query.action, query.resource, Context({}))
    assert probes.held(prepared, slice) == Held(frozenset({("a", 1)}), frozenset())


def test_nothing_holds_where_no_policy_could_match() -> None:
    edits = {"edits": ENGINE.bundle.trees["edits"]}
    slice = ENGINE.slice(b.an_org(), b.a_user(), b.a_doc())
    assert Probes(ENGINE.bundle, edits).held(b.a_query(), slice) == Held(frozenset(), frozenset())


def test_nothing_holds_after_a_panic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holding, "unless_it_panics", lambda _: None)
    slice = ENGINE.slice(b.an_org(), b.a_user(), b.a_doc())
    assert PROBES.held(b.a_query(resource=EntityUid("Doc", "d")), slice) == Held(frozenset(), frozenset())
