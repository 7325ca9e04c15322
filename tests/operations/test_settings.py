"""Settings of an organisation."""

from __future__ import annotations

import pytest

from tests.builders import Gateway, done
from tests.operations.asking import ABSENT, actions, restart, stored
from tests.operations.queueing import queue_blocked

PATH = "/v1/org/settings"
DEFAULTS = {
    "guardrail_changes_require_approval": "false",
    "guardrail_changes_require_step_up": "false",
    "auto_approve": "false",
    "learn_from_posted_events": "true",
    "policy_promotions_need_two": "false",
    "sensitive_actions": [],
    "time_zone": "UTC",
}


def test_settings_start_at_their_defaults(gateway: Gateway) -> None:
    for human in (gateway.owner, gateway.admin):
        assert done(human.get(PATH), 200) == {"settings": DEFAULTS}


def test_a_change_sets_what_it_names(gateway: Gateway) -> None:
    change = {"auto_approve": "true", "learn_from_posted_events": "false", "time_zone": "Europe/Zurich"}
    expected = {"settings": {**DEFAULTS, **change}}
    assert done(gateway.admin.patch(PATH, change), 200) == expected
    assert done(gateway.owner.get(PATH), 200) == expected
    assert done(gateway.owner.patch(PATH, {}), 200) == expected
    assert done(gateway.other_owner.get(PATH), 200) == {"settings": DEFAULTS}
    restart(gateway)
    assert done(gateway.owner.get(PATH), 200) == expected


def test_the_pair_of_the_official_client_is_the_same_change(gateway: Gateway) -> None:
    pairs = [("auto_approve", "true"), ("time_zone", "Asia/Tokyo"), ("sensitive_actions", "payout., tip.give")]
    for key, value in pairs:
        done(gateway.owner.patch(PATH, {"key": key, "value": value}), 200)
    done(gateway.owner.patch(PATH, {"key": "sensitive_actions", "value": ["gift.send"]}), 200)
    expected = {"auto_approve": "true", "time_zone": "Asia/Tokyo", "sensitive_actions": ["payout.", "tip.give", "gift.send"]}
    assert done(gateway.owner.get(PATH), 200) == {"settings": {**DEFAULTS, **expected}}


def test_a_switch_may_be_a_boolean(gateway: Gateway) -> None:
    assert done(gateway.owner.patch(PATH, {"auto_approve": True}), 200)["settings"]["auto_approve"] == "true"
    assert done(gateway.owner.patch(PATH, {"key": "auto_approve", "value": False}), 200)["settings"]["auto_approve"] == "false"


def test_sensitive_actions_are_only_ever_added(gateway: Gateway) -> None:
    done(gateway.owner.patch(PATH, {"sensitive_actions": ["payout.send"]}), 200)
    done(gateway.owner.patch(PATH, {"sensitive_actions": ["tip.give", "payout.send"]}), 200)
    done(gateway.owner.patch(PATH, {"sensitive_actions": []}), 200)
    assert done(gateway.owner.get(PATH), 200)["settings"]["sensitive_actions"] == ["payout.send", "tip.give"]
    for start in (0, 100):
        entries = [f"a.b{n}" for n in range(start, start + 100)]
        status = gateway.owner.patch(PATH, {"sensitive_actions": entries}).status_code
        assert status == (200 if start == 0 else 400)
    assert len(done(gateway.owner.get(PATH), 200)["settings"]["sensitive_actions"]) == 102


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"auto_approve": "yes"}, "auto_approve"),
        ({"auto_approve": "TRUE"}, "auto_approve"),
        ({"auto_approve": 1}, "auto_approve"),
        ({"autoapprove": "true"}, "autoapprove"),
        ({"time_zone": "Mars/Olympus"}, "time_zone"),
        ({"time_zone": "../etc/passwd"}, "time_zone"),
        ({"time_zone": "utc "}, "time_zone"),
        ({"time_zone": "Europe"}, "time_zone"),
        ({"sensitive_actions": "payout."}, "sensitive_actions"),
        ({"sensitive_actions": ["*"]}, "sensitive_actions[0]"),
        ({"sensitive_actions": ["a.b", "."]}, "sensitive_actions[1]"),
        ({"sensitive_actions": ["payout"]}, "sensitive_actions[0]"),
        ({"sensitive_actions": [4]}, "sensitive_actions[0]"),
        ({"key": "colour", "value": "red"}, "key"),
        ({"key": "auto_approve"}, "value"),
        ({"key": "auto_approve", "value": None}, "value"),
        ({"key": "auto_approve", "value": "true", "time_zone": "UTC"}, "time_zone"),
        ({"value": "true"}, "value"),
        ({"key": "auto_approve", "value": "true", "approval_id": ABSENT}, "approval_id"),
    ],
)
def test_what_is_not_understood_changes_nothing(gateway: Gateway, body: dict[str, object], field: str) -> None:
    refused = gateway.owner.patch(PATH, body)
    assert (refused.status_code, list(refused.json()["fields"])) == (400, [field])
    assert done(gateway.owner.get(PATH), 200) == {"settings": DEFAULTS}


