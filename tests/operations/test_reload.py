"""Hot reload: policies on the disk decide once they have passed what a start and their cases ask, and not before."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gateway import wiring
from gateway.operations.reload import ATTEMPTS, FINDINGS, note_deciding, reload
from gateway.operations.watch import policies as watch_policies
from gateway.policy import aside
from gateway.policy.bundle import SCHEMA, Bundle
from gateway.policy.cases import Case
from gateway.policy.engines import Engines, Own, Staged
from gateway.store.installation import keep_deciding
from gateway.store.writer import Unit
from gateway.wiring import create_data
from tests.builders import Client, Gateway, Response, done
from tests.operations.asking import restart, stored
from tests.operations.test_cedar_policies import write
from tests.world import ROOT

PATH = "/v1/admin/reload"
READ = "peer/read.cedar"


class OneOrg(Gateway):
    """A gateway of one organisation, which is its owner's to administer, that decides by a directory of its own."""

    def __init__(self, data: Path, policies: Path, **settings: object) -> None:
        create_data(data)
        self._open(data, policies=policies, **settings)
        self.owner = self.org("owner@sample.example")
        self.member = self.human("member")


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    directory = tmp_path / "policies"
    shutil.copytree(ROOT / "policies", directory)
    for cases in directory.rglob("*_test.json"):
        if cases.parent.name != "peer":
            cases.unlink()
    return directory


@pytest.fixture
def one(tmp_path: Path, policies: Path) -> Iterator[OneOrg]:
    made = OneOrg(tmp_path / "one", policies)
    yield made
    made.close()


def close_to_agents(policies: Path) -> None:
    """Take the permit away by which agents read a peer, and its cases with it."""
    text = (policies / READ).read_text()
    kept = [piece for piece in text.split("\n\n") if "observer" not in piece]
    (policies / READ).write_text("\n\n".join(kept).rstrip("\n") + "\n")
    (policies / "peer/read_test.json").unlink()


def read_by_an_agent(one: OneOrg) -> tuple[Client, str]:
    agent = one.agent()
    return agent, f"/v1/peers/{one.peer(observers=[agent])['id']}"


def hash_of(gateway: Gateway) -> str:
    return gateway.services.access.engines.base.bundle.hash


def test_changed_policies_decide_after_the_call_returns(one: OneOrg, policies: Path) -> None:
    agent, peer = read_by_an_agent(one)
    before = hash_of(one)
    assert agent.get(peer).status_code == 200
    close_to_agents(policies)
    assert agent.get(peer).status_code == 200
    answer = done(one.owner.post(PATH), 200)
    bundle = one.services.access.engines.base.bundle
    assert answer == {
        "bundle": bundle.hash,
        "previous": before,
        "policies": len(bundle.policies),
        "cases": answer["cases"],
        "in_shadow": False,
    }
    assert bundle.hash != before
    assert answer["cases"] > 100
    assert agent.get(peer).status_code == 403
    assert stored(one, "SELECT count(*) FROM bundles WHERE hash = $1", bundle.hash) == [(1,)]
    health = done(one.owner.get("/health"), 200)
    assert (health["bundle"], health["policies_failure"]) == (bundle.hash, None)
    assert stored(one, "SELECT count(*) FROM log WHERE action = 'admin.policies_reloaded'") == [(1,)]


def test_what_does_not_load_leaves_the_last_good_policies_and_says_so(one: OneOrg, policies: Path) -> None:
    agent, peer = read_by_an_agent(one)
    before = hash_of(one)
    (policies / READ).write_text("permit (principal, action, resource);\n")
    refused = one.owner.post(PATH)
    body = refused.json()
    assert (refused.status_code, body["title"]) == (409, "conflict")
    assert {found["file"] for found in body["findings"]} == {READ}
    assert f": {len(body['findings'])} findings, the first: {READ}:" in body["detail"]
    (policies / READ).write_text("permit\n")
    assert f": 1 finding, the first: {READ}:" in one.owner.post(PATH).json()["detail"]
    assert hash_of(one) == before
    assert agent.get(peer).status_code == 200
    assert READ in done(one.owner.get("/health"), 200)["policies_failure"]
    shutil.copy(ROOT / "policies" / READ, policies / READ)
    done(one.owner.post(PATH), 200)
    assert done(one.owner.get("/health"), 200)["policies_failure"] is None


