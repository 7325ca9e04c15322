"""Replay: the log of a real gateway decided again, by itself and by others."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from gateway.model.caller import OPERATOR
from gateway.model.grant import Session
from gateway.operations.replay import replay_data
from gateway.policy.bundle import Bundle
from gateway.policy.replay import Report
from gateway.store import replaying
from gateway.store.entities import Installation
from tests.builders import START, Gateway, done
from tests.operations.asking import stored
from tests.operations.busy import busy
from tests.operations.evidence_rows import craft

PATH = "/v1/org/cedar-policies/replay"
READ = '@id("more/read") @reason("A security officer reads peers.") permit (principal in Role::"security", action == '
OPENED = READ + 'Action::"audit.list_own", resource);'
COUNTS = ("same", "gains", "loses", "other_rows", "other_policies", "erased", "not_replayable", "not_by_policy")


def bundle_with(gateway: Gateway, *added: str, without: tuple[str, ...] = ()) -> Bundle:
    own = gateway.services.access.engine.bundle
    texts = {f"{info.id}.cedar": info.text for info in own.policies.values() if info.id not in without}
    return Bundle.from_text(own.schema_text, {**texts, **{f"{n}.cedar": t for n, t in enumerate(added)}}, house_rules=False)


def replayed(gateway: Gateway, candidate: Bundle, **options: Any) -> Report:
    return asyncio.run(replay_data(gateway.services, candidate, since=options.get("since")))


def counts(report: Report) -> dict[str, int]:
    return {name: value for name, value in asdict(report).items() if name in COUNTS and value}


def test_the_same_policies_give_every_verdict_of_the_log_again(gateway: Gateway) -> None:
    busy(gateway)
    report = replayed(gateway, gateway.services.access.engine.bundle)
    denied = "SELECT count(*) FROM log WHERE kind = 'decision' AND resource_type = 'Memory' AND outcome = 'deny'"
    assert counts(report) == {"same": report.decided, "erased": stored(gateway, denied)[0][0]}
    assert (report.flips, report.opens) == ((), False)
    kinds = {kind for (kind,) in stored(gateway, "SELECT DISTINCT deny_kind FROM log WHERE kind = 'decision'")}
    assert kinds == {None, "forbidden", "not_permitted", "paused"}
    notes = stored(gateway, "SELECT details FROM log WHERE kind = 'decision'")
    assert all(any(f'"{note}":' in details for (details,) in notes) for note in ("also", "not_allowed", "planned"))
    rows = stored(gateway, "SELECT count(*) FROM log WHERE kind = 'decision'")[0][0]
    assert report.decided > rows > 100


def test_a_permit_that_is_added_shows_who_gains_what_and_by_which_policy(gateway: Gateway) -> None:
    assert gateway.security.get("/v1/org/settings").status_code == 403
    [[row_id]] = stored(gateway, "SELECT id FROM log WHERE action = 'org.read_settings' AND outcome = 'deny'")
    added = (
        '@id("more") permit (principal in Role::"security", action == Action::"org.read_settings", resource in principal.org);'
    )
    report = replayed(gateway, bundle_with(gateway, added.replace("resource in principal.org", "resource")))
    assert (report.gains, report.loses, report.opens) == (1, 0, True)
    [flip] = report.flips
    assert asdict(flip) == {
        "change": "gains",
        "principal": f'Human::"{gateway.security.id}"',
        "action": "org.read_settings",
        "resource_type": "Org",
        "before": (),
        "now": ("more",),
        "count": 1,
        "samples": (row_id,),
    }


def test_a_policy_that_is_taken_away_shows_who_loses(gateway: Gateway) -> None:
    for _ in range(7):
        done(gateway.owner.get("/v1/org/settings"), 200)
    done(gateway.admin.get("/v1/org/settings"), 200)
    report = replayed(gateway, bundle_with(gateway, without=("org/read_settings/owner_or_admin",)))
    assert {(flip.principal, flip.count, len(flip.samples), flip.before, flip.now) for flip in report.flips} == {
        (f'Human::"{gateway.owner.id}"', 7, 5, ("org/read_settings/owner_or_admin",), ()),
        (f'Human::"{gateway.admin.id}"', 1, 1, ("org/read_settings/owner_or_admin",), ()),
    }
    assert (report.gains, report.loses, report.opens) == (0, 8, False)


def test_a_wider_action_that_was_refused_on_the_way_shows_as_a_gain(gateway: Gateway) -> None:
    done(gateway.member.get("/v1/audit/events"), 200)
    added = '@id("more") permit (principal in Role::"member", action == Action::"audit.list", resource);'
    report = replayed(gateway, bundle_with(gateway, added))
    assert [(flip.change, flip.action, flip.now) for flip in report.flips] == [("gains", "audit.list", ("more",))]


def test_a_listing_whose_rows_are_chosen_otherwise_counts_as_one_that_opens(gateway: Gateway) -> None:
    agent = busy(gateway)
    forbid = '@id("less") forbid (principal is Agent, action == Action::"memory.search", resource is Memory) when '
    report = replayed(gateway, bundle_with(gateway, forbid + '{ resource.classification == "pii" };'))
    [flip] = [flip for flip in report.flips if flip.change == "other rows"]
    assert (flip.principal, flip.action, flip.resource_type) == (f'Agent::"{agent.id}"', "memory.search", "Memory")
    assert (report.gains, report.loses, report.other_rows, report.opens) == (0, 0, flip.count, True)


def test_a_remote_agent_is_decided_with_the_grants_that_it_had_then(gateway: Gateway) -> None:
    busy(gateway)
    reached = stored(
        gateway, "SELECT outcome, count(*) FROM log WHERE kind = 'decision' AND principal_type = 'Connection' GROUP BY ALL"
    )
    assert {outcome for outcome, _ in reached} == {"allow", "deny"}
    gateway.services.state.memory_grants.clear()
    report = replayed(gateway, gateway.services.access.engine.bundle)
    assert (report.gains, report.loses) == (0, 0)
    assert report.not_replayable > 0


def test_a_decision_about_an_erased_person_is_counted_and_not_decided(gateway: Gateway) -> None:
    agent = gateway.agent()
    peer = gateway.peer(observers=[agent])
    agent.get(f"/v1/peers/{peer['id']}")
    done(gateway.member.delete(f"/v1/peers/{peer['id']}/data", {"X-Auth-Confirm": gateway.member.password}), 200)
    report = replayed(gateway, gateway.services.access.engine.bundle)
    assert report.erased > 0
    assert counts(report) == {"same": report.decided, "erased": report.erased}


def test_what_the_gateway_withdrew_itself_is_no_ones_policy(gateway: Gateway) -> None:
    craft(gateway, 2, outcome="deny", deny_kind="stale", policies=())
    craft(gateway, 3, first=3)
    report = replayed(gateway, gateway.services.access.engine.bundle)
    assert (report.not_by_policy, report.not_replayable) == (2, 3)


def test_only_what_was_recorded_since_a_time_is_replayed(gateway: Gateway) -> None:
    done(gateway.owner.get("/v1/org/settings"), 200)
    gateway.clock.advance(timedelta(hours=1))
    done(gateway.owner.get("/v1/org/settings"), 200)
    all_, late = (replayed(gateway, bundle_with(gateway), since=since) for since in (None, START + timedelta(minutes=30)))
    assert (late.decided, all_.decided > late.decided) == (3, True)  # the two questions of the operator are late as well


def test_a_page_ends_where_the_next_begins(gateway: Gateway) -> None:
    busy(gateway)
    grant = gateway.services.access.authorize(Session(OPERATOR, "r", START), "admin.take_evidence", Installation())

    def walk(limit: int) -> list[str]:
        found, place = [], 0
        while True:
            read = partial(replaying.recorded, grant=grant, after=place, since=None, limit=limit)
            page = gateway.services.database.read_sync(read)
            found += [f"{row.id} {row.action}" for row in page.rows]
            if page.last_seq is None:
                return found
            place = page.last_seq

    assert walk(7) == walk(100_000)


# -- over HTTP


def test_a_text_is_tried_behind_the_guardrails_and_kept_nowhere(gateway: Gateway) -> None:
    agent = gateway.agent()
    peer = gateway.peer(observers=[])
    assert agent.get(f"/v1/peers/{peer['id']}").status_code == 403
    assert gateway.member.get("/v1/audit/events").status_code == 200
    own = '@id("no") forbid (principal, action == Action::"audit.list_own", resource);'
    text = f'@id("all") permit (principal, action, resource); {own}'
    before = gateway.services.access.engines.base.bundle.hash
    report = done(gateway.security.post(PATH, {"cedar_text": text}), 200)
    found = [(flip["change"], flip["action"], flip["now"]) for flip in report["flips"]]
    assert found == [("loses", "audit.list_own", ["org/candidate/no"])]
    assert (report["gains"], report["loses"], report["opens"], report["lines"]) == (0, 1, False, 1)
    assert done(gateway.security.post(PATH, {"policy_text": text, "since": "2030-01-01T00:00:00Z"}), 200)["decided"] == 0
    engines = gateway.services.access.engines
    org_id = gateway.services.state.humans[gateway.security.id].org_id
    assert engines.of(org_id).bundle.hash == engines.base.bundle.hash == before
    assert engines.shadow_of(org_id) is None


def test_only_the_newest_are_decided_again_when_a_limit_says_so(gateway: Gateway) -> None:
    text = '@id("none") forbid (principal, action == Action::"org.read_settings", resource);'
    for _ in range(5):
        done(gateway.owner.get("/v1/org/settings"), 200)
    report = done(gateway.auditor.post(PATH, {"cedar_text": text, "limit": 3}), 200)
    assert (report["decided"], report["loses"]) == (3, 3)


def test_another_organisation_is_not_in_it(gateway: Gateway) -> None:
    for _ in range(3):
        done(gateway.other_owner.get("/v1/org/settings"), 200)
    text = '@id("none") forbid (principal, action == Action::"org.read_settings", resource);'
    assert done(gateway.owner.post(PATH, {"cedar_text": text}), 200)["loses"] == 0
    assert done(gateway.other_owner.post(PATH, {"cedar_text": text}), 200)["loses"] == 3


@pytest.mark.parametrize("role", ["owner", "admin", "security", "auditor"])
def test_who_may_replay(gateway: Gateway, role: str) -> None:
    done(getattr(gateway, role).post(PATH, {"cedar_text": OPENED}), 200)
    [[noted]] = stored(gateway, "SELECT details FROM log WHERE action = 'policy.replay'")
    assert '"candidate":' in noted


def test_members_and_agents_may_not(gateway: Gateway) -> None:
    assert [who.post(PATH, {"cedar_text": OPENED}).status_code for who in (gateway.member, gateway.agent())] == [403, 403]


@pytest.mark.parametrize(
    "text",
    [
        "permit",
        "permit (principal, action, resource) when { unknown(1) };",
        'permit (principal, action == Action::"nothing", resource);',
        '@id("guardrails/observers") permit (principal, action, resource);',
        "permit (principal, action, resource) when { " + "(" * 600 + "true" + ")" * 600 + " };",
        "permit (principal == ?principal, action, resource);",
        "",
    ],
    ids=range(7),
)
def test_a_text_that_does_not_load_is_refused_with_its_findings(gateway: Gateway, text: str) -> None:
    answer = gateway.security.post(PATH, {"cedar_text": text})
    assert (answer.status_code, list(answer.json()["fields"])) == (400, ["cedar_text"])


def test_the_log_stays_as_it_is(gateway: Gateway) -> None:
    busy(gateway)
    before = Counter(stored(gateway, "SELECT id, hash FROM log"))
    replayed(gateway, bundle_with(gateway))
    assert Counter(stored(gateway, "SELECT id, hash FROM log")) - before == Counter(
        stored(gateway, "SELECT id, hash FROM log WHERE action = 'admin.take_evidence'")
    )
