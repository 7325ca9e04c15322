"""What a request needs validating for, and what of its context is read."""

from __future__ import annotations

from gateway.model.decision import DenyKind, Query
from gateway.model.entity import Entity, EntityUid, Value
from gateway.policy import guard
from gateway.policy.bundle import Bundle
from gateway.policy.engine import PolicyEngine
from gateway.policy.reading import context_paths, read_part, reads

SCHEMA = """
entity User;
entity Doc;
entity Level enum ["low", "high"];
action "see", "edit" appliesTo { principal: User, resource: [Doc, Level], context: { late: Bool } };
"""
PLAIN = SCHEMA.replace('entity Level enum ["low", "high"];', "entity Level;")
READING = """
@id("see") @reason("s") permit(principal, action == Action::"see", resource);
@id("edit") @reason("s") permit(principal, action == Action::"edit", resource) when { !context.late };
"""
ANN, DOC = EntityUid("User", "ann"), EntityUid("Doc", "one")


def engine(schema: str = PLAIN) -> PolicyEngine:
    return PolicyEngine(Bundle.from_text(schema, {"a.cedar": READING}, house_rules=False), salt=b"s")


def decided(
    over: PolicyEngine, action: str, context: dict[str, Value], resource: EntityUid = DOC
) -> tuple[bool, DenyKind | None]:
    verdict = over.decide(Query(ANN, action, resource, context), over.slice(Entity(ANN), Entity(resource)))
    return verdict.allowed, verdict.deny_kind


def test_a_policy_that_reads_the_context_sees_it_every_time() -> None:
    over = engine()
    answers = [decided(over, "edit", {"late": late}) for late in (False, True, False, True)]
    assert answers == [(True, None), (False, DenyKind.NOT_PERMITTED)] * 2


def test_an_invalid_context_is_invalid_also_after_valid_ones() -> None:
    over = engine()
    for action in ("see", "edit"):
        assert decided(over, action, {"late": True})[1] is not DenyKind.INVALID_REQUEST
        assert decided(over, action, {"late": "yes"}) == (False, DenyKind.INVALID_REQUEST)
        assert decided(over, action, {}) == (False, DenyKind.INVALID_REQUEST)


def test_a_type_that_the_action_does_not_apply_to_is_invalid_also_after_valid_ones() -> None:
    over = engine()
    assert decided(over, "see", {"late": True}) == (True, None)
    user_as_resource = over.decide(Query(ANN, "see", ANN, {"late": True}), over.slice(Entity(ANN)))
    assert user_as_resource.deny_kind is DenyKind.INVALID_REQUEST


def test_with_enumerated_ids_nothing_is_remembered_as_valid() -> None:
    over = engine(SCHEMA)
    decided(over, "see", {"late": True}, EntityUid("Level", "low"))
    assert over._valid == set()
    assert engine()._valid == set()


def test_what_is_remembered_as_valid_is_bounded() -> None:
    over = engine()
    over._valid.update(("see", "User", "Doc", str(number)) for number in range(4_097))
    decided(over, "see", {"late": True})
    assert len(over._valid) == 1


def paths(condition: str) -> set[tuple[str, ...]]:
    return set(context_paths(guard.parse(f"permit (principal, action, resource) when {{ {condition} }};")))


def test_what_a_policy_reads_of_the_context_is_found_however_it_is_read() -> None:
    assert paths("principal == resource") == set()
    assert paths("context.clock.minute > 1 && context has now") == {("clock", "minute"), ("now",)}
    assert paths("context has clock.minute || context.a.b.c") == {("clock",), ("clock", "minute"), ("a", "b", "c")}
    assert paths("context == resource.box || [context.a].contains(principal.box)") == {(), ("a",)}
    assert paths("(if resource.x then context else context.box).name == 1") == {(), ("box",)}


def test_a_part_of_a_context_has_all_that_is_at_the_paths_and_no_entity_is_cut() -> None:
    box, friend = '"box":{"name":"n","open":{"deep":1}}', '"friend":{"__entity":{"id":"a","type":"User"}}'
    context = f'{{{box},{friend},"now":{{"__extn":{{"arg":"x","fn":"ip"}}}}}}'
    assert read_part(context, frozenset()) == "{}"
    assert read_part(context, frozenset({()})) == context
    assert read_part(context, frozenset({("box", "open", "deep")})) == '{"box":{"open":{"deep":1}}}'
    assert read_part(context, frozenset({("box", "gone"), ("gone",)})) == '{"box":{}}'
    assert read_part(context, frozenset({("friend", "name")})) == f"{{{friend}}}"
    assert read_part(context, frozenset({("box",), ("box", "name")})) == f"{{{box}}}"


def followed(condition: str) -> set[str]:
    return set(reads([guard.parse(f"permit (principal, action, resource) when {{ {condition} }};")]).followed)


def test_an_attribute_is_followed_where_something_is_read_of_what_it_names() -> None:
    assert followed("resource.owner == principal && principal != resource.other") == set()
    assert followed("principal in resource.readers && resource.all.contains(principal)") == set()
    assert followed("resource.owner in resource.readers") == {"owner"}
    assert followed("resource.owner.boss == principal") == {"owner"}
    assert followed("resource.owner has boss") == {"owner"}
    assert followed("resource has owner.boss.level") == {"owner", "boss"}
    assert followed("(if resource.open then resource.owner else principal) == principal") == {"open", "owner"}
    assert followed("[resource.owner].contains(principal)") == {"owner"}
    assert followed("resource.owner is User in resource.readers") == {"owner"}
    assert followed('resource.owner.hasTag("a")') == {"owner"}
