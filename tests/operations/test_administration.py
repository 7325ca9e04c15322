"""The data directory over HTTP: an owner's alone, and nothing of another organisation in an answer."""

from __future__ import annotations

import pytest

from gateway.config import Settings
from gateway.wiring import open_services
from tests.builders import Gateway, done
from tests.operations.asking import actions, stored
from tests.operations.peer_acts import learn

ROUTES = ("backup", "erase", "derive", "verify")


@pytest.mark.parametrize("route", ROUTES)
def test_nobody_but_an_owner_may(gateway: Gateway, route: str) -> None:
    for who in (gateway.admin, gateway.security, gateway.auditor, gateway.member, gateway.agent()):
        assert done(who.post(f"/v1/admin/{route}"), 403)["decision_id"]


@pytest.mark.parametrize("route", ROUTES)
def test_what_is_not_known_is_refused(gateway: Gateway, route: str) -> None:
    assert "`target`" in done(gateway.owner.post(f"/v1/admin/{route}", {"target": "/tmp/x"}), 400)["detail"]


def test_a_backup_lies_in_the_data_directory_and_opens(gateway: Gateway) -> None:
    made = done(gateway.owner.post("/v1/admin/backup"), 200)
    assert made.keys() == {"backup"}
    target = gateway.services.settings.data / made["backup"]
    assert target.parent == gateway.services.settings.data / "backups"
    restored = open_services(Settings(data=target))
    try:
        assert restored.state.humans == gateway.services.state.humans
        assert restored.authenticator.signer.kids == gateway.services.authenticator.signer.kids
    finally:
        restored.database.close()
    assert actions(gateway, action="admin.backed_up") == ["admin.backed_up"]


def test_an_erasure_answers_what_was_overwritten_and_how_many_backups_are_left(gateway: Gateway) -> None:
    done(gateway.owner.post("/v1/admin/backup"), 200)
    receipt = done(gateway.owner.post("/v1/admin/erase"), 200)["receipt"]
    assert receipt.keys() == {"bytes_verified", "backups_not_covered"}
    assert receipt["backups_not_covered"] == 1
    assert receipt["bytes_verified"] > 0
    done(gateway.owner.get("/v1/auth/me"), 200)


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
