"""Engines: one for everybody, one an organisation, and shadows."""

from __future__ import annotations

import pytest

from gateway.model.entity import EntityUid
from gateway.model.records import Peer
from gateway.policy import organisation
from gateway.policy.bundle import Bundle
from gateway.policy.engine import PolicyEngine
from gateway.policy.engines import CLOSED, Engines
from gateway.policy.finding import PolicyError
from gateway.policy.organisation import extend
from gateway.policy.shadow import differing
from tests.policy.builders import in_a_process
from tests.world import AWAY, HOME, NOW, World, agent_caller, an_org_policy, caller, session, shipped

FORBID = 'forbid (principal is Agent, action == Action::"peer.read", resource);'
#: How many megabytes more than the texts of the product two hundred policies about everything take.
MEASURED = """
from gateway.policy.organisation import extend
from tests.world import shipped

def held():
    with open("/proc/self/statm") as read:
        return int(read.read().split()[1]) * 4 // 1024

base = shipped()
before = held()
extended = extend(base, {"p": "forbid (principal, action, resource);" * 200})
print(held() - before)
"""
PERMIT_ALL = "permit (principal, action, resource);"


def own(bundle: Bundle, stored: str) -> dict[str, str]:
    return {id_: info.text for id_, info in bundle.policies.items() if id_.startswith(f"org/{stored}/")}


def findings(text: str) -> list[str]:
    with pytest.raises(PolicyError) as refused:
        extend(shipped(), {"p": text})
    return [f"{found.line} {found.message}" for found in refused.value.findings]


# -- text of an organisation


def test_each_policy_of_a_text_gets_an_id_a_reason_and_its_bound_where_it_stands() -> None:
    text = (
        f"// a comment\n{FORBID}\n"
        '@reason("So be (it.")\n@id("named/here")\nforbid (principal, action, resource)\nwhen { true };'
    )
    bundle = extend(shipped(), {"p": text})
    bound = ' unless { action in Action::"governance" }'
    assert own(bundle, "p") == {
        "org/p/1": f'@id("org/p/1") @reason("A policy of the organisation forbids this.") {FORBID[:-1]}{bound};',
        "org/p/named/here": '@reason("So be (it.")\n@id("org/p/named/here")\nforbid (principal, action, resource)'
        + f"{bound}\nwhen {{ true }};",
    }
    assert [bundle.policies[id_].line for id_ in ("org/p/1", "org/p/named/here")] == [2, 3]


def test_permits_are_checked_and_left_out() -> None:
    text = f"{PERMIT_ALL} {FORBID}"
    assert own(extend(shipped(), {"p": text}), "p").keys() == {"org/p/2"}
    assert extend(shipped(), {"p": PERMIT_ALL}).hash == shipped().hash
    assert [organisation.holds_permits(found) for found in (text, FORBID, f'@id("permit") {FORBID}')] == [True, False, False]


def test_an_extended_bundle_is_the_one_that_its_body_is_read_as() -> None:
    bundle = extend(shipped(), {"p": FORBID, "q": f"{PERMIT_ALL} forbid (principal, action, resource);"})
    texts = {id_: info.text for id_, info in bundle.policies.items()}
    again = Bundle.from_text(bundle.schema_text, texts, house_rules=False)
    assert (again.hash, again.members) == (bundle.hash, bundle.members)
    assert bundle.hash != extend(shipped(), {"p": FORBID}).hash != shipped().hash


