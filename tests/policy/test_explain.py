from __future__ import annotations

from dataclasses import replace

from gateway.model.decision import DenyKind, Query, Verdict
from gateway.model.entity import Entity, EntityUid
from gateway.policy.bundle import Bundle
from gateway.policy.cases import load_cases, prepare
from gateway.policy.engine import PolicyEngine
from gateway.policy.explain import Cited, Explanation, Nearest, Unmet, cite, explain, explain_plan
from gateway.policy.grants import FORBID, FORBIDDEN, PERMITTED
from tests.policy import builders as b
from tests.world import ROOT


def asked(engine: PolicyEngine, query: Query | None = None, *entities: Entity) -> Explanation:
    return explain(engine, query or b.a_query(), engine.slice(b.an_org(), *(entities or (b.a_user(), b.a_doc()))))


def cited(id_: str, line: int, effect: str = "permit", **changes: object) -> Cited:
    return replace(Cited(id_, effect, "", None, None, "store.cedar", line), **changes)  # type: ignore[arg-type]


def policy(id_: str, condition: str, head: str = "principal, action, resource", effect: str = "permit") -> str:
    return f'@id("{id_}") {effect} ({head}) when {{ {condition} }};'


def test_an_allow_names_every_permit_with_its_reason_and_its_place() -> None:
    engine = b.an_engine(
        policy("b", "true"), '@id("a") @reason("Because.") @reason_code("why") ' + policy("", "true").partition(" ")[2]
    )
    because = cited("a", 2, reason="Because.", code="why")
    assert asked(engine) == Explanation(True, None, (because, cited("b", 1)), (), None)


def test_a_forbidden_request_names_the_forbids_in_the_order_in_which_a_reason_is_chosen() -> None:
    forbids = [
        policy("a", "true", effect="forbid"),
        *(f'@precedence("{n}") ' + policy(i, "true", effect="forbid") for i, n in (("b", 2), ("c", 1))),
    ]
    found = asked(b.an_engine(policy("open", "true"), *forbids))
    expected = (cited("c", 4, "forbid", precedence=1), cited("b", 3, "forbid", precedence=2), cited("a", 2, "forbid"))
    assert found == Explanation(False, DenyKind.FORBIDDEN, expected, (), None)


def test_an_error_names_the_policies_that_failed() -> None:
    found = asked(b.an_engine(policy("open", "true"), policy("big", "resource.level + 9223372036854775807 > 0")))
    assert found == Explanation(False, DenyKind.EVALUATION_ERROR, (cited("open", 1),), (cited("big", 2),), None)


def test_a_request_that_is_not_valid_is_not_explained_further() -> None:
    assert asked(b.an_engine(policy("open", "false")), b.a_query("unknown")) == Explanation(
        False, DenyKind.INVALID_REQUEST, (), (), None
    )


def test_a_default_deny_names_the_nearest_permit_and_the_first_thing_that_it_lacks() -> None:
    far = policy("far", "principal.level == 7 && resource.level == 7")
    head = '@id("near") @reason("Ann reads.") permit (principal, action, resource)'
    clauses = "when { principal.active }\nwhen\n{ principal == resource.owner && resource.level\n > 3 && resource.level > 0 };"
    near = f"{head}\n{clauses}"
    found = asked(b.an_engine(far, near))
    unmet = Unmet("resource.level > 3", 4, ("resource.level",), {"resource.level": "1"}, erred=False)
    assert found == Explanation(
        False, DenyKind.NOT_PERMITTED, (), (), Nearest(cited("near", 2, reason="Ann reads."), unmet, lacking=1)
    )


def nearest(*policies: str, query: Query | None = None) -> tuple[str, str, int]:
    found = asked(b.an_engine(*policies), query).nearest
    assert found is not None
    return found.policy.policy_id, found.unmet.text, found.lacking


def test_a_tie_goes_to_the_first_id() -> None:
    assert nearest(policy("b", "resource.level == 2"), policy("a", "resource.level == 3")) == ("a", "resource.level == 3", 1)


def test_a_permit_whose_scope_matches_is_nearer_than_one_whose_scope_does_not() -> None:
    other = policy("a", "true", 'principal == User::"bob", action, resource')
    assert nearest(other, policy("b", "resource.level == 2 && resource.level == 3")) == ("b", "resource.level == 2", 2)


def test_a_scope_that_does_not_match_is_said_as_a_condition() -> None:
    heads = {
        'principal == User::"bé\\"ob", action, resource': 'principal == User::"bé\\"ob"',
        'principal in Group::"g", action, resource': 'principal in Group::"g"',
        'principal is User in Group::"g", action, resource': 'principal in Group::"g"',
        'principal, action, resource == Doc::"e"': 'resource == Doc::"e"',
    }
    assert {head: nearest(policy("p", "true", head))[1] for head in heads} == heads


def test_a_permit_for_another_type_says_which() -> None:
    schema = b.SCHEMA.replace(
        'action "list" appliesTo { principal: [User]', 'entity Robot; action "list" appliesTo { principal: [User, Robot]'
    )
    text = policy("p", "principal.active", 'principal is User, action == Action::"list", resource')
    engine = b.an_engine(text, schema=schema)
    robot = EntityUid("Robot", "r")
    found = explain(engine, b.a_query("list", robot), engine.slice(b.an_org(), Entity(robot), b.a_user(), b.a_doc()))
    assert found.nearest == Nearest(
        cited("p", 1), Unmet("principal is User", 1, ("principal",), {"principal": 'Robot::"r"'}, erred=False), 2
    )


