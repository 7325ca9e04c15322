"""The encoding against the engine: of one store they say the same, and what the solver finds the engine confirms."""

from __future__ import annotations

import random
from collections.abc import Sequence
from decimal import Decimal

import pytest

from gateway.model.decision import Query
from gateway.model.entity import Entity, EntityUid, Value
from gateway.policy import schema
from gateway.policy.bundle import Bundle
from gateway.policy.engine import PolicyEngine
from gateway.policy.finding import PolicyError

pytest.importorskip("z3")

from gateway.policy.prove import counterexample
from gateway.policy.prove.logic import every, known, no
from gateway.policy.prove.scene import Question, Scene
from gateway.policy.prove.symbols import Record
from tests.policy import random_cedar
from tests.policy.pinning import pinned
from tests.policy.random_cedar import LONGS, MOMENTS, STRINGS, perhaps, some

SCHEMA = """
entity Org;
entity Group in [Group, Org];
entity User in [Group, Org] = {
  org: Org, active: Bool, level: Long, nick?: String, boss?: User, langs: Set<String>, friends?: Set<User>,
};
entity Doc in [Org] = {
  owner: User, level: Long, title: String, price?: decimal, due?: datetime, box?: { name: String, open?: Bool },
  words: Set<String>, readers: Set<User>,
} tags User;
type Moment = { n?: Long, friend?: User, now: datetime, at: { minute: Long } };
action "write";
action "read" appliesTo { principal: [User], resource: [Doc, User], context: Moment };
action "edit" in ["write"] appliesTo { principal: [User], resource: [Doc], context: Moment };
"""
LEAVES = (
    "principal.active",
    "principal == resource",
    "resource is Doc",
    'action == Action::"read"',
    'action in [Action::"write"]',
    'principal in Group::"g0"',
    'principal in [Group::"g1", Group::"ghost"]',
    'principal in Org::"o0"',
    "principal in principal.org",
    'principal is User in Group::"g0"',
    "resource in principal.org",
    "principal has boss && principal.boss.active",
    "principal has boss && principal.boss == resource",
    'principal has nick && principal.nick == "ann"',
    'principal has nick && principal.nick like "a*"',
    'principal has nick && principal.nick like "*n*"',
    'principal has boss && principal.boss has boss && principal.boss.boss in Group::"g1"',
    'principal has boss.nick && principal.boss.nick != "bob"',
    'principal.langs.contains("ann")',
    'principal.langs.containsAny(["bob", "ann"])',
    'principal.langs.containsAll(["bob", "ann"])',
    '["ann", "bob"].containsAll(principal.langs)',
    '["ann", "bob"].containsAny(principal.langs)',
    'principal.langs == ["ann"]',
    "principal.langs.isEmpty()",
    "principal has friends && principal.friends.contains(principal)",
    "principal.level > 1",
    "principal.level <= resource.level",
    "principal.level + 9223372036854775806 > 0",
    "principal.level - 9223372036854775807 < -3",
    "-(principal.level) >= 1",
    "context has n && context.n < 2",
    "context has n && context.n + principal.level != 2",
    "context has friend && context.friend in principal.org",
    "context.at.minute >= 1",
    'context.now < datetime("2026-01-01")',
    'context.now.offset(duration("1d12h")) >= datetime("2026-01-01T12:00:00+0100")',
    'context.now.durationSince(datetime("2026-01-01")) > duration("-1h")',
)
OF_A_DOC = (
    "resource.owner == principal",
    "resource.owner.active",
    'resource has price && resource.price.lessThan(decimal("1.5"))',
    'resource has price && decimal("0.5").greaterThanOrEqual(resource.price)',
    "resource has due && resource.due <= context.now",
    "resource has box",
    'resource has box && resource.box.name == "ann"',
    "resource has box.open && resource.box.open",
    'resource.hasTag("ann")',
    "resource.hasTag(resource.title)",
    'resource.hasTag("ann") && resource.getTag("ann") == principal',
    "resource.hasTag(resource.title) && resource.getTag(resource.title).active",
    "principal.langs.containsAny(resource.words)",
    "principal.langs.containsAll(resource.words)",
    "resource.words.contains(resource.title)",
    "principal in resource.readers",
    "(if principal.active then resource.owner else principal) == principal",
    '(if resource has box then resource.box.name else "bob") == resource.title',
)


def test_of_one_store_the_encoding_and_the_engine_say_the_same() -> None:
    """Each round is a random set of policies, a random store and all its requests."""
    for seed in range(25):
        chance = random.Random(seed)
        bundle = a_bundle(chance)
        for _ in range(3):
            check(bundle, a_store(chance), chance)


