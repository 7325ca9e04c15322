"""A foreign store: what reaches Cedar, and what it says."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from gateway.model.asked import Asked, Named, Unusable
from gateway.model.decision import DenyKind
from gateway.policy.finding import PolicyError
from gateway.policy.foreign.store import ForeignStore
from tests.policy.foreign.stores import entity, ref, written

NAMESPACED = """
namespace App {
  type Place = { street: String, zip?: Long };
  entity Group in [Group];
  entity User in [Group] = { home?: Place, born?: datetime, age?: Long, boss?: User, shift?: duration, "odd name"?: Bool };
  entity Doc = { from?: ipaddr, friends?: Set<User>, rate?: Set<decimal> };
  action "look at", touch appliesTo { principal: [User], resource: [Doc], context: Place };
}
"""
TOUCHED = {
    "home": 'principal has home && principal.home.street == "High"',
    "born": 'principal has born && principal.born < datetime("2000-01-01")',
    "boss": 'principal has boss && principal.boss in App::Group::"top"',
    "shift": 'principal has shift && principal.shift > duration("1h")',
    "odd": 'principal has "odd name" && principal["odd name"]',
    "from": 'resource has from && resource.from.isInRange(ip("10.0.0.0/8"))',
    "friends": "resource has friends && resource.friends.contains(principal)",
    "rate": 'resource has rate && resource.rate.contains(decimal("1.5"))',
}
TYPES = "\n".join(
    f'@id("{name}") permit (principal, action == App::Action::"touch", resource) when {{ {clause} }};'
    for name, clause in TOUCHED.items()
)
TYPES += (
    '\n@id("zip") permit (principal, action == App::Action::"look at", resource) when { context has zip && context.zip == 7 };'
)
ENTITIES = [
    entity("App::Group", "top"),
    entity("App::User", "chief", ("App::Group", "top")),
    entity("App::User", "ann"),
    entity("App::Doc", "doc"),
]
ALIASES = 'user = "App::User"\n"a doc" = "App::Doc"\n'


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> ForeignStore:
    return written(tmp_path_factory.mktemp("app") / "store", NAMESPACED, TYPES, ENTITIES, ALIASES)


def touch(user: dict[str, object] | None = None, doc: dict[str, object] | None = None) -> Asked:
    return Asked(Named("user", "ann", user), "touch", Named("a doc", "doc", doc), None, {"street": "High"})


@pytest.mark.parametrize(
    ("user", "doc", "policy"),
    [
        ({"home": {"street": "High", "more": 1}}, None, "home"),
        ({"born": "1990-05-06"}, None, "born"),
        ({"born": "1999-12-31T23:30:00-01:00"}, None, None),
        ({"born": "2000-01-01T00:30:00+01:00"}, None, "born"),
        ({"boss": "chief"}, None, "boss"),
        ({"boss": {"type": "user", "id": "chief"}}, None, "boss"),
        ({"boss": {"type": "App::User", "id": "ann"}}, None, None),
        ({"shift": "1h1ms"}, None, "shift"),
        ({"shift": "59m"}, None, None),
        ({"odd name": True}, None, "odd"),
        (None, {"from": "10.2.3.4"}, "from"),
        (None, {"from": "192.0.2.0/24"}, None),
        (None, {"friends": ["chief", {"type": "user", "id": "ann"}]}, "friends"),
        (None, {"friends": ["chief"]}, None),
        (None, {"rate": [1, Decimal("1.5")]}, "rate"),
        ({"age": 5}, {}, None),
    ],
)
def test_each_value_is_of_the_type_that_the_schema_gives_it(
    app: ForeignStore, user: dict[str, object] | None, doc: dict[str, object] | None, policy: str | None
) -> None:
    assert app.decide(touch(user, doc)).policies == (() if policy is None else (policy,))


@pytest.mark.parametrize(
    ("user", "place"),
    [
        ({"home": "High"}, "subject.properties.home"),
        ({"home": {"street": 7}}, "subject.properties.home.street"),
        ({"born": "yesterday"}, "subject.properties.born"),
        ({"born": "1990-05-06T12:00:00"}, "subject.properties.born"),
        ({"born": 7}, "subject.properties.born"),
        ({"age": 2**63}, "subject.properties.age"),
        ({"age": Decimal("1.0")}, "subject.properties.age"),
        ({"age": True}, "subject.properties.age"),
        ({"boss": 7}, "subject.properties.boss"),
        ({"boss": {"type": "App::Group", "id": "top"}}, "subject.properties.boss.type"),
        ({"shift": "soon"}, "subject.properties.shift"),
        ({"shift": ""}, "subject.properties.shift"),
        ({"shift": "1d 2h"}, "subject.properties.shift"),
        ({"odd name": "yes"}, "subject.properties.odd name"),
    ],
)
def test_a_value_of_another_type_is_refused_by_its_place(app: ForeignStore, user: dict[str, object], place: str) -> None:
    with pytest.raises(Unusable) as refused:
        app.decide(touch(user))
    assert refused.value.place == place


@pytest.mark.parametrize(
    ("doc", "place"),
    [
        ({"from": "10.0.0.1%eth0"}, "resource.properties.from"),
        ({"from": "host"}, "resource.properties.from"),
        ({"from": "10.0.0.0/255.0.0.0"}, "resource.properties.from"),
        ({"from": "::ffff:10.0.0.1"}, "properties"),
        ({"friends": "ann"}, "resource.properties.friends"),
        ({"friends": [7]}, "resource.properties.friends[0]"),
        ({"rate": [1, "1.23456"]}, "resource.properties.rate[1]"),
        ({"rate": [Decimal("922337203685477.5808")]}, "resource.properties.rate[0]"),
    ],
)
def test_so_is_one_in_a_set(app: ForeignStore, doc: dict[str, object], place: str) -> None:
    with pytest.raises(Unusable) as refused:
        app.decide(touch(None, doc))
    assert refused.value.place == place


def test_an_object_without_what_it_requires_is_a_no(app: ForeignStore) -> None:
    assert app.decide(touch({"home": {"zip": 1}})).deny_kind is DenyKind.INVALID_REQUEST


def test_a_context_without_what_it_requires_is_a_no(app: ForeignStore) -> None:
    looked = Asked(Named("user", "ann"), "look at", Named("a doc", "doc"), None, {"zip": 7})
    assert app.decide(looked).deny_kind is DenyKind.INVALID_REQUEST
    assert app.decide(Asked(looked.subject, "look at", looked.resource, None, {"zip": 7, "street": "s"})).policies == ("zip",)


BLOCKED = """
entity Group;
entity User in [Group] = { note?: String, level?: Long };
entity Strict in [Group] = { level: Long };
entity Doc;
action see appliesTo { principal: [User, Strict], resource: [Doc] };
"""
FORBIDS = """
@id("all") permit (principal, action, resource);
@id("blocked") forbid (principal in Group::"blocked", action, resource);
@id("noted") forbid (principal is User, action, resource) when { principal has note && principal.note == "away" };
"""


def see(subject: Named, resource: Named | None = None) -> Asked:
    return Asked(subject, "see", resource or Named("Doc", "doc"))


@pytest.fixture(scope="module")
def blocked(tmp_path_factory: pytest.TempPathFactory) -> ForeignStore:
    stored = [
        entity("User", "in", ("Group", "blocked")),
        entity(
            "Group",
            "blocked",
        ),
        entity("Doc", "doc"),
    ]
    return written(tmp_path_factory.mktemp("blocked") / "store", BLOCKED, FORBIDS, stored)


def test_what_is_laid_over_an_entity_leaves_its_groups(blocked: ForeignStore) -> None:
    for properties in (None, {"level": 3}, {"note": "here"}):
        assert blocked.decide(see(Named("User", "in", properties))).policies == ("blocked",)


def test_what_is_sent_of_one_request_is_gone_in_the_next(blocked: ForeignStore) -> None:
    away, plain = see(Named("User", "out", {"note": "away"})), see(Named("User", "out"))
    assert [blocked.decide(one).allowed for one in (plain, away, plain, away)] == [True, False, True, False]
    assert [ruled.allowed for ruled in blocked.decide_all([away, plain, away])] == [False, True, False]  # type: ignore[union-attr]


def test_an_entity_that_cannot_be_made_of_what_was_sent_is_a_no(blocked: ForeignStore) -> None:
    made = [blocked.decide(see(Named("Strict", "new", sent))).deny_kind for sent in (None, {}, {"unheard": 1}, {"level": 1})]
    assert made == [DenyKind.INVALID_REQUEST] * 3 + [None]


def test_one_entity_that_is_sent_twice_must_be_sent_alike(tmp_path: Path) -> None:
    schema = "entity User = { a?: Long, b?: Long }; action see appliesTo { principal: [User], resource: [User] };"
    policy = "permit (principal, action, resource) when { principal has a && principal has b && resource has a };"
    store = written(tmp_path / "store", schema, policy, [entity("User", "u")])
    both = Asked(Named("User", "u", {"a": 1}), "see", Named("User", "u", {"a": 1, "b": 2}))
    assert store.decide(both).allowed
    with pytest.raises(Unusable):
        store.decide(Asked(Named("User", "u", {"a": 1}), "see", Named("User", "u", {"a": 2})))


def test_what_a_policy_reads_of_a_named_entity_is_there(tmp_path: Path) -> None:
    schema = """entity User = { boss?: User, level: Long }; entity Doc = { owner: User, size?: Long };
    action see appliesTo { principal: [User], resource: [Doc] };"""
    policy = """permit (principal, action, resource) when
    { resource.owner has boss && resource.owner.boss.level > 2 && User::"root".level == 9 };"""
    people = [
        entity("User", "root", level=9),
        entity("User", "chief", level=3),
        entity("User", "ann", level=1, boss=ref("User", "chief")),
    ]
    store = written(tmp_path / "store", schema, policy, [*people, entity("Doc", "d", owner=ref("User", "ann"))])
    for sent in (None, {"size": 1}, {"owner": "ann"}, {"owner": "chief"}):
        wanted = sent != {"owner": "chief"}
        assert store.decide(Asked(Named("User", "chief"), "see", Named("Doc", "d", sent))).allowed is wanted
    assert store.decide(Asked(Named("User", "chief"), "see", Named("Doc", "new", {"owner": "ann"}))).allowed


def test_what_is_kept_between_requests_does_not_grow_with_what_was_sent(tmp_path: Path) -> None:
    app = written(tmp_path / "store", NAMESPACED, TYPES, ENTITIES, ALIASES)
    kept = app.overlays._reach_stored.cache_info
    assert app.decide(touch()._replace(subject=Named("user", "n" * 1_000, {"odd name": True}))).allowed
    before = kept().currsize
    for number in range(10):
        assert app.decide(touch()._replace(subject=Named("user", f"new {number}", {"odd name": True}))).allowed
    assert kept().currsize == before


def test_a_policy_that_errs_makes_the_answer_no(tmp_path: Path) -> None:
    schema = "entity User = { n: Long }; entity Doc; action see appliesTo { principal: [User], resource: [Doc] };"
    policy = "permit (principal, action, resource); forbid (principal, action, resource) when { principal.n + 1 > 5 };"
    store = written(
        tmp_path / "store", schema, policy, [entity("User", "u", n=2**63 - 1), entity("User", "v", n=1), entity("Doc", "d")]
    )
    assert store.decide(Asked(Named("User", "u"), "see", Named("Doc", "d"))).deny_kind is DenyKind.EVALUATION_ERROR
    assert store.decide(Asked(Named("User", "v"), "see", Named("Doc", "d"))).allowed


def test_an_enumerated_type_holds_its_ids_and_no_other(tmp_path: Path) -> None:
    schema = 'entity User; entity Level enum ["low", "high"]; action pick appliesTo { principal: [User], resource: [Level] };'
    store = written(tmp_path / "store", schema, "permit (principal, action, resource);", [entity("User", "u")])
    for _ in range(2):
        answers = [store.decide(Asked(Named("User", "u"), "pick", Named("Level", id_))) for id_ in ("low", "middle")]
        assert [(answer.allowed, answer.deny_kind) for answer in answers] == [(True, None), (False, DenyKind.INVALID_REQUEST)]


def test_a_member_that_is_an_action_cannot_be_sent(tmp_path: Path) -> None:
    schema = "entity User = { did?: Action }; action see appliesTo { principal: [User], resource: [User] };"
    policy = 'permit (principal, action, resource) when { principal has did && principal.did == Action::"see" };'
    stored = [entity("User", "u", did={"__entity": {"type": "Action", "id": "see"}}), entity("User", "v")]
    store = written(tmp_path / "store", schema, policy, stored)
    assert store.decide(Asked(Named("User", "u"), "see", Named("User", "v"))).allowed
    assert not store.decide(Asked(Named("User", "v", {"did": "see"}), "see", Named("User", "v"))).allowed


def test_a_schema_that_is_not_read_in_full_is_no_store(tmp_path: Path) -> None:
    """Its type `N::X` has two meanings, and Cedar gives no text of such a schema."""
    schema = 'namespace N { entity X; type X = Long; entity L enum ["a"]; action see appliesTo { principal: X, resource: L }; }'
    with pytest.raises(PolicyError, match="schema: Cedar does not write it"):
        written(tmp_path / "store", schema, "permit (principal, action, resource);", [])


def test_a_type_of_ours_is_nothing_special_in_a_foreign_store(tmp_path: Path) -> None:
    schema = """entity Connection; entity Memory = { tags?: Set<String>, when?: datetime };
    action "memory_rows"; action "read" in ["memory_rows"] appliesTo { principal: [Connection], resource: [Memory] };"""
    policy = 'permit (principal, action, resource) unless { resource has when && resource.when > datetime("2020-01-01") };'
    store = written(tmp_path / "store", schema, policy, [entity("Connection", "c"), entity("Memory", "m")])
    assert store.decide(Asked(Named("Connection", "c"), "read", Named("Memory", "m"))).allowed
