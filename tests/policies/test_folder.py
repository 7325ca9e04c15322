"""The policies that are shipped: each case holds, each policy is needed, and the guardrails are the second lock."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from gateway.model.decision import DenyKind
from gateway.policy.bundle import Bundle
from gateway.policy.cases import Case, load_cases, run_cases
from gateway.policy.coverage import Coverage, coverage, unnoticed
from gateway.policy.engine import one_reason
from gateway.policy.guardrails import REQUIRED

ROOT = Path(__file__).parents[2]
POLICIES = ROOT / "policies"
SCHEMA = ROOT / "schema.cedarschema"
CASES = load_cases(POLICIES)
FILES = sorted({case.file for case in CASES})
PERMIT_ALL = '@id("all") permit (principal, action, resource);'
#: Who is on the network, and all that each of them does to others: a remote agent, what its grants name; this one has none.
REMOTE = {"Connection": {"session.end"}, "Bridge": {"bridge.serve", "bridge.chat"}}


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return Bundle.load(SCHEMA, POLICIES)


@pytest.fixture(scope="module")
def permits() -> Bundle:
    """The same policies without any guardrail."""
    paths = sorted(path for path in POLICIES.rglob("*.cedar") if path.parent.name != "guardrails")
    texts = {path.relative_to(POLICIES).as_posix(): path.read_text() for path in paths}
    return Bundle.from_text(SCHEMA.read_text(), texts)


@pytest.mark.parametrize("file", FILES)
def test_each_case_is_answered_as_it_says(bundle: Bundle, file: str) -> None:
    results = run_cases(bundle, [case for case in CASES if case.file == file])
    assert {r.case.name: r.failures for r in results if not r.passed} == {}


def test_each_case_names_all_that_decides() -> None:
    assert [case.name for case in CASES if not case.reason_exact] == []


def test_each_name_of_a_case_is_its_own() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


def test_each_file_of_policies_has_cases_beside_it() -> None:
    assert FILES == sorted(
        file.relative_to(POLICIES).with_suffix("").as_posix() + "_test.json" for file in POLICIES.rglob("*.cedar")
    )


def test_each_cast_is_used() -> None:
    used = {case.raw["entities_from"] for case in CASES}
    assert used == {path.relative_to(POLICIES).as_posix() for path in POLICIES.glob("casts/*.json")}


def test_each_action_of_the_schema_has_its_file(bundle: Bundle) -> None:
    paths = {f"{action.replace('.', '/')}.cedar" for action in bundle.actions}
    assert paths == {info.file for info in bundle.policies.values() if info.effect == "permit"}


def test_each_action_is_allowed_once_and_denied_once_and_each_policy_decides(bundle: Bundle) -> None:
    assert coverage(bundle, run_cases(bundle, CASES)) == Coverage(without_allow=(), without_deny=(), undecisive=())


def test_each_policy_is_missed_when_it_is_removed(bundle: Bundle) -> None:
    assert unnoticed(bundle, CASES) == ()


def test_the_forbids_are_the_guardrails(bundle: Bundle) -> None:
    assert {id_ for id_, info in bundle.policies.items() if info.effect == "forbid"} == REQUIRED


def test_each_reason_is_a_sentence(bundle: Bundle) -> None:
    assert [i.id for i in bundle.policies.values() if not (i.reason[0].isupper() and i.reason.endswith("."))] == []


def test_what_is_denied_is_denied_without_the_guardrails_too(permits: Bundle) -> None:
    denied = [replace(case, reason=frozenset()) for case in CASES if case.decision == "deny"]
    assert [r.case.name for r in run_cases(permits, denied) if r.verdict.allowed] == []


def test_a_resource_without_an_edge_to_its_organisation_is_nobodys(bundle: Bundle) -> None:
    assert [r.case.name for r in run_cases(bundle, _without_edges("resource")) if r.verdict.allowed] == []


def test_an_agent_without_an_edge_to_an_observer_list_does_nothing_to_a_peer(bundle: Bundle) -> None:
    agents = [
        c for c in _without_edges("principal") if c.request["principal"].startswith("Agent::") and c.action.startswith("peer.")
    ]
    assert agents
    assert [r.case.name for r in run_cases(bundle, agents) if r.verdict.allowed] == []


def test_the_operator_does_nothing_but_administration(bundle: Bundle) -> None:
    allowed = [case for case in CASES if case.decision == "allow" and not case.action.startswith("admin.")]
    peopled = [case for case in allowed if case.raw["entities_from"] in ("casts/household.json", "casts/memory.json")]
    asked = [replace(case, request={**case.request, "principal": 'Operator::"local"'}) for case in peopled]
    assert [r.case.name for r in run_cases(bundle, asked) if r.verdict.allowed] == []


@pytest.mark.parametrize("kind", REMOTE)
def test_whatever_is_permitted_who_is_on_the_network_does_only_its_own_acts(kind: str) -> None:
    """Of all that the cases ask about, by the guardrails alone, with everything permitted beside them."""
    texts = {path.name: path.read_text() for path in sorted(POLICIES.glob("guardrails/*.cedar"))}
    bundle = Bundle.from_text(SCHEMA.read_text(), {**texts, "all.cedar": PERMIT_ALL}, house_rules=False)
    results = run_cases(bundle, [_asked_from_the_network(case, kind) for case in CASES])
    assert {r.case.action for r in results if r.verdict.allowed} == REMOTE[kind]
    assert {r.verdict.deny_kind for r in results if not r.verdict.allowed} == {DenyKind.FORBIDDEN}
    assert {r.case.action for r in results} == bundle.actions


def test_an_agent_that_is_not_listed_hears_the_same_whether_a_peer_is_archived_or_paused(bundle: Bundle) -> None:
    heard: dict[str, set[str]] = {}
    for archived, paused in product((False, True), repeat=2):
        asked = [_of_an_unlisted_agent(case, archived, paused) for case in CASES if case.request["resource"].startswith("Peer::")]
        for result in run_cases(bundle, asked):
            reason = one_reason(result.verdict)
            assert reason is not None
            heard.setdefault(result.case.action, set()).add(reason.text)
    observed = {"peer.read", "peer.see_content", "peer.read_context", "peer.predict", "peer.record_event"}
    assert heard == {
        action: {"This agent is not on the observer list of this peer." if action in observed else "Only a human does this."}
        for action in heard
    }
    assert observed < heard.keys()


def _of_an_unlisted_agent(case: Case, archived: bool, paused: bool) -> Case:
    request = {**case.request, "principal": 'Agent::"unlisted"', "resource": 'Peer::"peer"'}
    uid, state = {"type": "Peer", "id": "peer"}, {"archived": archived, "reading_paused": paused}
    entities = [{**e, "attrs": e["attrs"] | state} if e["uid"] == uid else e for e in case.entities]
    return replace(case, request=request, entities=tuple(entities))


def _asked_from_the_network(case: Case, kind: str) -> Case:
    """A case asked by a remote agent, or a bridge, of the agent that it is about, where there is one."""
    type_, _, id_ = case.request["resource"].partition("::")
    [about] = [entity for entity in case.entities if entity["uid"] == {"type": type_, "id": id_.strip('"')}]
    unknown = {"type": "Agent", "id": "unknown"}
    home, person = ({"__entity": {"type": type_, "id": id_}} for type_, id_ in (("Org", "home"), ("Human", "unknown")))
    its_agent = about["attrs"].get("agent", {"__entity": about["uid"] if type_ == "Agent" else unknown})
    attrs = {"org": home, "agent": its_agent}
    if kind == "Connection":
        attrs |= {"active": True, "grants": [], "projects": [], "tiers": []}
    parents = [home["__entity"]]
    added = [
        {"uid": {"type": kind, "id": "asking"}, "attrs": attrs, "parents": parents},
        {"uid": unknown, "attrs": {"org": home, "active": True, "registered_by": person}, "parents": parents},
        {"uid": person["__entity"], "attrs": {"org": home}, "parents": parents},
    ]
    request = {**case.request, "principal": f'{kind}::"asking"'}
    return replace(case, request=request, entities=(*case.entities, *added), grants=())


def _without_edges(role: str) -> Iterator[Case]:
    """Yields the cases that allow, with every edge of the principal or the resource taken away, where it has one."""
    for case in CASES:
        type_, _, id_ = case.request[role].partition("::")
        uid = {"type": type_, "id": id_.strip('"')}
        bare = tuple({**entity, "parents": []} if entity["uid"] == uid else entity for entity in case.entities)
        if case.decision == "allow" and bare != case.entities:
            yield replace(case, entities=bare)
