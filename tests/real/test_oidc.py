"""A server that takes the access tokens of an issuer on this machine."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import httpx

from tests.authn.issuing import claims, key, published, publishing, signed
from tests.real.process import Server, init
from tests.real.world import World, data, done, error

GATE = "https://gate.example"


def test_people_and_agents_come_with_tokens_of_the_issuer(tmp_path: Path) -> None:
    owner = init(tmp_path / "data")
    with publishing(published("one"), published("rsa", key("2048"))) as issuer:
        named = issuer.url.removesuffix("/keys")
        settings = {
            "PEERGATE_PUBLIC_URL": GATE,
            "PEERGATE_OIDC_ISSUER": named,
            "PEERGATE_OIDC_AUDIENCE": GATE,
            "PEERGATE_OIDC_JWKS": issuer.url,
            "PEERGATE_OIDC_AGENT_CLAIM": "agent",
        }
        serve = ("serve", "--data", tmp_path / "data", "--port", "0", "--json")
        with Server(*serve, environment=settings) as server:
            world = World(server.url, owner)
            agent = world.agent()

            def token(kid: str = "one", alg: str = "ES256", kind: str = "P-256", **changed: object) -> str:
                said = claims(datetime.now(UTC), iss=named, aud=[GATE, "another"], email=world.owner.email, **changed)
                return signed(said, kid=kid, alg=alg, by=key(kind))

            metadata = httpx.get(f"{server.url}/.well-known/oauth-protected-resource/mcp").json()
            assert (metadata["resource"], metadata["authorization_servers"]) == (f"{GATE}/mcp", [named])
            assert data(world.bearer(token()).auth.me())["id"] == world.owner.id
            assert done(world.http(token("rsa", "RS256", "2048", agent=agent.id)).get("/v1/agents/me"), 200)["id"] == agent.id
            assert error(world.bearer(token("unknown")).auth.me()) == (401, "auth_error")
            refused = world.http(token(exp=1)).get("/v1/auth/me")
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"] == (
                'Bearer error="invalid_token", error_description="the token has expired", '
                f'resource_metadata="{GATE}/.well-known/oauth-protected-resource"'
            )
            listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            accept = {"Accept": "application/json, text/event-stream"}
            listed = world.http(token(agent=agent.id)).post("/mcp", json=listing, headers=accept)
            assert "get_peer_context" in {tool["name"] for tool in done(listed, 200)["result"]["tools"]}
            unknown = httpx.post(f"{server.url}/mcp", json=listing, headers=accept)
            resource = f'resource_metadata="{GATE}/.well-known/oauth-protected-resource/mcp"'
            assert (unknown.status_code, unknown.headers["www-authenticate"]) == (401, f"Bearer {resource}")
            assert issuer.asked == ["/keys"]
            world.close()
            assert (server.stop(), server.errors()) == (0, "")
