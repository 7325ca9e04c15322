"""What a 401 asks for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gateway.errors import InvalidToken, Unauthenticated
from gateway.web.challenge import challenge
from tests.authn.issuing import key_set, published
from tests.builders import Gateway

METADATA = "https://gate.example/.well-known/oauth-protected-resource"
SENTENCE = "the credential is missing, unknown, expired or revoked"


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway with an address and an issuer."""
    folder = tmp_path_factory.mktemp("known")
    (folder / "keys.json").write_bytes(key_set(published("one")))
    made = Gateway(
        folder / "data",
        public_url="https://gate.example",
        oidc_issuer="https://issuer.example",
        oidc_audience="https://gate.example",
        oidc_jwks=str(folder / "keys.json"),
        oidc_org_claim="org",
    )
    yield made
    made.close()


def test_who_shows_nothing_is_told_where_to_read_and_of_no_error() -> None:
    assert challenge(Unauthenticated()) == "Bearer"
    assert challenge(Unauthenticated(), METADATA) == f'Bearer resource_metadata="{METADATA}"'


def test_who_shows_what_is_no_good_is_told_so() -> None:
    assert challenge(InvalidToken()) == f'Bearer error="invalid_token", error_description="{SENTENCE}"'
    assert challenge(InvalidToken("the token has expired"), METADATA) == (
        f'Bearer error="invalid_token", error_description="the token has expired", resource_metadata="{METADATA}"'
    )


@pytest.mark.parametrize("path", ["/v1/auth/me", "/api/arp/notes.search"])
def test_every_401_names_the_metadata_where_there_is_one(known: Gateway, path: str) -> None:
    method = "GET" if path.startswith("/v1") else "POST"
    asked = known.http.request(method, path)
    assert (asked.status_code, asked.headers["www-authenticate"]) == (401, f'Bearer resource_metadata="{METADATA}"')
    refused = known.http.request(method, path, headers={"Authorization": "Bearer none"})
    assert refused.headers["www-authenticate"] == challenge(InvalidToken(), METADATA)
    assert asked.content == refused.content


def test_without_an_issuer_a_challenge_names_none(gateway: Gateway) -> None:
    assert gateway.http.get("/v1/auth/me").headers["www-authenticate"] == "Bearer"
    refused = gateway.http.get("/v1/auth/me", headers={"Authorization": "Bearer none"})
    assert refused.headers["www-authenticate"] == challenge(InvalidToken())