def test_only_whoever_may_reload_is_told_what_did_not_load(one: OneOrg, policies: Path) -> None:
    auditor, other = one.human("auditor"), one.human("owner")
    (policies / READ).write_text("permit")
    assert one.owner.post(PATH).status_code == 409
    one.clock.advance(timedelta(hours=1))
    assert one.owner.post(PATH).status_code == 409
    assert READ in done(other.get("/health"), 200)["policies_failure"]
    told = "policies of the product have not been loaded since 2026-03-04T10:00:00Z"
    assert done(auditor.get("/health"), 200)["policies_failure"] == told
    one.org("owner@elsewhere.example")  # from now on nobody administers the installation over the network
    assert done(one.owner.get("/health"), 200)["policies_failure"] == told


def test_a_case_that_fails_keeps_the_policies_out(one: OneOrg, policies: Path) -> None:
    before = hash_of(one)
    cases = policies / "peer/read_test.json"
    read = json.loads(cases.read_text())
    [turned] = [case for case in read if case["decision"] == "allow"][:1]
    turned["decision"] = "deny"
    cases.write_text(json.dumps(read))
    findings = one.owner.post(PATH).json()["findings"]
    assert [found["file"] for found in findings] == ["peer/read_test.json"] * len(findings)
    assert turned["name"] in findings[0]["message"]
    assert hash_of(one) == before


@pytest.mark.parametrize("text", ["", "forbid (principal, action, resource) when { false };"])
def test_a_guardrail_that_is_not_the_shipped_one_keeps_the_policies_out(one: OneOrg, policies: Path, text: str) -> None:
    file = policies / "guardrails/observers.cedar"
    if text:
        file.write_text(file.read_text().partition("forbid")[0] + text + "\n")
    else:
        file.unlink()
    assert one.owner.post(PATH).status_code == 409


def test_files_of_cases_that_cannot_be_read_keep_the_policies_out(one: OneOrg, policies: Path) -> None:
    (policies / "peer/read_test.json").write_text("{")
    assert one.owner.post(PATH).status_code == 409
    shutil.rmtree(policies)
    assert one.owner.post(PATH).status_code == 409


def test_policies_of_organisations_are_laid_over_the_new_ones(one: OneOrg, policies: Path) -> None:
    agent, peer = read_by_an_agent(one)
    write(one.owner, mode="enforce")
    assert agent.get(peer).status_code == 403
    file = policies / "session/end.cedar"
    file.write_text(file.read_text().replace('@reason("', '@reason("So: '))
    done(one.owner.post(PATH), 200)
    refused = agent.get(peer)
    assert refused.json()["detail"] == "A policy of the organisation forbids this."


def test_only_an_owner_of_the_only_organisation_reloads(gateway: Gateway, one: OneOrg) -> None:
    for client in (gateway.owner, gateway.admin, gateway.security, gateway.member, gateway.agent(), one.member):
        assert client.post(PATH).status_code == 403


def test_the_operator_reloads_and_what_fails_is_none(one: OneOrg, policies: Path) -> None:
    done_ = asyncio.run(reload(one.services))
    assert done_ is not None
    assert done_["bundle"] == done_["previous"] == hash_of(one)
    assert stored(one, "SELECT principal_type FROM log WHERE action = 'admin.reload'") == [("Operator",)]
    (policies / READ).write_text("permit")
    assert asyncio.run(reload(one.services)) is None
    assert one.services.access.engines.failure is not None


