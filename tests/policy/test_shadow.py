"""Shadows: where one only forbids more than what decides, what it forbids more is asked, and the outcome is the same."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterable
from functools import partial

from gateway.model.decision import Query, Verdict
from gateway.policy.bundle import Bundle
from gateway.policy.engine import PolicyEngine
from gateway.policy.organisation import stored_id
from gateway.policy.shadow import DIRECTORY, Shadow, Tally, added
from gateway.policy.slice import Slice
from tests.policy import builders as b
from tests.policy import random_cedar as r
from tests.world import NOW

STORES, REQUESTS = int(os.environ.get("PEERGATE_SHADOW_STORES", "120")), 12


def test_asking_what_is_added_counts_and_notes_what_asking_everything_does() -> None:
    """Of random policies two are in the shadow, as forbids: of the organisation, of the product, or one of each."""
    seen: Counter[str] = Counter()
    for seed in range(STORES):
        chance = random.Random(seed)
        store = r.a_store(chance)
        texts, _ = r.loaded(chance, store)
        waiting = {id_: chance.choice(("org/{}/1", "{}")).format(id_) for id_ in chance.sample(list(texts), min(2, len(texts)))}
        whole = Bundle.from_text(store.schema(), _forbidding(texts, waiting), house_rules=False)
        deciding = PolicyEngine(whole.without(*waiting.values()), salt=b"")
        more = added(deciding.bundle, whole)
        assert more is not None
        cheap = _shadow(deciding.sibling(whole), waiting.values(), deciding.sibling(more))
        plain = _shadow(cheap.engine, waiting.values(), None)
        slice = deciding.slice(*r.entities(chance, store))
        for number in range(REQUESTS):
            query = r.a_query(chance, store)
            verdict, ask = deciding.decide(query, slice), partial(_ask, query, slice)
            noted = [shadow.compare(verdict, ask, query.principal, str(number)) for shadow in (cheap, plain)]
            assert noted[0] == noted[1], (seed, query)
            other = ask(plain.engine)
            seen[f"{verdict.deny_kind or 'allow'}, {other.deny_kind or 'allow'}"] += 1
        assert (cheap.tallies, cheap.asked, cheap.failures) == (plain.tallies, plain.asked, plain.failures)
    pairs = ("allow, allow", "allow, forbidden", "allow, evaluation_error", "not_permitted, forbidden", "forbidden, forbidden")
    assert all(seen[pair] >= STORES // 20 for pair in pairs), seen


def test_what_is_denied_is_not_asked_a_second_time_where_forbids_are_added() -> None:
    stop = '@id("org/p/1") forbid (principal, action, resource);'
    deciding, whole = b.an_engine('@id("none") permit (principal, action, resource) when { false };'), b.an_engine(b.PERMIT, stop)
    slice = deciding.slice(b.an_org(), b.a_user(), b.a_doc())
    verdict = deciding.decide(b.a_query(), slice)
    shadow = _shadow(whole, ["org/p/1"], whole)
    assert shadow.compare(verdict, _nobody, b.ANN, "1") is None
    assert (shadow.asked, shadow.failures) == (1, 0)


def test_only_policies_of_one_kind_that_are_added_are_asked_alone() -> None:
    stop, twice = ('@id("stop") forbid (principal, action, resource)' + end for end in (";", " when { principal.active };"))
    permits, stopped, otherwise = (b.an_engine(*texts).bundle for texts in ((b.PERMIT,), (b.PERMIT, stop), (b.PERMIT, twice)))
    found = added(permits, stopped)
    assert found is not None
    assert found.policies.keys() == {"stop"}
    assert added(stopped, permits) is None
    assert added(stopped, otherwise) is None
    assert added(b.an_engine(stop).bundle, stopped) is None


def _forbidding(texts: dict[str, str], waiting: dict[str, str]) -> dict[str, str]:
    """The same policies, of which those that wait forbid and are called otherwise; each in a file of its own."""
    made = {id_: text.replace(" permit (", " forbid (", 1) if id_ in waiting else text for id_, text in texts.items()}
    return {f"{id_}.cedar": text.replace(f'@id("{id_}")', f'@id("{waiting.get(id_, id_)}")') for id_, text in made.items()}


def _shadow(engine: PolicyEngine, waiting: Iterable[str], alone: PolicyEngine | None) -> Shadow:
    tallies = {stored_id(id_) or DIRECTORY: Tally(1, NOW) for id_ in waiting}
    return Shadow(engine, tallies, frozenset(engine.bundle.members), alone)


def _ask(query: Query, slice: Slice, engine: PolicyEngine) -> Verdict:
    return engine.decide(query, slice)


def _nobody(_: PolicyEngine) -> Verdict:
    raise AssertionError("asked")
