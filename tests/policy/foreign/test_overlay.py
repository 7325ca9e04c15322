"""What was sent of entities: each question is decided over it as if it were stored so, and over nothing that others sent."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import cedarpy
import pytest

from gateway.model.asked import Asked, Named, Unusable
from gateway.model.decision import DenyKind
from gateway.model.entity import EntityUid
from gateway.policy.foreign.overlay import AS_STORED, Laid, layered
from gateway.policy.foreign.store import ForeignStore, Prepared
from tests.policy.foreign.stores import SCHEMA, a_store, entity, ref, written
from tests.policy.foreign.test_search import ROUNDS

Sent = dict[str, Any]


def sent_of(chance: random.Random, type_: str) -> Sent | None:
    """Some properties, or none, with values that are stored of others."""
    values: Sent = {"level": chance.randrange(4)}
    if type_ == "User":
        values |= {"boss": f"u{chance.randrange(5)}", "tags": chance.sample(["red", "blue"], chance.randrange(3))}
    else:
        values |= {"owner": f"u{chance.randrange(5)}", "open": chance.random() < 0.5, "kind": chance.choice(["plan", "note"])}
    names = chance.sample(sorted(values), chance.randrange(len(values) + 1))
    return {name: values[name] for name in names} if names else None


def some_questions(chance: random.Random, count: int) -> list[Asked]:
    asked = []
    for _ in range(count):
        subject = Named("User", f"u{chance.randrange(3)}", sent_of(chance, "User"))
        resource = Named("Doc", f"d{chance.randrange(3)}", sent_of(chance, "Doc"))
        asked.append(Asked(subject, chance.choice(["see", "edit"]), resource))
    return asked


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_neighbours_change_nothing_whatever_they_send_of_the_same_entities(tmp_path: Path, seed: int) -> None:
    store = a_store(tmp_path / "store", seed)
    items = some_questions(random.Random(seed), 40)
    assert store.decide_all(items) == [store.decide(item) for item in items]


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_what_was_sent_counts_as_if_it_were_stored(tmp_path: Path, seed: int) -> None:
    store = a_store(tmp_path / "store", seed)
    entities = json.loads((tmp_path / "store" / "entities.json").read_text("utf-8"))
    policies = (tmp_path / "store" / "policies" / "all.cedar").read_text("utf-8")
    for at, asked in enumerate(some_questions(random.Random(seed), 6)):
        laid = [_with(each, asked.subject, asked.resource) for each in entities]
        plain = asked._replace(subject=Named(*asked.subject[:2]), resource=Named(*asked.resource[:2]))
        assert store.decide(asked) == written(tmp_path / str(at), SCHEMA, policies, laid).decide(plain)


def _with(stored: Sent, *named: Named) -> Sent:
    attrs = dict(stored["attrs"])
    for each in named:
        if stored["uid"] == {"type": each.type, "id": each.id}:
            attrs |= {n: ref("User", v) if n in ("owner", "boss") else v for n, v in (each.properties or {}).items()}
    return {**stored, "attrs": attrs}


@pytest.fixture(scope="module")
def owned(tmp_path_factory: pytest.TempPathFactory) -> ForeignStore:
    schema = """entity User = { level: Long }; entity Doc = { owner: User, from?: ipaddr, size?: Long };
    action see appliesTo { principal: [User], resource: [Doc] };"""
    policy = """permit (principal, action, resource) when { principal.level < resource.owner.level };
    forbid (principal, action, resource) when { resource has from && resource.from.isLoopback() };"""
    people = [entity("User", name, level=level) for name, level in (("ann", 1), ("bob", 2))]
    docs = [entity("Doc", name, owner=ref("User", "bob")) for name in ("one", "two")]
    return written(tmp_path_factory.mktemp("owned") / "store", schema, policy, [*people, *docs])


def see(subject: str, sent: Sent | None, resource: str = "one", of_resource: Sent | None = None) -> Asked:
    return Asked(Named("User", subject, sent), "see", Named("Doc", resource, of_resource))


def test_what_is_sent_of_an_entity_is_not_seen_by_a_neighbour_that_comes_to_it_elsewhere(owned: ForeignStore) -> None:
    raised, plain = see("ann", {"level": 3}), see("ann", {"level": 0}, "two")
    owner_lowered = see("bob", {"level": 0}, "two", {"owner": "ann"})
    expected = [False, True, True]
    for items, wanted in (
        ([raised, plain, owner_lowered], expected),
        ([owner_lowered, plain, raised], expected[::-1]),
    ):
        assert [owned.decide(item).allowed for item in items] == wanted
        assert [ruled.allowed for ruled in owned.decide_all(items)] == wanted  # type: ignore[union-attr]


@pytest.mark.parametrize("sent", [{"level": 1}, {"level": None}, {"unheard": 7}, {}])
def test_what_makes_no_difference_is_not_laid_over(owned: ForeignStore, sent: Sent) -> None:
    for asked in (see("ann", sent), see("ann", None, "one", {"size": 3, "owner": {"type": "User", "id": "bob"}})):
        prepared = owned.prepare(asked)
        assert isinstance(prepared, Prepared)
        assert prepared.laid is AS_STORED
        assert owned.decide(asked).allowed


def test_a_value_that_cedar_does_not_take_is_refused_for_its_own_question_alone(owned: ForeignStore) -> None:
    wrong = see("ann", None, "one", {"from": "::ffff:10.0.0.1"})
    good, local = see("ann", None, "two", {"from": "10.0.0.1"}), see("ann", None, "two", {"from": "127.0.0.1"})
    answers = owned.decide_all([good, wrong, local, good])
    assert [isinstance(answer, Unusable) or answer.allowed for answer in answers] == [True, True, False, True]
    assert isinstance(answers[1], Unusable)


class PanicException(BaseException):
    """Named like that of the engine."""


def test_a_question_over_which_the_engine_panics_is_a_no_and_its_neighbours_are_answered(
    owned: ForeignStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = cedarpy.is_authorized_batch

    def panics(requests: list[dict[str, Any]], *others: Any) -> object:
        if any(request["resource"]["id"] == "two" for request in requests):
            raise PanicException
        return ask(requests, *others)

    monkeypatch.setattr(cedarpy, "is_authorized_batch", panics)
    answers = owned.decide_all([see("ann", None), see("ann", None, "two"), see("ann", {"level": 0})])
    assert [(a.allowed, a.deny_kind) for a in answers if not isinstance(a, Unusable)] == [
        (True, None),
        (False, DenyKind.EVALUATION_ERROR),
        (True, None),
    ]


def laid_at_random(chance: random.Random) -> Laid:
    reached = [EntityUid("User", str(number)) for number in range(6) if chance.random() < 0.4]
    made = {uid: chance.choice(["one", "another"]) for uid in reached if chance.random() < 0.5}
    return Laid(made, frozenset(reached))


def differ(one: Laid, other: Laid) -> bool:
    """Whether there is something that both come to, and not as the same."""
    return any(one.made.get(uid) != other.made.get(uid) for uid in one.reached & other.reached)


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_question_is_in_the_first_layer_in_which_nothing_is_as_it_is_not_for_it(seed: int) -> None:
    chance = random.Random(seed)
    laid = [laid_at_random(chance) for _ in range(60)]
    wanted: list[list[int]] = []
    for place, each in enumerate(laid):
        fitting = (places for places in wanted if not any(differ(each, laid[other]) for other in places))
        found = next(fitting, None)
        if found is None:
            wanted.append([place])
        else:
            found.append(place)
    layers = layered(laid)
    assert [places for _, places in layers] == wanted
    for layer, places in layers:
        assert layer.reached == frozenset().union(*(laid[place].reached for place in places))
        assert layer.made == {uid: text for place in places for uid, text in laid[place].made.items()}


class Counted(EntityUid):
    """Counts how often any of it is looked up."""

    looked_up = 0

    def __hash__(self) -> int:
        Counted.looked_up += 1
        return super().__hash__()


def test_placing_questions_that_all_differ_takes_no_more_for_each_the_more_there_are() -> None:
    taken = []
    for count in (250, 1_000):
        uid = Counted("User", "ann")
        laid = [Laid({uid: str(number)}, frozenset((uid,))) for number in range(count)]
        before = Counted.looked_up
        assert [places for _, places in layered(laid)] == [[place] for place in range(count)]
        taken.append((Counted.looked_up - before) / count)
    assert taken[1] <= taken[0]