def test_a_watch_loads_what_has_changed_and_tries_what_failed_once(one: OneOrg, policies: Path) -> None:
    watch = watch_policies(one.services)
    before = hash_of(one)
    asyncio.run(watch.look())
    assert stored(one, "SELECT count(*) FROM log WHERE action = 'admin.reload'") == [(0,)]
    close_to_agents(policies)
    asyncio.run(watch.look())
    assert hash_of(one) != before
    (policies / READ).write_text("permit")
    os.utime(policies / READ, (1, 1))
    for _ in range(2):
        asyncio.run(watch.look())
    assert stored(one, "SELECT count(*) FROM log WHERE action = 'admin.reload'") == [(2,)]


def meanwhile(one: OneOrg, *changes: Callable[[], object]) -> None:
    """Have something happen whenever engines have been built aside, before they are put in place: each change once."""
    engines, left = one.services.access.engines, list(changes)

    def build_all(*args: Any, **kw: Any) -> dict[str, Own]:
        built = Engines.build_all(engines, *args, **kw)
        if left:
            left.pop(0)()
        return built

    engines.build_all = build_all  # type: ignore[method-assign]


def another_base(one: OneOrg) -> None:
    """Others have been loaded: the same policies in another engine."""
    engines = one.services.access.engines
    engines.replace(engines.base.sibling(engines.base.bundle), {}, one.clock())


def test_a_change_that_others_come_before_each_time_is_told_and_loaded_later(one: OneOrg, policies: Path) -> None:
    watch, before = watch_policies(one.services), hash_of(one)
    close_to_agents(policies)
    meanwhile(one, *[partial(another_base, one)] * ATTEMPTS)
    asyncio.run(watch.look())
    assert hash_of(one) == before
    assert "attempts" in done(one.owner.get("/health"), 200)["policies_failure"]
    asyncio.run(watch.look())
    assert hash_of(one) != before
    assert done(one.owner.get("/health"), 200)["policies_failure"] is None


def test_what_an_organisation_writes_during_a_reload_is_in_force_after_it(one: OneOrg, policies: Path) -> None:
    agent, peer = read_by_an_agent(one)
    meanwhile(one, lambda: write(one.owner, mode="enforce"))
    file = policies / "session/end.cedar"
    file.write_text(file.read_text().replace('@reason("', '@reason("So: '))
    assert asyncio.run(reload(one.services)) is not None
    assert agent.get(peer).status_code == 403


def test_what_is_loaded_during_a_reload_is_what_it_takes_the_place_of(one: OneOrg, policies: Path) -> None:
    engines = one.services.access.engines
    other = engines.base.sibling(engines.base.bundle.without("session/end/human"))
    meanwhile(one, lambda: engines.replace(other, {}, one.clock()))
    loaded = asyncio.run(reload(one.services))
    assert loaded is not None
    assert loaded["previous"] == other.bundle.hash


def test_what_begins_to_wait_during_a_reload_is_not_lost_unseen(shadowed: OneOrg, policies: Path) -> None:
    engines = shadowed.services.access.engines
    close_to_agents(policies)
    waiting = done(shadowed.owner.post(PATH), 200)["bundle"]
    other = Staged(engines.base.sibling(engines.base.bundle.without("session/end/human")), shadowed.clock())
    meanwhile(shadowed, lambda: engines.stage(other, {}))
    assert shadowed.owner.post(PATH, {"promote": waiting}).status_code == 409
    assert engines.staged is other


def test_policies_are_loaded_again_one_set_after_the_other(one: OneOrg) -> None:
    """While they are, collection is off for the whole process, and on again afterwards."""
    at_once: list[int] = []
    loading = threading.Semaphore(4)

    def load() -> tuple[Bundle, list[Case]]:
        with loading:
            at_once.append(4 - loading._value)
            time.sleep(0.2)
            return one.services.access.engines.base.bundle, []

    async def both() -> None:
        await asyncio.gather(*(reload(replace(one.services, load_policies=load)) for _ in range(2)))

    asyncio.run(both())
    assert set(at_once) == {1}