def test_a_permit_of_another_action_is_not_near() -> None:
    assert asked(b.an_engine(policy("p", "true", 'principal, action == Action::"edit", resource'))).nearest is None
    assert asked(b.an_engine(policy("p", "true", "principal, action, resource", "forbid")), b.a_query("read")).nearest is None


def test_an_unless_is_said_as_its_negation() -> None:
    text = '@id("p") permit (principal, action, resource) unless { principal.active || resource.level == 7 };'
    assert nearest(text) == ("p", "!(principal.active || resource.level == 7)", 1)


def test_what_cannot_be_evaluated_behind_what_is_false_is_not_what_is_named() -> None:
    assert nearest(policy("p", 'principal has nick && principal.nick == "a"')) == ("p", "principal has nick", 2)


def test_the_same_request_has_the_same_explanation() -> None:
    engine = PolicyEngine(SHIPPED, salt=b"")
    taken = prepare(engine, [case for case in CASES if case.action == "peer.link"])
    again = PolicyEngine(SHIPPED, salt=b"")
    assert [explain(engine, query, slice) for _, query, slice in taken] == [
        explain(again, query, slice) for _, query, slice in reversed(taken)
    ][::-1]


SHIPPED = Bundle.load(ROOT / "schema.cedarschema", ROOT / "policies")
CASES = load_cases(ROOT / "policies")


def of_the_shipped(name: str) -> Explanation:
    engine = PolicyEngine(SHIPPED, salt=b"")
    [(case, query, slice)] = prepare(engine, [case for case in CASES if case.name == name])
    return explain(engine, query, slice, case.grants)


def test_a_remote_agent_hears_which_grant_was_nearest() -> None:
    found = of_the_shipped("memory/grant: a row without all the tags that the grant asks for is not found")
    text = '(resource.tags).containsAll(["roadmap", "launch"])'
    assert found == Explanation(
        False,
        DenyKind.FORBIDDEN,
        (Cited(FORBID, "forbid", FORBIDDEN, None, None, "", 0),),
        (),
        Nearest(
            Cited("grant/g-tagged", "permit", PERMITTED, None, None, "", 0),
            Unmet(text, 0, ("resource.tags",), {"resource.tags": '["roadmap"]'}, erred=False),
            1,
        ),
    )


def test_a_remote_agent_that_is_granted_a_row_hears_by_what() -> None:
    found = of_the_shipped("memory/grant: what came over the connection itself is found")
    assert found == Explanation(True, None, (Cited("grant/g-alpha", "permit", PERMITTED, None, None, "", 0),), (), None)


def test_each_action_of_the_shipped_policies_that_is_not_permitted_has_a_nearest_permit() -> None:
    engine = PolicyEngine(SHIPPED, salt=b"")
    first = {case.action: case for case in CASES if case.deny_kind is DenyKind.NOT_PERMITTED}
    found = {
        case.action: explain(engine, query, slice, case.grants).nearest for case, query, slice in prepare(engine, first.values())
    }
    assert [action for action, near in found.items() if near is None or near.unmet.erred] == []
    assert len(found) > 50


def test_a_listing_is_explained_by_what_is_known_without_a_row() -> None:
    engine = PolicyEngine(SHIPPED, salt=b"")
    [case] = [case for case in CASES if case.name == "memory.search: the security team does not"]
    [(_, query, slice)] = prepare(engine, [case])
    verdict = Verdict(False, DenyKind.NOT_PERMITTED, (), (), ())
    found = explain_plan(SHIPPED, verdict, query, "Memory", slice)
    assert found.nearest is not None
    assert (found.nearest.policy.policy_id, found.nearest.lacking) == ("memory/search/owner_or_admin", 1)
    assert found.nearest.unmet.text == 'principal in [Role::"owner", Role::"admin"]'
    assert list(found.nearest.unmet.values) == ["principal", "ancestors(principal)"]


def test_where_all_that_is_known_without_a_row_is_met_nothing_is_nearest() -> None:
    engine = b.an_engine(policy("p", "principal.active && resource.level == 7"))
    verdict = Verdict(False, DenyKind.NOT_PERMITTED, (), (), ())
    slice = engine.slice(b.an_org(), b.a_user(), b.a_doc())
    assert explain_plan(engine.bundle, verdict, b.a_query(), "Doc", slice).nearest is None


def test_a_policy_is_cited_by_its_id_with_all_that_is_known_of_it() -> None:
    assert cite(SHIPPED, "guardrails/observers").line == 4
    grant = "grant/00000000-0000-4000-8000-000000000001"
    for bundle in (SHIPPED, None):
        assert cite(bundle, FORBID) == Cited(FORBID, "forbid", FORBIDDEN, None, None, "", 0)
        assert cite(bundle, grant) == Cited(grant, "permit", PERMITTED, None, None, "", 0)
        assert cite(bundle, "gone") == Cited("gone", "", "", None, None, "", 0)
