"""What the gateway says of itself to a client without a token."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from gateway.config import Settings
from gateway.operations.resource_metadata import WELL_KNOWN, metadata_url
from gateway.web.app import create_app
from gateway.wiring import OPERATIONS
from tests.builders import Gateway, done

ISSUER = {"oidc_issuer": "https://issuer.example/realm", "oidc_audience": "a", "oidc_jwks": "https://issuer.example/keys"}


def reached(gateway: Gateway, **settings: str) -> TestClient:
    """The same gateway with other settings."""
    changed = replace(gateway.services, settings=replace(gateway.services.settings, **settings))  # type: ignore[arg-type]
    return TestClient(create_app(changed, OPERATIONS))


@pytest.mark.parametrize("path", ["", "/mcp"])
@pytest.mark.parametrize("public_url", ["https://gate.example", "https://gate.example/", "https://gate.example/below"])
def test_it_names_the_resource_and_who_issues_tokens_for_it(gateway: Gateway, path: str, public_url: str) -> None:
    answer = done(reached(gateway, public_url=public_url, **ISSUER).get(WELL_KNOWN + path), 200)
    assert answer == {
        "resource": public_url.rstrip("/") + path,
        "authorization_servers": ["https://issuer.example/realm"],
        "bearer_methods_supported": ["header"],
        "resource_name": "Peergate",
    }


@pytest.mark.parametrize("path", ["", "/mcp"])
def test_what_is_not_set_is_a_404_that_names_the_setting(gateway: Gateway, path: str) -> None:
    said = done(reached(gateway, **ISSUER).get(WELL_KNOWN + path), 404)["detail"]
    assert said == "there is no metadata, because the setting `public_url` is not set"
    said = done(reached(gateway, public_url="https://gate.example").get(WELL_KNOWN + path), 404)["detail"]
    assert said == "there is no metadata, because the setting `oidc_issuer` is not set"


@pytest.mark.parametrize(
    ("public_url", "path", "url"),
    [
        ("https://gate.example", "", "https://gate.example/.well-known/oauth-protected-resource"),
        ("https://gate.example/", "", "https://gate.example/.well-known/oauth-protected-resource"),
        ("https://gate.example:8443", "/mcp", "https://gate.example:8443/.well-known/oauth-protected-resource/mcp"),
        ("https://gate.example/below/", "/mcp", "https://gate.example/.well-known/oauth-protected-resource/below/mcp"),
    ],
)
def test_its_address_has_the_well_known_part_behind_the_host(public_url: str, path: str, url: str) -> None:
    assert metadata_url(Settings(Path(), public_url=public_url, **ISSUER), path) == url  # type: ignore[arg-type]
    assert metadata_url(Settings(Path(), public_url=public_url), path) is None
    assert metadata_url(Settings(Path(), **ISSUER), path) is None  # type: ignore[arg-type]
