"""Principals and a directory of them, for tests of authentication alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from gateway.authn.keys import Prefix, mint_key
from gateway.model.memory import RemoteConnection
from gateway.model.records import Agent, Credential, Human, Org, OrgSettings, PlatformApp
from gateway.model.rules import NO_RULES

NOW = datetime(2026, 3, 4, 10, 0, tzinfo=UTC)
ORG = str(UUID(int=1))


def an_org(org_id: str = ORG) -> Org:
    return Org(org_id, "organisation", OrgSettings(), NOW)


def a_human(number: int = 2, **changed: object) -> Human:
    given: dict[str, object] = {
        "id": str(UUID(int=number)),
        "org_id": ORG,
        "email": f"human-{number}@sample.example",
        "display_name": None,
        "role": "member",
        "password_hash": None,
        "totp_secret": None,
        "totp_confirmed": False,
        "totp_last_step": None,
        "generation": 1,
        "created_at": NOW,
    }
    return Human(**{**given, **changed})  # type: ignore[arg-type]


def an_agent(number: int = 3, **changed: object) -> Agent:
    given: dict[str, object] = {
        "id": str(UUID(int=number)),
        "org_id": ORG,
        "name": "agent",
        "description": "",
        "is_active": True,
        "created_by": str(UUID(int=2)),
        "parent_id": None,
        "connection_id": None,
        "rules": NO_RULES,
        "token_ttl_seconds": 3600,
        "generation": 1,
        "created_at": NOW,
        "attributes": {},
    }
    return Agent(**{**given, **changed})  # type: ignore[arg-type]


def an_app(number: int = 4) -> PlatformApp:
    return PlatformApp(str(UUID(int=number)), ORG, "app", "app", str(UUID(int=2)), NOW)


def a_connection(connection_id: str = "conn-1", **changed: object) -> RemoteConnection:
    given: dict[str, object] = {
        "id": connection_id,
        "org_id": ORG,
        "agent_id": str(UUID(int=3)),
        "peer_did": "did:web:peer.example",
        "name": None,
        "status": "active",
        "replaces": None,
        "created_at": NOW,
    }
    return RemoteConnection(**{**given, **changed})  # type: ignore[arg-type]


@dataclass
class People:
    """A directory that a test changes by hand."""

    orgs: dict[str, Org] = field(default_factory=lambda: {ORG: an_org()})
    humans: dict[str, Human] = field(default_factory=dict)
    agents: dict[str, Agent] = field(default_factory=dict)
    apps: dict[str, PlatformApp] = field(default_factory=dict)
    remote_connections: dict[tuple[str, str], RemoteConnection] = field(default_factory=dict)
    credentials: dict[str, Credential] = field(default_factory=dict)
    revoked_tokens: dict[str, datetime] = field(default_factory=dict)

    def bridge_key_for(self, agent: Agent) -> tuple[str, Credential]:
        """A key of the bridge to an agent, who is put into the directory."""
        self.agents[agent.id] = agent
        secret, hashed = mint_key("pgb_")
        credential = Credential(str(UUID(int=99)), agent.org_id, "Bridge", agent.id, "bridge", hashed, NOW, None)
        self.credentials[credential.id] = credential
        return secret, credential

    def human_with_email(self, email: str) -> Human | None:
        return next((human for human in self.humans.values() if human.email == email), None)

    def credential_with_hash(self, secret_hash: str) -> Credential | None:
        return next((c for c in self.credentials.values() if c.secret_hash == secret_hash), None)

    def key_for(
        self,
        holder: Human | Agent | PlatformApp | RemoteConnection,
        *,
        prefix: Prefix | None = None,
        expires_at: datetime | None = None,
    ) -> tuple[str, Credential]:
        """A key of a principal, who is put into the directory."""
        match holder:
            case Human():
                kind, own = "Human", "1ck_"
                self.humans[holder.id] = holder
            case Agent():
                kind, own = "Agent", "ocv_"
                self.agents[holder.id] = holder
            case PlatformApp():
                kind, own = "Platform", "plt_"
                self.apps[holder.id] = holder
            case RemoteConnection():
                kind, own = "Connection", "pgc_"
                self.remote_connections[holder.org_id, holder.id] = holder
        secret, hashed = mint_key(prefix or own)  # type: ignore[arg-type]
        number = str(UUID(int=100 + len(self.credentials)))
        credential = Credential(number, holder.org_id, kind, holder.id, "key", hashed, NOW, expires_at)  # type: ignore[arg-type]
        self.credentials[credential.id] = credential
        return secret, credential