@pytest.mark.parametrize("condition", ["true", "9223372036854775807 + context.clock.weekday > 0"])
def test_no_policy_of_an_organisation_speaks_of_governance_not_even_one_that_errs(condition: str) -> None:
    bundle = extend(shipped(), {"p": f"forbid (principal, action, resource) when {{ {condition} }};"})
    world = World(bundle)
    owner = session(caller("owner"))
    assert not world.access.ask(owner, "org.read_settings", world.org).allowed
    assert world.access.ask(owner, "policy.list", world.org).allowed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "0 holds no policy"),
        ("\n\npermit", "3 unexpected end of input"),
        ('\n@id("guardrails/observers") ' + FORBID, "2 `@id` is reserved: none of an organisation starts with `guardrails/`"),
        ('@id("org/read_settings/owner_or_admin") ' + FORBID, "1 `@id` is reserved: none of an organisation starts with"),
        ('@id("a b") ' + FORBID, "1 `@id` is not made of letters, digits and `_.-/`, at most 100"),
        ('@id("x") ' + FORBID + '@id("x")' + FORBID, "1 is also the id of org/p:1"),
        ("@id " + FORBID, "1 `@id` is not made of letters, digits and `_.-/`, at most 100"),
        ('@id("a") @id("b") ' + FORBID, "1 duplicate annotation: @id"),
        ('@precedence("1") ' + FORBID, "1 `@precedence` is for policies of the product"),
        ('@reason_code("paused") ' + FORBID, "1 `@reason_code` is for policies of the product"),
        ('@reason("a\nb") ' + FORBID, "1 `@reason` holds a character that is not seen"),
        ('@reason("a\\u{202e}b") ' + FORBID, "1 `@reason` holds a character that is not seen"),
        ('@reason("a\\r\\nb") ' + FORBID, "1 `@reason` holds a character that is not seen"),
        ('@reason("a\u2028b") ' + FORBID, "1 `@reason` holds a character that is not seen"),
        (f'@reason("{"x" * 501}") ' + FORBID, "1 `@reason` is longer than 500 characters"),
        ('permit (principal, action == Action::"policy.promote", resource);', "1 speaks of no action that"),
        ('permit (principal, action in Action::"governance", resource);', "1 speaks of no action that"),
        ('permit (principal, action == Action::"memory.read", resource) when { resource.agent.active };', "1 cannot be turned"),
        ("permit (principal, action, resource) when { context.nothing };", "1 attribute `nothing`"),
    ],
)  # fmt: skip
def test_a_text_that_must_not_decide_is_refused_with_its_line(text: str, expected: str) -> None:
    assert findings(text)[0].startswith(expected)


def test_an_id_of_the_product_is_another_one_here() -> None:
    assert own(extend(shipped(), {"p": f'@id("peer/read/observer") {FORBID}'}), "p").keys() == {"org/p/peer/read/observer"}