def test_more_reloads_than_can_wait_are_refused_and_what_changed_is_loaded_later(one: OneOrg, policies: Path) -> None:
    watch, before = watch_policies(one.services), hash_of(one)
    close_to_agents(policies)
    gate = threading.Event()

    async def crowd() -> Response:
        most = aside.PROCESSES + aside.WAITING
        under_way = [asyncio.ensure_future(one.services.reloads.run(lambda: gate.wait(60))) for _ in range(most)]
        await asyncio.sleep(0)
        answer = await asyncio.to_thread(one.owner.post, PATH)
        await watch.look()
        gate.set()
        await asyncio.gather(*under_way)
        return answer

    assert asyncio.run(crowd()).status_code == 503
    assert hash_of(one) == before
    asyncio.run(watch.look())
    assert hash_of(one) != before


def test_a_change_is_not_lost_to_an_error(one: OneOrg, policies: Path) -> None:
    def fail() -> None:
        raise OSError("no more files")

    watch, before = watch_policies(one.services), hash_of(one)
    close_to_agents(policies)
    meanwhile(one, fail)
    with pytest.raises(OSError, match="no more files"):
        asyncio.run(watch.look())
    asyncio.run(watch.look())
    assert hash_of(one) != before


def test_a_schema_that_is_another_by_now_waits_for_the_next_start(
    tmp_path: Path, policies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package that was replaced under a server: what it has built of entities is of the schema before."""
    package = tmp_path / "package"
    shutil.copytree(ROOT / "policies", package / "policies")
    (package / SCHEMA).write_text((ROOT / SCHEMA).read_text() + "\nentity More;\n")
    for mode in ("off", "shadow"):
        one = OneOrg(tmp_path / mode, policies, reload=mode)
        before = hash_of(one)
        with monkeypatch.context() as replaced:
            replaced.setattr(wiring, "shipped", lambda: package)
            refused = one.owner.post(PATH)
        assert (refused.status_code, [found["file"] for found in refused.json()["findings"]]) == (409, [SCHEMA])
        assert (hash_of(one), one.services.access.engines.staged) == (before, None)
        one.close()


def test_the_log_tells_no_more_of_what_is_wrong_than_the_first_findings(
    one: OneOrg, policies: Path, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = '@id("session/end/{}")\npermit (principal, action == Action::"session.end", resource) when {{ context.nothing }};\n'
    (policies / "session/end.cedar").write_text("\n".join(wrong.format(number) for number in range(FINDINGS + 10)))
    assert asyncio.run(reload(one.services)) is None
    [told] = [record.getMessage() for record in caplog.records if record.name == "gateway.operations"]
    assert told.count("\n") == FINDINGS


# -- reload = shadow

REPORT = "/v1/org/policy-shadow-report"


@pytest.fixture
def shadowed(tmp_path: Path, policies: Path) -> Iterator[OneOrg]:
    """A gateway whose changed policies wait in the shadow."""
    made = OneOrg(tmp_path / "shadowed", policies, reload="shadow")
    yield made
    made.close()


def test_changed_policies_wait_in_the_shadow_and_are_counted_until_they_are_promoted(shadowed: OneOrg, policies: Path) -> None:
    agent, peer = read_by_an_agent(shadowed)
    before = hash_of(shadowed)
    close_to_agents(policies)
    staged = done(shadowed.owner.post(PATH), 200)
    assert (staged["previous"], staged["in_shadow"], staged["bundle"] == before) == (before, True, False)
    assert agent.get(peer).status_code == 200
    health = done(shadowed.owner.get("/health"), 200)
    assert (health["bundle"], health["policies_waiting"]) == (before, staged["bundle"])
    found = done(shadowed.owner.get(REPORT), 200)
    counted = found["directory"]
    [loser] = counted["lose"]["principals"]
    assert (counted["bundle"], counted["gain"]["count"], found["policies"]) == (staged["bundle"], 0, [])
    assert loser == {"type": "Agent", "id": agent.id, "count": 1}
    noted = done(shadowed.owner.get(f"/v1/decisions/{counted['lose']['decision_ids'][0]}"), 200)["decision"]["details"]["shadow"]
    assert noted == {"decision": "deny", "policies": ["directory"], "bundle": staged["bundle"]}
    promoted = done(shadowed.owner.post(PATH, {"promote": staged["bundle"]}), 200)
    assert (promoted["bundle"], promoted["previous"], promoted["in_shadow"]) == (staged["bundle"], before, False)
    assert agent.get(peer).status_code == 403
    assert done(shadowed.owner.get(REPORT), 200)["directory"] is None
    assert done(shadowed.owner.get("/health"), 200)["policies_waiting"] is None
    events = ("admin.policies_staged", "admin.policies_reloaded")
    assert stored(shadowed, "SELECT action FROM log WHERE action LIKE 'admin.policies%' ORDER BY seq") == [(e,) for e in events]


def test_only_what_waits_is_promoted_and_not_what_lies_on_the_disk_by_now(shadowed: OneOrg, policies: Path) -> None:
    before = hash_of(shadowed)
    assert shadowed.owner.post(PATH, {"promote": before}).status_code == 409
    close_to_agents(policies)
    first = done(shadowed.owner.post(PATH), 200)["bundle"]
    file = policies / "session/end.cedar"
    file.write_text(file.read_text().replace('@reason("', '@reason("So: '))
    assert done(shadowed.owner.post(PATH, {"promote": first}), 200)["bundle"] == first == hash_of(shadowed)
    second = done(shadowed.owner.post(PATH), 200)["bundle"]
    assert shadowed.owner.post(PATH, {"promote": first}).status_code == 409
    assert hash_of(shadowed) == first
    assert second != first


def test_what_lies_there_as_it_decides_does_not_wait(shadowed: OneOrg, policies: Path) -> None:
    kept = (policies / READ).read_text()
    close_to_agents(policies)
    assert done(shadowed.owner.post(PATH), 200)["in_shadow"]
    (policies / READ).write_text(kept)
    assert not done(shadowed.owner.post(PATH), 200)["in_shadow"]
    assert done(shadowed.owner.get(REPORT), 200)["directory"] is None


def test_what_does_not_pass_the_gate_does_not_wait_either(shadowed: OneOrg, policies: Path) -> None:
    (policies / READ).write_text("permit (principal, action, resource);\n")
    assert shadowed.owner.post(PATH).status_code == 409
    assert shadowed.services.access.engines.staged is None


def test_a_watch_and_the_operator_put_what_changed_into_the_shadow(shadowed: OneOrg, policies: Path) -> None:
    watch, before = watch_policies(shadowed.services), hash_of(shadowed)
    close_to_agents(policies)
    asyncio.run(watch.look())
    staged = shadowed.services.access.engines.staged
    assert staged is not None
    assert hash_of(shadowed) == before
    again = asyncio.run(reload(shadowed.services))
    assert again is not None
    assert again["in_shadow"]


def test_each_organisation_is_told_of_its_own_and_its_policies_are_laid_over_what_waits(shadowed: OneOrg, policies: Path) -> None:
    agent, peer = read_by_an_agent(shadowed)
    other = shadowed.org("owner@elsewhere.example")
    close_to_agents(policies)
    assert asyncio.run(reload(shadowed.services)) is not None
    assert agent.get(peer).status_code == 200
    mine, theirs = (done(owner.get(REPORT), 200)["directory"] for owner in (shadowed.owner, other))
    assert (mine["lose"]["count"], theirs["lose"]["count"]) == (1, 0)
    # A policy of one's own goes on being asked beside what waits, and what was counted of that is kept.
    policy = write(shadowed.owner)
    done(agent.get(peer), 200)
    found = done(shadowed.owner.get(REPORT), 200)
    assert found["directory"]["lose"]["count"] == 1
    assert [(told["policy_id"], told["lose"]["count"]) for told in found["policies"]] == [(policy["id"], 1)]


def test_what_waits_goes_on_waiting_after_a_restart_and_what_was_promoted_decides(shadowed: OneOrg, policies: Path) -> None:
    agent, peer = read_by_an_agent(shadowed)
    note_deciding(shadowed.services)
    close_to_agents(policies)
    waiting = done(shadowed.owner.post(PATH), 200)["bundle"]
    restart(shadowed)
    agent = replace(agent, http=shadowed.http)
    assert agent.get(peer).status_code == 200
    assert done(shadowed.owner.get("/health"), 200)["policies_waiting"] == waiting
    assert done(shadowed.owner.get(REPORT), 200)["directory"]["lose"]["count"] == 1
    done(shadowed.owner.post(PATH, {"promote": waiting}), 200)
    restart(shadowed)
    assert hash_of(shadowed) == waiting
    assert shadowed.services.access.engines.staged is None


@pytest.mark.parametrize("cases", ["[]", None])
def test_what_fails_its_cases_does_not_wait_after_a_restart_either(shadowed: OneOrg, policies: Path, cases: str | None) -> None:
    """A case fails, or the file of them cannot be read."""
    note_deciding(shadowed.services)
    before = hash_of(shadowed)
    kept = (policies / "peer/read_test.json").read_text()
    close_to_agents(policies)
    (policies / "peer/read_test.json").write_text(cases or kept)
    restart(shadowed)
    assert (hash_of(shadowed), shadowed.services.access.engines.staged) == (before, None)
    health = done(shadowed.owner.get("/health"), 200)
    assert (health["policies_waiting"], "peer/read_test.json" in health["policies_failure"]) == (None, True)


def test_a_start_decides_by_the_disk_where_what_decided_is_of_another_schema(shadowed: OneOrg) -> None:
    body = json.loads(shadowed.services.access.engines.base.bundle.body())
    last = Bundle.from_body(json.dumps({**body, "schema": body["schema"] + "\nentity More;\n"}))
    put = "INSERT INTO bundles (hash, body, loaded_at) VALUES ($1, $2, now())"
    database = shadowed.services.database
    database.exclusive(lambda connection: connection.execute(put, [last.hash, last.body()])).result()
    database.write(Unit(lambda tx: keep_deciding(tx, last.hash))).result()
    before = hash_of(shadowed)
    restart(shadowed)
    assert (hash_of(shadowed), shadowed.services.access.engines.staged) == (before, None)


@pytest.mark.parametrize("lacking", ["guardrails/observers", None])
def test_a_start_decides_by_the_disk_where_what_decided_is_not_whole(
    shadowed: OneOrg, policies: Path, lacking: str | None
) -> None:
    """It lacks a guardrail, or is not what its hash says."""
    base = shadowed.services.access.engines.base.bundle
    changed = base.without(lacking or "session/end/human")
    digest = base.hash if lacking is None else changed.hash
    put = (
        "INSERT INTO bundles (hash, body, loaded_at) VALUES ($1, $2, now()) ON CONFLICT (hash) DO UPDATE SET body = excluded.body"
    )
    shadowed.services.database.exclusive(lambda connection: connection.execute(put, [digest, changed.body()])).result()
    shadowed.services.database.write(Unit(lambda tx: keep_deciding(tx, digest))).result()
    close_to_agents(policies)
    restart(shadowed)
    assert hash_of(shadowed) not in (base.hash, changed.hash)
    assert shadowed.services.access.engines.staged is None
