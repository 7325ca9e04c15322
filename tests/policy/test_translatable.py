"""What a policy may ask of a row is settled when it is loaded."""

from __future__ import annotations

import pytest

from gateway.policy.bundle import Bundle
from gateway.policy.finding import Finding, PolicyError

SCHEMA = """
entity Org;
entity Group in [Group];
entity Agent in [Org] = { org: Org, level: Long, active: Bool, tiers: Set<String>, name?: String };
entity Note in [Org] = { org: Org, agent: Agent };
entity Memory in [Org] = {
  org: Org, agent: Agent, other?: Agent, project?: String, tags: Set<String>, more: Set<String>, level: Long, wide: Long,
  open: Bool, from?: datetime, net?: ipaddr, box?: { name: String }, groups: Set<Group>, group?: Group,
} tags String;
type Moment = { n?: Long, now?: datetime };
action "any_row";
action "read" in ["any_row"] appliesTo { principal: [Agent], resource: [Memory], context: Moment };
action "look" appliesTo { principal: [Agent], resource: [Note, Memory], context: Moment };
action "list" appliesTo { principal: [Agent], resource: [Agent], context: Moment };
"""
JOIN = "of another entity or record than the row"

REFUSED = {
    "resource.agent.org == principal.org": f"`org` {JOIN}",
    "principal.active && resource.agent.active": f"`active` {JOIN}",
    "if principal.active then resource.agent.active else true": f"`active` {JOIN}",
    "resource has box.name": f"`has name` {JOIN}",
    'resource has box && resource.box.name == "a"': f"`name` {JOIN}",
    'resource.hasTag("a")': "`hasTag`",
    "resource has from && context has now && resource.from < context.now": "attribute `from`, of a type that no column has",
    "resource has net && resource.net.isLoopback()": "`isLoopback`",
    "resource.level + 1 > 2": "`+` where an attribute of the row was looked for",
    "-resource.level > 2": "`neg` where an attribute of the row was looked for",
    "resource.level < resource.wide": "the order of two attributes",
    "resource.tags == principal.tiers": "a comparison of the set `tags`",
    "resource.tags == resource.more": "a comparison of the set `tags`",
    "resource.tags.containsAny(resource.more)": "`containsAny` of two attributes",
    "resource has project && resource.tags.contains(resource.project)": "`contains` of two attributes",
    "resource.agent in principal.org": "what the entity `agent` is in",
    "resource.agent in resource.org": "`in` of two attributes",
    "(if resource.open then 1 else 2) == principal.level": "`if-then-else` where an attribute of the row was looked for",
    '{"a": resource.level}.a == 1': f"`a` {JOIN}",
    '{"Value": resource.level}.Value == 1': f"`Value` {JOIN}",
    "[resource.level, 1].contains(principal.level)": "`Set` where an attribute of the row was looked for",
}
ACCEPTED = [
    "resource.agent == principal",
    "resource in principal.org",
    "principal in resource.org",
    "resource has project && principal.tiers.contains(resource.project)",
    'resource has project && resource.project like "a*"',
    'context has now && context.now < datetime("2030-01-01") && resource.open',
    "context has n && context.n + 1 > resource.level",
    "(if principal.active then 1 else 2) == resource.level",
    "resource is Memory in principal.org",
    "resource.tags.containsAll(principal.tiers) && !resource.more.isEmpty()",
    "resource.open == (principal.level == 1)",
    "resource has nothing && principal.active",
]


HEADS = ("permit (principal, action, resource is Memory)", 'forbid (principal, action == Action::"read", resource)')


def loaded(policy: str) -> Bundle:
    return Bundle.from_text(SCHEMA, {"own.cedar": f'@id("it")\n{policy}'}, house_rules=False)


@pytest.mark.parametrize("condition", REFUSED)
@pytest.mark.parametrize(
    "head", ["permit (principal, action, resource is Memory)", 'forbid (principal, action == Action::"read", resource)']
)
def test_a_policy_that_cannot_become_a_query_does_not_load(head: str, condition: str) -> None:
    with pytest.raises(PolicyError) as raised:
        loaded(f"{head} when {{ {condition} }};")
    assert raised.value.findings == (Finding("own.cedar", 1, "it", f"cannot be turned into a query: {REFUSED[condition]}"),)


