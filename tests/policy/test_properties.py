"""Partitions, ids and slices change nothing: the engine allows what plain Cedar over everything allows, without an error."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.model.entity import Entity
from gateway.policy.bundle import Bundle
from gateway.policy.engine import PolicyEngine
from tests.policy import builders as b

PRINCIPALS = [
    "principal",
    'principal == User::"ann"',
    'principal in Group::"team"',
    "principal is User",
    'principal in Group::"top"',
]
ACTIONS = [
    "action",
    'action == Action::"read"',
    'action in Action::"write"',
    'action in [Action::"read", Action::"manage"]',
    'action in [Action::"edit"]',
]
RESOURCES = ["resource", 'resource == Doc::"d"', "resource is Doc"]
CONDITIONS = [
    "",
    "when { principal.active }",
    "unless { resource.level > 1 }",
    "when { resource.level + 9223372036854775807 > 0 }",
    "when { context has n && context.n + 9223372036854775807 > 0 }",
    "when { resource.owner == principal } unless { principal.level < 1 }",
]


@dataclass(frozen=True)
class Rule:
    effect: str
    principal: str
    action: str
    resource: str
    condition: str

    def text(self, id_: str) -> str:
        return f'@id("{id_}") {self.effect} ({self.principal}, {self.action}, {self.resource}) {self.condition};'


RULES = st.lists(
    st.builds(
        Rule,
        st.sampled_from(["permit", "permit", "forbid"]),
        st.sampled_from(PRINCIPALS),
        st.sampled_from(ACTIONS),
        st.sampled_from(RESOURCES),
        st.sampled_from(CONDITIONS),
    ),
    min_size=1,
    max_size=6,
)


def the_entities(level: int, *, active: bool, grouped: bool) -> list[Entity]:
    groups = ("team",) if grouped else ()
    return [
        b.an_org(),
        b.a_group("team", "top"),
        b.a_group("top"),
        b.a_user(level=level, active=active, groups=groups),
        b.a_doc(level=level),
    ]


@settings(deadline=None)
@given(
    RULES, st.integers(-1, 2), st.booleans(), st.booleans(), st.sampled_from([{}, {"n": 0}, {"n": 1}]), st.permutations(range(6))
)
def test_the_engine_allows_exactly_what_plain_cedar_allows_without_an_error(
    rules: list[Rule], level: int, active: bool, grouped: bool, context: dict[str, int], order: list[int]
) -> None:
    texts = {f"p{n}": rule.text(f"p{n}") for n, rule in enumerate(rules)}
    engine = b.an_engine(*texts.values())
    slice = engine.slice(*the_entities(level, active=active, grouped=grouped))
    turned = Bundle.from_text(b.SCHEMA, {f"{order[n]}.cedar": text for n, text in enumerate(texts.values())}, house_rules=False)
    assert turned.hash == engine.bundle.hash
    for action in ("read", "edit", "drop", "list"):
        allowed, errors = b.bare("\n".join(texts.values()), json.loads(slice.text), context, action)
        verdict = engine.decide(b.a_query(action, **context), slice)
        assert verdict.allowed == (allowed and not errors)
        assert len(verdict.errors) == errors
        assert PolicyEngine(turned, salt=b"").decide(b.a_query(action, **context), slice) == verdict