def test_what_the_solver_finds_the_engine_confirms() -> None:
    for seed in range(20):
        bundle = a_bundle(random.Random(1_000 + seed))
        types = schema.read(bundle.schema)
        for question in (Question("read", "User", "Doc"), Question("edit", "User", "Doc"), Question("read", "User", "User")):
            scene = Scene(bundle, question, types)
            for wanted in (True, False):
                allowed = scene.allowed(bundle)
                model = scene.model(allowed if wanted else no(allowed))
                assert scene.assumed == {}
                if model is not None:
                    found = counterexample.made(scene, model, ((bundle, wanted),), "found")
                    assert found.confirmed, (seed, question, wanted, found, bundle.policies)


def check(bundle: Bundle, store: Sequence[Entity], chance: random.Random) -> None:
    engine = PolicyEngine(bundle, salt=b"")
    slice = engine.slice(*store)
    types = schema.read(bundle.schema)
    resource = EntityUid(*chance.choice((("Doc", "d0"), ("Doc", "d1"), ("User", "u0"))))
    action = chance.choice(("read", "edit")) if resource.type == "Doc" else "read"
    query = Query(EntityUid("User", chance.choice(("u0", "u1"))), action, resource, a_context(chance))
    scene = Scene(bundle, Question(action, "User", resource.type), types)
    context = Record("context", (), types.actions[action].context)
    verdict = engine.decide(query, slice)
    same = every(
        scene.allowed(bundle) == known(verdict.allowed),
        *(scene.encoder.policy(tree).errs == known(id_ in verdict.errors) for id_, tree in scene.trees(bundle)),
    )
    store_and_request = pinned(scene.symbols, store, query, context)
    told = ({id_: info.text for id_, info in bundle.policies.items()}, store, query, verdict)
    assert scene.model(*store_and_request, same) is not None, told
    assert scene.model(*store_and_request, no(same)) is None, told


def a_bundle(chance: random.Random) -> Bundle:
    while True:
        texts = [f'@id("p{n}") {a_policy(chance)}' for n in range(chance.randint(1, 4))]
        try:
            return Bundle.from_text(SCHEMA, {"random.cedar": "\n".join(texts)}, house_rules=False)
        except PolicyError:  # a strict reading refuses some: an optional attribute, or types that never meet
            continue


def a_policy(chance: random.Random) -> str:
    doc = chance.random() < 0.7
    principal = chance.choice(("principal", "principal is User", 'principal == User::"u0"', 'principal in Group::"g1"'))
    action = chance.choice(("action", "action", 'action == Action::"read"', 'action in Action::"write"'))
    leaves = (*LEAVES, *OF_A_DOC * 2) if doc else LEAVES
    return random_cedar.a_policy(chance, (principal, action, f"resource{' is Doc' if doc else ''}"), leaves, depth=3)


def a_store(chance: random.Random) -> list[Entity]:
    orgs, groups, users = ([EntityUid(type_, f"{type_[0].lower()}{n}") for n in range(2)] for type_ in ("Org", "Group", "User"))
    made = [Entity(org) for org in orgs]
    made.append(Entity(groups[0], parents=tuple(chance.sample([groups[1], *orgs], chance.randint(0, 2)))))
    made.append(Entity(groups[1], parents=tuple(chance.sample(orgs, chance.randint(0, 1)))))
    for user in users:
        attrs: dict[str, Value] = {
            "org": chance.choice(orgs),
            "active": chance.random() < 0.5,
            "level": chance.choice(LONGS),
            "langs": some(chance, STRINGS),
        }
        perhaps(chance, attrs, nick=chance.choice(STRINGS), boss=chance.choice(users), friends=some(chance, users))
        made.append(Entity(user, attrs, tuple(chance.sample([*groups, *orgs], chance.randint(0, 2)))))
    for n in range(2):
        box: dict[str, Value] = {"name": chance.choice(STRINGS)}
        perhaps(chance, box, open=chance.random() < 0.5)
        values: dict[str, Value] = {
            "owner": chance.choice(users),
            "level": chance.choice(LONGS),
            "title": chance.choice(STRINGS),
            "words": some(chance, STRINGS),
            "readers": some(chance, users),
        }
        perhaps(chance, values, price=Decimal(chance.choice(("0.5", "1.5", "-1"))), due=chance.choice(MOMENTS), box=box)
        tags = {text: chance.choice(users) for text in some(chance, STRINGS)}
        made.append(Entity(EntityUid("Doc", f"d{n}"), values, tuple(chance.sample(orgs, chance.randint(0, 2))), tags))
    return made


def a_context(chance: random.Random) -> dict[str, Value]:
    context: dict[str, Value] = {"now": chance.choice(MOMENTS), "at": {"minute": chance.choice(LONGS)}}
    perhaps(chance, context, n=chance.choice(LONGS), friend=EntityUid("User", chance.choice(("u0", "u1"))))
    return context
