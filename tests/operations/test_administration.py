"""The data directory over HTTP: an owner's alone, and nothing of another organisation in an answer."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from gateway.config import Settings
from gateway.model.grant import Grant
from gateway.operations import administration
from gateway.operations.call import Services
from gateway.store import evidence
from gateway.store.log import Verification
from gateway.store.rows import Rows
from gateway.web.app import create_app
from gateway.wiring import OPERATIONS, create_data, open_services, set_up_org
from tests.builders import Client, Clock, Gateway, done, shipped_bundle
from tests.operations.asking import stored
from tests.operations.evidence_rows import craft, org_of, tamper
from tests.operations.peer_acts import learn

ROUTES = ("backup", "erase", "derive", "verify")


@dataclass(frozen=True)
class Alone:
    """A data directory with one organisation, and its owner."""

    services: Services
    owner: Client


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Alone]:
    create_data(tmp_path / "alone")
    services = open_services(Settings(data=tmp_path / "alone", rate_limit=0), now=Clock(), bundle=shipped_bundle())
    made = set_up_org(services, name="Sample", email="owner@sample.example")
    yield Alone(services, Client(TestClient(create_app(services, OPERATIONS)), made.owner_id, made.api_key))
    services.database.close()


@pytest.mark.parametrize("route", ROUTES)
def test_nobody_but_an_owner_may(gateway: Gateway, route: str) -> None:
    for who in (gateway.admin, gateway.security, gateway.auditor, gateway.member, gateway.agent()):
        assert done(who.post(f"/v1/admin/{route}"), 403)["decision_id"]


@pytest.mark.parametrize("route", ROUTES)
def test_what_is_not_known_is_refused(gateway: Gateway, route: str) -> None:
    assert "`target`" in done(gateway.owner.post(f"/v1/admin/{route}", {"target": "/tmp/x"}), 400)["detail"]


@pytest.mark.parametrize("route", ["backup", "erase"])
def test_what_holds_another_organisation_is_copied_and_rewritten_by_no_owner(gateway: Gateway, route: str) -> None:
    for owner in (gateway.owner, gateway.other_owner):
        refused = done(owner.post(f"/v1/admin/{route}"), 403)
        assert refused["detail"] == "Nothing is done across the boundary of an organisation."
    assert not (gateway.services.settings.data / "backups").exists()


def test_a_second_organisation_ends_what_the_owner_of_the_only_one_could_do(alone: Alone) -> None:
    done(alone.owner.post("/v1/admin/erase"), 200)
    set_up_org(alone.services, name="Second", email="owner@second.example")
    assert alone.owner.post("/v1/admin/erase").status_code == 403


def test_a_backup_lies_in_the_data_directory_and_opens(alone: Alone) -> None:
    made = done(alone.owner.post("/v1/admin/backup"), 200)
    assert made.keys() == {"backup"}
    target = alone.services.settings.data / made["backup"]
    assert target.parent == alone.services.settings.data / "backups"
    restored = open_services(Settings(data=target))
    try:
        assert restored.state.humans == alone.services.state.humans
        assert restored.authenticator.signer.kids == alone.services.authenticator.signer.kids
    finally:
        restored.database.close()
    events = done(alone.owner.get("/v1/audit/events", action="admin.backed_up"), 200)["events"]
    assert [event["resource_type"] for event in events] == ["installation"]


def test_an_erasure_answers_what_was_overwritten_and_how_many_backups_are_left(alone: Alone) -> None:
    done(alone.owner.post("/v1/admin/backup"), 200)
    receipt = done(alone.owner.post("/v1/admin/erase"), 200)["receipt"]
    assert receipt.keys() == {"bytes_verified", "backups_not_covered"}
    assert receipt["backups_not_covered"] == 1
    assert receipt["bytes_verified"] > 0
    done(alone.owner.get("/v1/auth/me"), 200)


def test_an_owner_derives_their_own_organisation_only(gateway: Gateway) -> None:
    for owner in (gateway.owner, gateway.other_owner):
        agent = gateway.agent(by=owner)
        learn(agent, gateway.peer(person=owner, observers=[agent], by=owner), 3)
    answer = done(gateway.owner.post("/v1/admin/derive", {"dry_run": True}), 200)
    assert (answer["dry_run"], answer["peers"], answer["buckets"]) == (True, 1, 1)


def test_a_chain_is_verified_in_rows_of_the_asking_organisation(gateway: Gateway) -> None:
    done(gateway.other_owner.get("/v1/auth/me"), 200)
    own = len(stored(gateway, "SELECT seq FROM log WHERE org_id = $1", gateway.services.state.humans[gateway.owner.id].org_id))
    assert done(gateway.owner.post("/v1/admin/verify"), 200) == {"chain_valid": True, "rows_verified": own, "broken_at": None}


def test_a_walk_in_turns_finds_what_one_walk_finds(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = craft(gateway, 9)
    turns: list[int] = []
    walk = evidence.verify_on

    def counted(rows: Rows, grant: Grant[Any], so_far: Verification | None, limit: int) -> Verification:
        turns.append(limit)
        return walk(rows, grant, so_far, limit)

    monkeypatch.setattr(administration, "ROWS_A_TURN", 4)
    monkeypatch.setattr(evidence, "verify_on", counted)
    [(rows, own)] = stored(gateway, "SELECT count(*), count(*) FILTER (org_id = $1) FROM log", org_of(gateway))
    assert done(gateway.owner.post("/v1/admin/verify"), 200) == {"chain_valid": True, "rows_verified": own, "broken_at": None}
    assert (max(turns), sum(turns)) == (4, rows)
    tamper(gateway, ids[7])
    found = done(gateway.owner.post("/v1/admin/verify"), 200)
    assert (found["chain_valid"], found["broken_at"]) == (False, ids[7])


@pytest.mark.parametrize(
    ("route", "work", "sentence"),
    [
        ("erase", "rewrite", "the store was not rewritten and is as it was: no space left on device"),
        ("backup", "copy_store", "no backup was made: no space left on device"),
    ],
)
def test_work_that_the_disk_refuses_is_answered_and_never_recorded_as_done(
    alone: Alone, monkeypatch: pytest.MonkeyPatch, route: str, work: str, sentence: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(administration, work, full)
    refused = done(alone.owner.post(f"/v1/admin/{route}"), 503)
    assert (refused["title"], refused["detail"]) == ("unavailable", sentence)
    events = done(alone.owner.get("/v1/audit/events"), 200)["events"]
    assert [event["action"] for event in events if event["action"].startswith("admin.")] == []
    [decision] = done(alone.owner.get("/v1/decisions", action=f"admin.{route}"), 200)["decisions"]
    assert decision["decision"] == "allow"


def test_the_keys_are_copied_away_from_the_event_loop(alone: Alone, monkeypatch: pytest.MonkeyPatch) -> None:
    signer, names = alone.services.authenticator.signer, []
    copy_to = type(signer).copy_to

    def watched(self: Any, target: Path) -> None:
        names.append(threading.current_thread().name)
        copy_to(self, target)

    monkeypatch.setattr(type(signer), "copy_to", watched)
    done(alone.owner.post("/v1/admin/backup"), 200)
    assert [name[:8] for name in names] == ["asyncio_"]


def test_an_operators_change_is_committed_with_its_decision_before_it(gateway: Gateway) -> None:
    peer = gateway.peer()
    asyncio.run(administration.erase(gateway.services, peer_id=peer["id"]))
    asyncio.run(administration.recover_key(gateway.services, email=gateway.member.email))
    written = stored(gateway, "SELECT kind, action FROM log WHERE principal_type = 'Operator' ORDER BY seq")
    assert written[-5:] == [
        ("decision", "admin.erase"),
        ("audit", "peer.deleted"),
        ("audit", "admin.erased"),
        ("decision", "admin.issue_key"),
        ("audit", "key.recovered"),
    ]