def test_only_an_owner_or_admin_reads_or_changes_settings(gateway: Gateway) -> None:
    for caller in (gateway.security, gateway.auditor, gateway.member, gateway.agent()):
        assert caller.get(PATH).status_code == 403
        assert caller.patch(PATH, {"auto_approve": "true"}).status_code == 403
    assert done(gateway.owner.get(PATH), 200) == {"settings": DEFAULTS}


@pytest.mark.parametrize("name", ["guardrail_changes_require_approval", "guardrail_changes_require_step_up"])
def test_a_guardrail_is_switched_off_by_somebody_who_confirms_who_they_are(gateway: Gateway, name: str) -> None:
    both = {"guardrail_changes_require_approval": "true", "guardrail_changes_require_step_up": "true"}
    done(gateway.owner.patch(PATH, both), 200)
    for body in ({name: "false"}, {name: False, "time_zone": "Asia/Tokyo"}, {"key": name, "value": "false"}):
        refused = gateway.owner.patch(PATH, body)
        assert (refused.status_code, refused.json()["title"]) == (403, "step-up required")
        assert gateway.owner.patch(PATH, body, {"X-Auth-Confirm": "wrong password"}).status_code == 403
    assert done(gateway.owner.get(PATH), 200)["settings"] == {**DEFAULTS, **both}
    done(gateway.owner.patch(PATH, both), 200)
    done(gateway.owner.patch(PATH, {name: "false"}, {"X-Auth-Confirm": gateway.owner.password}), 200)
    assert done(gateway.owner.get(PATH), 200)["settings"] == {**DEFAULTS, **both, name: "false"}


@pytest.mark.parametrize("name", ["guardrail_changes_require_approval", "guardrail_changes_require_step_up"])
def test_one_guardrail_alone_has_its_end_and_automatic_approval_confirmed(gateway: Gateway, name: str) -> None:
    done(gateway.admin.patch(PATH, {name: "true"}), 200)
    for change in ({name: "false"}, {"auto_approve": "true"}):
        refused = gateway.admin.patch(PATH, change)
        assert (refused.status_code, refused.json()["title"]) == (403, "step-up required")
        body = {"method": "password", "purpose": "approval.decide", "password": gateway.admin.password}
        elsewhere = done(gateway.admin.post("/v1/auth/reauth/complete", body), 200)["token"]
        assert gateway.admin.patch(PATH, change, {"X-Auth-Confirm": elsewhere}).status_code == 403
    assert done(gateway.admin.get(PATH), 200)["settings"] == {**DEFAULTS, name: "true"}
    confirmed = {"X-Auth-Confirm": gateway.admin.password}
    done(gateway.admin.patch(PATH, {"auto_approve": "true"}, confirmed), 200)
    done(gateway.admin.patch(PATH, {"auto_approve": "true", "time_zone": "UTC"}), 200)
    done(gateway.admin.patch(PATH, {name: "false", "auto_approve": "false"}, confirmed), 200)
    assert done(gateway.admin.get(PATH), 200)["settings"] == DEFAULTS


def test_a_guardrail_switched_on_meanwhile_has_a_queued_change_confirmed(gateway: Gateway) -> None:
    with queue_blocked(gateway) as queued:
        guarded = queued(gateway.owner.patch, PATH, {"guardrail_changes_require_approval": "true"})
        automatic = queued(gateway.admin.patch, PATH, {"auto_approve": "true"})
    assert (guarded.result().status_code, automatic.result().status_code) == (200, 403)
    assert done(gateway.owner.get(PATH), 200)["settings"] == {**DEFAULTS, "guardrail_changes_require_approval": "true"}


def test_the_second_person_for_policies_is_taken_down_by_somebody_who_confirms_who_they_are(gateway: Gateway) -> None:
    name = "policy_promotions_need_two"
    assert done(gateway.owner.patch(PATH, {name: "true"}), 200)["settings"] == {**DEFAULTS, name: "true"}
    done(gateway.owner.patch(PATH, {"auto_approve": "true"}), 200)
    assert gateway.owner.patch(PATH, {"key": name, "value": "false"}).json()["title"] == "step-up required"
    done(gateway.owner.patch(PATH, {name: False, "auto_approve": "false"}, {"X-Auth-Confirm": gateway.owner.password}), 200)
    assert done(gateway.owner.get(PATH), 200) == {"settings": DEFAULTS}


def test_a_change_is_audited_by_the_names_of_the_settings(gateway: Gateway) -> None:
    done(gateway.owner.patch(PATH, {"auto_approve": "true", "sensitive_actions": ["canary.action"]}), 200)
    assert actions(gateway).count("org.settings_updated") == 1
    event = done(gateway.owner.get("/v1/audit/events", action="org.settings_updated"), 200)["events"][0]
    assert event["details"]["settings"] == ["auto_approve", "sensitive_actions"]
    assert "canary" not in str(stored(gateway, "SELECT details FROM log"))