@pytest.mark.parametrize(("name", "wrong"), [("BOUND", " unless { false }"), ("PREFIX", "other/")])
def test_what_cedar_reads_otherwise_than_it_was_written_is_refused(
    name: str, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewritten = organisation._policy
    monkeypatch.setattr(organisation, "_policy", lambda *given: rewritten(*given).replace(getattr(organisation, name), wrong, 1))
    assert findings(FORBID) == ["1 cannot be told apart from other policies"]


def test_all_texts_together_have_a_limit() -> None:
    long = FORBID + "\n// " + "x" * 250_000
    with pytest.raises(PolicyError, match="all policies of the organisation together"):
        extend(shipped(), {str(number): long for number in range(9)})
    with pytest.raises(PolicyError, match="longer than 262144 bytes"):
        extend(shipped(), {"p": FORBID + " " * 262_144})


def test_a_text_and_an_organisation_have_so_many_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    extend(shipped(), {"p": FORBID * 200})
    assert findings(FORBID * 201) == ["0 more than 200 policies"]
    monkeypatch.setattr(organisation, "MAX_POLICIES", 3)
    extend(shipped(), {"p": FORBID * 2, "q": FORBID})
    with pytest.raises(PolicyError, match="the organisation has more than 3 policies"):
        extend(shipped(), {"p": FORBID * 2, "q": FORBID * 2})


def test_what_an_organisation_writes_is_not_held_for_each_action_before_one_is_asked() -> None:
    done = in_a_process(MEASURED)
    assert done.stderr == ""
    assert int(done.stdout) < 48


def test_a_policy_is_told_by_the_stored_one_it_comes_from() -> None:
    assert [organisation.stored_id(id_) for id_ in ("org/p/1", "peer/read/observer")] == ["p", None]


# -- shadows


def test_two_bundles_differ_in_the_actions_about_which_any_policy_is_another() -> None:
    one, same = extend(shipped(), {"p": FORBID}), extend(shipped(), {"p": FORBID})
    other = extend(shipped(), {"p": FORBID.replace("Agent", "Human"), "q": "forbid (principal, action, resource);"})
    assert differing(one, same) == frozenset()
    assert differing(one, shipped()) == differing(shipped(), one) == {"peer.read"}
    assert differing(one, extend(shipped(), {"p": FORBID.replace("Agent", "Human")})) == {"peer.read"}
    assert differing(one, other) == frozenset(one.members)


# -- engines


def engines() -> Engines:
    return Engines(PolicyEngine(shipped(), salt=b"salt"))


def test_an_organisation_without_policies_is_decided_by_the_base() -> None:
    made = engines()
    assert (made.of(HOME), made.shadow_of(HOME)) == (made.base, None)
    made.put(HOME, made.build([], NOW))
    assert (made.of(HOME), made.shadow_of(HOME)) == (made.base, None)


def test_what_is_in_force_decides_and_what_is_in_the_shadow_is_asked_beside() -> None:
    made = engines()
    policies = [an_org_policy("one", FORBID), an_org_policy("two", FORBID, mode="shadow")]
    made.put(HOME, made.build(policies, NOW))
    shadow = made.shadow_of(HOME)
    assert shadow is not None
    assert [own(made.of(HOME).bundle, name).keys() for name in ("one", "two")] == [{"org/one/1"}, set()]
    assert [own(shadow.engine.bundle, name).keys() for name in ("one", "two")] == [{"org/one/1"}, {"org/two/1"}]
    assert list(shadow.tallies) == ["two"]
    assert made.of(AWAY) is made.base


def test_engines_share_their_slices() -> None:
    world = World()
    made = world.access.engines
    made.put(HOME, made.build([an_org_policy("one", FORBID)], NOW))
    assert not world.access.ask(session(agent_caller()), "peer.read", world.peer).allowed
    made.put(HOME, made.build([], NOW))
    assert world.access.ask(session(agent_caller()), "peer.read", world.peer).allowed
    assert world.engine.built == 1


def test_a_decision_by_policies_that_were_replaced_does_not_stand() -> None:
    world = World()
    made, asked = world.access.engines, session(agent_caller())
    world.access.authorize(asked, "peer.read", world.peer)
    other = session(agent_caller("foreign", AWAY))
    world.access.authorize(other, "peer.read", _listed(world))
    assert world.access.stands(asked, NOW)
    made.put(HOME, made.build([an_org_policy("one", 'forbid (principal, action == Action::"session.end", resource);')], NOW))
    assert (world.access.stands(asked, NOW), world.access.stands(other, NOW)) == (False, True)


def _listed(world: World) -> Peer:
    world.observe("foreign", peer="abroad")
    return world.state.peers["abroad"]


def test_what_a_shadow_counted_is_kept_while_its_version_is_the_same() -> None:
    world = World()
    made = world.access.engines
    waiting = an_org_policy("one", FORBID, mode="shadow")
    made.put(HOME, made.build([waiting], NOW))
    assert world.access.ask(session(agent_caller()), "peer.read", world.peer).allowed
    made.put(HOME, made.build([waiting, an_org_policy("two", PERMIT_ALL)], NOW))
    shadow = made.shadow_of(HOME)
    assert shadow is not None
    assert shadow.tallies["one"].lose.principals == {EntityUid("Agent", "agent"): 1}


def test_a_new_base_replaces_everything_at_once() -> None:
    made = engines()
    policies = [an_org_policy("one", FORBID)]
    made.put(HOME, made.build(policies, NOW))
    base = made.base.sibling(shipped().without("peer/read/observer"))
    made.failure = "before"
    made.replace(base, made.build_all(policies, NOW, on=base), NOW)
    assert [made.base, made.failure, made.loaded_at] == [base, None, NOW]
    assert "peer/read/observer" not in made.of(HOME).bundle.policies
    assert own(made.of(HOME).bundle, "one").keys() == {"org/one/1"}


BROKEN = "forbid (principal, action, resource) when { context.gone };"


def test_an_organisation_whose_policies_load_no_more_is_closed_and_can_mend_them_and_others_go_on() -> None:
    world = World()
    made = world.access.engines
    made.put_all(made.build_all([an_org_policy("one", BROKEN), an_org_policy("far", FORBID, org_id=AWAY)], NOW))
    owner = session(caller("owner"))
    assert "attribute `gone`" in str(made.own(HOME).failure)
    assert (made.own(AWAY).failure, own(made.of(AWAY).bundle, "far").keys()) == (None, {"org/far/1"})
    refused = world.access.ask(owner, "org.read_settings", world.org)
    assert (refused.allowed, refused.reason.text if refused.reason else None) == (False, CLOSED.split('"')[1])
    assert world.access.ask(owner, "policy.update", an_org_policy("one", BROKEN)).allowed


def test_what_waits_and_loads_no_more_takes_nothing_away_from_what_decides() -> None:
    made = engines()
    waiting = an_org_policy("two", BROKEN, mode="shadow")
    made.put_all(made.build_all([an_org_policy("one", FORBID), waiting], NOW))
    assert (own(made.of(HOME).bundle, "one").keys(), made.shadow_of(HOME)) == ({"org/one/1"}, None)
    assert "attribute `gone`" in str(made.own(HOME).failure)
