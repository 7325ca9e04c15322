"""From a credential to a caller: keys, tokens, passwords and proofs, checked against the state of this moment."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime

from gateway import limits
from gateway.authn.claims import Claims, Subject
from gateway.authn.directory import Directory
from gateway.authn.issuer import Issuer
from gateway.authn.keys import KEY_CHARACTERS, hash_secret, holder_of, same_hash
from gateway.authn.passwords import Passwords
from gateway.authn.reauth import Factor, Purpose, Reauth
from gateway.authn.signer import Signer
from gateway.authn.stepup import StepUp, Totp
from gateway.authn.throttle import RateLimiter, Throttle, network
from gateway.errors import InvalidToken, Unauthenticated
from gateway.model.caller import SCRAPER, Caller
from gateway.model.ids import new_id
from gateway.model.memory import RemoteConnection
from gateway.model.records import Agent, Credential, Human, PlatformApp

#: What stands for the credential of a caller who signed in with a password: one a human, for the rate limit and the log.
SIGN_IN = "password/"
#: The same of a conversation over a connection to a remote agent: one a token.
CONVERSATION = "conversation/"
#: Clients renew a token this long before its end; one that lives shorter makes them renew before every call.
SHORTEST = 61
SCOPES_BYTES = 2_048
Holder = Human | Agent | PlatformApp | RemoteConnection


@dataclass(frozen=True, slots=True)
class Token:
    """A session token and how long it lives, in seconds."""

    access_token: str = field(repr=False)
    expires_in: int


class Authenticator:
    """Says who calls.

    INVARIANT: what can end a credential (its own end, revocation, the principal's removal, deactivation or generation) is
    looked at on every request; only a signature is ever remembered.
    """

    def __init__(
        self,
        signer: Signer,
        directory: Directory,
        *,
        rate_limit: int,
        address_limit: int = 0,
        metrics_token: str | None = None,
        issuer: Issuer | None = None,
    ) -> None:
        self.signer = signer
        self.passwords = Passwords()
        self.throttle = Throttle()
        self.limiter = RateLimiter(rate_limit)
        self.addresses = RateLimiter(address_limit, by="address")
        self._scraper_hash = hash_secret(metrics_token) if metrics_token is not None else None
        self.reauth = Reauth()
        self.stepup = StepUp(self.passwords, Throttle(), self.reauth)
        self._directory = directory
        self._issuer = issuer

    def knows(self, bearer: str) -> bool:
        """Whether `authenticate` has all at hand that it needs to know of this bearer, which then need not be prepared."""
        return self._issuer is None or holder_of(bearer) is not None

    async def prepare(self, bearer: str, now: datetime) -> None:
        """Have at hand what `authenticate`, which never waits, needs to know of this bearer.

        Raises:
            Unavailable: it is a token of the issuer, whose keys are not to be had.
        """
        if self._issuer is not None:
            await self._issuer.prepare(bearer, now)

    def authenticate(self, bearer: str | None, now: datetime) -> Caller:
        """The caller that a bearer credential stands for: a session token, a key of any kind, or a token of the issuer.

        A key and the tokens exchanged from it are one `credential_id`; so are the sign-ins of a human with a password, and
        the tokens that the issuer gave one principal.

        Raises:
            Unauthenticated: for every cause in the same words; an InvalidToken when something was shown.
        """
        if bearer is None:
            raise Unauthenticated
        try:
            return self._caller(bearer, now)
        except InvalidToken:
            raise
        except Unauthenticated:
            raise InvalidToken from None

    def _caller(self, bearer: str, now: datetime) -> Caller:
        if holder_of(bearer) is not None:
            credential, _ = self._holder(bearer, now)
            return Caller(
                credential.principal_type,
                credential.principal_id,
                credential.org_id,
                credential.id,
                expires_at=credential.expires_at,
            )
        claims = self.signer.verify(bearer, now)
        if claims is None and self._issuer is not None:
            return self._issuer.authenticate(bearer, self._directory, now)
        if claims is None or not self._stands(claims, now):
            raise Unauthenticated
        key = self._directory.credentials.get(claims.credential_id)
        return Caller(
            claims.principal_type,
            claims.principal_id,
            claims.org_id,
            _credential_id(claims),
            token_id=claims.token_id,
            expires_at=datetime.fromtimestamp(claims.expires_at, UTC),
            key_ends_at=key.expires_at if key is not None else None,
        )

    def scraper(self, bearer: str) -> Caller | None:
        """Who shows the token of the metrics, which is good for nothing else; None for anybody else."""
        hashed = self._scraper_hash
        return SCRAPER if hashed is not None and same_hash(hashed, hash_secret(bearer)) else None

    def count_stranger(self, source: str | None, what: str, now: datetime) -> None:
        """Count a request of whoever shows no good credential, by address; `what` has buckets of its own.

        Raises:
            TooManyRequests: none is left for this address.
        """
        self.addresses.take(f"{what} {network(source)}", now)

    def human_of_key(self, api_key: str, now: datetime) -> tuple[Credential, Human]:
        """The human whose `1ck_` key this is, or Unauthenticated."""
        credential, holder = self._holder(api_key, now)
        if not isinstance(holder, Human):
            raise Unauthenticated
        return credential, holder

    def agent_of_key(self, api_key: str, now: datetime) -> tuple[Credential, Agent]:
        """The agent whose `ocv_` key this is, or Unauthenticated."""
        credential, holder = self._holder(api_key, now)
        # The key of a bridge leads to an agent too, and is never that agent.
        if not isinstance(holder, Agent) or credential.principal_type != "Agent":
            raise Unauthenticated
        return credential, holder

    async def check_password(
        self, human: Human | None, account: str, password: str, now: datetime, source_ip: str | None
    ) -> None:
        """Check a sign-in; an account that does not exist costs the same time and the same guesses.

        Raises:
            Unauthenticated: wrong, for every cause in the same words.
            TooManyRequests: too many wrong ones for this account from this address.
        """
        attempt = self.throttle.attempt(human.id if human is not None else f"unknown {account}", source_ip, now)
        if not await self.passwords.check(human.password_hash if human is not None else None, password):
            raise Unauthenticated
        self.throttle.forgive(attempt)

    def issue(self, principal: Human | Agent, credential: Credential | None, now: datetime) -> Token:
        """A session token for a principal that just showed this key, or its password (None).

        It ends with the key when that is sooner, but never says less than clients can use: the key's own end is checked
        on each request anyway.
        """
        lifetime = principal.token_ttl_seconds if isinstance(principal, Agent) else limits.TOKEN_SECONDS_HUMAN
        if credential is not None and credential.expires_at is not None:
            lifetime = min(lifetime, int((credential.expires_at - now).total_seconds()))
        lifetime = max(lifetime, SHORTEST)
        claims = self._claims(principal, credential.id if credential is not None else "", now, lifetime)
        return Token(self.signer.sign(claims, _scopes(principal)), lifetime)

    def issue_conversation(self, connection: RemoteConnection, now: datetime, lifetime: int) -> Token:
        """A token with which our agent acts as a connection, for this many seconds.

        It ends with the credentials of the agent and with those of the connection, and with a suspension.
        """
        return Token(self.signer.sign(self._claims(connection, "", now, lifetime), []), lifetime)

    async def confirm(self, human: Human, proof: str | None, purpose: Purpose, *, totp: Totp, now: datetime) -> Factor:
        """Step-up: `StepUp.confirm`."""
        return await self.stepup.confirm(human, proof, purpose, totp=totp, now=now)

    def _holder(self, secret: str, now: datetime) -> tuple[Credential, Holder]:
        """The stored key of a secret and who holds it, both good now."""
        kind = holder_of(secret) if len(secret) <= KEY_CHARACTERS else None
        hashed = hash_secret(secret)
        credential = self._directory.credential_with_hash(hashed)
        if credential is None or not same_hash(credential.secret_hash, hashed) or credential.principal_type != kind:
            raise Unauthenticated
        holder = self._principal(credential.principal_type, credential.org_id, credential.principal_id)
        if holder is None or not _live(credential, now):
            raise Unauthenticated
        return credential, holder

    def _stands(self, claims: Claims, now: datetime) -> bool:
        """Whether everything a token hangs on is still there."""
        holder = self._principal(claims.principal_type, claims.org_id, claims.principal_id)
        if not isinstance(holder, Human | Agent | RemoteConnection) or self._generation(holder) != claims.generation:
            return False
        if claims.token_id in self._directory.revoked_tokens:
            return False
        if not claims.credential_id:
            return True
        credential = self._directory.credentials.get(claims.credential_id)
        held = (claims.principal_type, claims.principal_id)
        return credential is not None and (credential.principal_type, credential.principal_id) == held and _live(credential, now)

    def _principal(self, kind: str, org_id: str, found_id: str) -> Holder | None:
        """Who holds a credential, when it is still there, in this organisation, and may act."""
        holder = self._found(kind, org_id, found_id)
        if holder is None or holder.org_id != org_id:
            return None
        match holder:
            case Agent():
                return holder if holder.is_active else None
            case RemoteConnection():
                served = self._principal("Agent", org_id, holder.agent_id) is not None
                return holder if holder.status == "active" and served else None
            case _:
                return holder

    def _found(self, kind: str, org_id: str, found_id: str) -> Holder | None:
        match kind:
            case "Human":
                return self._directory.humans.get(found_id)
            case "Agent" | "Bridge":
                return self._directory.agents.get(found_id)
            case "Platform":
                return self._directory.apps.get(found_id)
            case "Connection":
                return self._directory.remote_connections.get((org_id, found_id))
            case _:
                return None

    def _claims(self, principal: Human | Agent | RemoteConnection, credential_id: str, now: datetime, lifetime: int) -> Claims:
        issued_at = int(now.timestamp())
        return Claims(
            principal_type=_subject(principal),
            principal_id=principal.id,
            org_id=principal.org_id,
            credential_id=credential_id,
            generation=self._generation(principal),
            issued_at=issued_at,
            expires_at=issued_at + lifetime,
            token_id=new_id(),
        )

    def _generation(self, principal: Human | Agent | RemoteConnection) -> int:
        """The generation that a token of a principal must be of.

        INVARIANT: a generation is only ever raised, so the sum of a connection's and its agent's is the same only while
        both are.
        """
        if not isinstance(principal, RemoteConnection):
            return principal.generation
        agent = self._directory.agents.get(principal.agent_id)
        return principal.generation + (agent.generation if agent is not None else 0)


def _live(credential: Credential, now: datetime) -> bool:
    return credential.expires_at is None or now < credential.expires_at


def _subject(principal: Human | Agent | RemoteConnection) -> Subject:
    match principal:
        case Human():
            return "Human"
        case Agent():
            return "Agent"
        case RemoteConnection():
            return "Connection"


def _credential_id(claims: Claims) -> str:
    if claims.credential_id:
        return claims.credential_id
    return CONVERSATION + claims.token_id if claims.principal_type == "Connection" else SIGN_IN + claims.principal_id


def _scopes(principal: Human | Agent) -> list[str]:
    """The scopes an agent was registered with, for its client to read; left out when a header could not carry them."""
    given = principal.attributes.get("scopes") if isinstance(principal, Agent) else None
    scopes = [scope for scope in given if isinstance(scope, str)] if isinstance(given, list | tuple) else []
    return scopes if len(json.dumps(scopes)) <= SCOPES_BYTES else []