@pytest.mark.parametrize("condition", ACCEPTED)
@pytest.mark.parametrize("kind", ["when", "unless"])
def test_what_can_become_a_query_loads(kind: str, condition: str) -> None:
    loaded(f"permit (principal, action, resource is Memory) {kind} {{ {condition} }};")


def test_what_is_asked_of_another_type_of_resource_is_not_asked_of_rows() -> None:
    loaded('permit (principal, action == Action::"look", resource) when { resource is Note && resource.agent.active };')


@pytest.mark.parametrize(
    "head",
    [
        'permit (principal, action == Action::"look", resource is Note)',
        'permit (principal, action == Action::"list", resource)',
    ],
)
def test_a_policy_that_is_not_about_rows_may_ask_anything(head: str) -> None:
    loaded(f"{head} when {{ principal.active && principal.level + 1 > 2 }};")
    loaded("permit (principal, action, resource is Note) when { resource.agent.active };")


def test_a_policy_of_a_group_of_actions_is_about_the_rows_of_its_actions() -> None:
    with pytest.raises(PolicyError, match="cannot be turned into a query"):
        loaded('forbid (principal, action in Action::"any_row", resource) when { resource.agent.active };')


@pytest.mark.parametrize("id_", ["guardrails/memory/grant", "grant/0190a3a0-0000-7000-8000-000000000001"])
def test_no_policy_is_called_as_what_a_grant_is_compiled_to(id_: str) -> None:
    with pytest.raises(PolicyError, match="is an id of what a grant is compiled to"):
        Bundle.from_text(SCHEMA, {"own.cedar": f'@id("{id_}") permit (principal, action, resource);'}, house_rules=False)


def test_a_schema_without_rows_asks_for_nothing() -> None:
    schema = SCHEMA.replace("Memory", "Row")
    text = '@id("it") permit (principal, action == Action::"read", resource) when { resource.agent.active };'
    assert Bundle.from_text(schema, {"own.cedar": text}, house_rules=False).policies.keys() == {"it"}


def nested(depth: int) -> str:
    """A condition that says itself twice at each level."""
    condition = "resource.open"
    for number in range(depth):
        condition = f"({condition} == (principal.active || resource.level == {number}))"
    return condition


@pytest.mark.parametrize("head", HEADS)
def test_a_short_text_that_makes_a_long_query_does_not_load(head: str) -> None:
    loaded(f"{head} when {{ {nested(3)} }};")
    with pytest.raises(PolicyError, match="more than 4000 conditions on a row, each counted as often as it would stand"):
        loaded(f"{head} when {{ {nested(24)} }};")


def test_the_policies_of_an_action_ask_only_so_many_conditions_of_a_row_together() -> None:
    chain = " || ".join(f"resource.level == {number}" for number in range(80))
    texts = [f'@id("it{number:02}") forbid (principal, action, resource is Memory) when {{ {chain} }};' for number in range(13)]
    Bundle.from_text(SCHEMA, {"own.cedar": "\n".join(texts[:12])}, house_rules=False)
    with pytest.raises(PolicyError) as raised:
        Bundle.from_text(SCHEMA, {"own.cedar": "\n".join(texts)}, house_rules=False)
    said = "with it, the policies of an action ask over 1000 conditions of a row"
    assert raised.value.findings == (Finding("own.cedar", 13, "it12", said),)
    whole = [text.replace(" action,", ' action == Action::"read",', 1) for text in texts[:12]]
    look = texts[12].replace(" action,", ' action == Action::"look",', 1)
    Bundle.from_text(SCHEMA, {"own.cedar": "\n".join([*whole, look])}, house_rules=False)


def test_what_does_not_ask_of_a_row_weighs_nothing() -> None:
    text = "\n".join(
        f'@id("it{number}") forbid (principal, action, resource is Memory) when {{ principal.level == {number} }};'
        for number in range(1_100)
    )
    Bundle.from_text(SCHEMA, {"own.cedar": text}, house_rules=False)
