"""Metadata: where the endpoints are, by the settings alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from gateway.config import ConfigError, Settings
from gateway.operations.authzen_metadata import WELL_KNOWN
from gateway.operations.registry import OPERATIONS
from gateway.web.app import create_app
from tests.authzen.asking import PATHS, SINGLE, asked
from tests.authzen.conftest import PUBLIC_URL
from tests.builders import Gateway, done


def at(gateway: Gateway, public_url: str | None) -> TestClient:
    """The same gateway under another address."""
    services = replace(gateway.services, settings=replace(gateway.services.settings, public_url=public_url))
    return TestClient(create_app(services, OPERATIONS))


@pytest.fixture
def metadata(gateway: Gateway) -> dict[str, object]:
    shown: dict[str, object] = done(gateway.http.get(WELL_KNOWN), 200)
    return shown


def test_anybody_may_read_it_and_keep_it_for_a_while(gateway: Gateway) -> None:
    answered = gateway.http.get(WELL_KNOWN)
    assert (answered.status_code, answered.headers["content-type"]) == (200, "application/json")
    assert answered.headers["cache-control"] == "public, max-age=3600"
    assert len(answered.headers.get_list("cache-control")) == 1


def test_it_names_this_decision_point_and_every_endpoint(metadata: dict[str, object]) -> None:
    assert metadata == {
        "policy_decision_point": PUBLIC_URL,
        "access_evaluation_endpoint": f"{PUBLIC_URL}/access/v1/evaluation",
        "access_evaluations_endpoint": f"{PUBLIC_URL}/access/v1/evaluations",
        "search_subject_endpoint": f"{PUBLIC_URL}/access/v1/search/subject",
        "search_resource_endpoint": f"{PUBLIC_URL}/access/v1/search/resource",
        "search_action_endpoint": f"{PUBLIC_URL}/access/v1/search/action",
    }


def test_every_endpoint_that_it_names_answers(gateway: Gateway, metadata: dict[str, object]) -> None:
    named = [str(url).removeprefix(PUBLIC_URL) for name, url in metadata.items() if name.endswith("endpoint")]
    assert sorted(named) == sorted(PATHS)
    assert [gateway.owner.post(path, asked()).status_code for path in named] == [200] * 5


def test_no_parameter_is_without_a_value(metadata: dict[str, object]) -> None:
    assert all(isinstance(value, str) and value.startswith("https://") for value in metadata.values())


def test_no_header_changes_it(gateway: Gateway, metadata: dict[str, object]) -> None:
    headers = {"Host": "evil.example", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "http", "Forwarded": "host=evil"}
    assert gateway.http.get(WELL_KNOWN, headers=headers).json() == metadata


def test_it_is_read_and_not_posted(gateway: Gateway) -> None:
    assert gateway.http.post(WELL_KNOWN, json={}).status_code == 405


def test_a_decision_point_with_a_path_is_found_behind_the_well_known_words(gateway: Gateway) -> None:
    http = at(gateway, "https://pdp.sample.example/tenant1/")
    shown = done(http.get(f"{WELL_KNOWN}/tenant1"), 200)
    assert shown["policy_decision_point"] == "https://pdp.sample.example/tenant1"
    assert shown["access_evaluation_endpoint"] == f"https://pdp.sample.example/tenant1{SINGLE}"
    assert [http.get(path).status_code for path in (WELL_KNOWN, f"{WELL_KNOWN}/tenant2")] == [404, 404]
    assert gateway.http.get(f"{WELL_KNOWN}/tenant1").status_code == 404


def test_without_an_address_there_is_none_and_the_answer_names_the_setting(gateway: Gateway) -> None:
    refused = at(gateway, None).get(WELL_KNOWN)
    assert refused.status_code == 404
    assert "PEERGATE_PUBLIC_URL" in refused.json()["detail"]


@pytest.mark.parametrize("url", ["http://a.example", "https://", "https://a.example?q=1", "https://a.example/#f", "https://a b"])
def test_an_address_that_cannot_be_advertised_is_no_setting(url: str) -> None:
    with pytest.raises(ConfigError, match="public_url"):
        Settings(data=Path(), public_url=url)
