"""An issuer of access tokens beside the gateway itself: which of our own people and agents its tokens name."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from gateway.authn.access_token import AccessToken, Terms, outline, verify
from gateway.authn.directory import Directory
from gateway.authn.emails import LONGEST, normal_email
from gateway.authn.issuer_keys import IssuerKeys
from gateway.authn.jwks import KeySetUnusable
from gateway.authn.key_source import key_source
from gateway.config import OIDC_EMAIL, ConfigError, Settings, listed
from gateway.errors import InvalidToken
from gateway.model.caller import Caller, PrincipalType
from gateway.model.records import Agent, Human

#: What stands for the credential of a caller whom an issuer names: one a principal, for the rate limit and the log.
ISSUED = "issuer/"
ALGORITHMS = "RS256, PS256, ES256, EdDSA"
SKEW_SECONDS = 30
#: Tokens whose first use is remembered; past it the one that was quiet longest is forgotten.
REMEMBERED = 50_000
#: A token with one of these is good only in the hands of somebody who proves more than that they hold it, which is not looked
#: at here (`cnf`), or is used by another than it names (`act`).
_BOUND: Final = "cnf"
_ACTOR: Final = "act"


@dataclass(frozen=True, slots=True)
class Names:
    """The claims that say whom a token is about; None for those that are not looked at."""

    email: str
    org: str | None
    role: str | None
    agent: str | None


class Issuer:
    """Turns access tokens into callers.

    INVARIANT: a token says who somebody is and never what they may do. The role, the organisation and whether they are
    still there are the stored ones, looked at on every request.
    """

    def __init__(self, terms: Terms, names: Names, keys: IssuerKeys) -> None:
        self._terms = terms
        self._names = names
        self._keys = keys
        self._lock = threading.Lock()
        self._first_used: OrderedDict[str, tuple[str, int]] = OrderedDict()

    async def prepare(self, bearer: str, now: datetime) -> None:
        """Have the key at hand that this bearer needs, when it is a token of the issuer.

        Raises:
            Unavailable: it is, and no keys are to be had.
        """
        found = outline(bearer, self._terms)
        if found is not None:
            await self._keys.prepare(found.kid, now)

    def authenticate(self, bearer: str, directory: Directory, now: datetime) -> Caller:
        """The caller that an access token stands for.

        Raises:
            InvalidToken: in the same words whether or not there is somebody whom it names.
        """
        found = outline(bearer, self._terms)
        key = self._keys.key(found.kid, now) if found is not None else None
        if found is None or key is None:
            raise InvalidToken
        token = verify(bearer, found, key, self._terms, now)
        principal = self._principal(token.claims, directory)
        if principal is None or token.digest in directory.revoked_tokens or not self._is_as_first_used(token, principal):
            raise InvalidToken
        kind: PrincipalType = "Agent" if isinstance(principal, Agent) else "Human"
        return Caller(
            kind,
            principal.id,
            principal.org_id,
            ISSUED + principal.id,
            token_id=token.digest,
            expires_at=token.ends_at,
        )

    def _principal(self, claims: Mapping[str, object], directory: Directory) -> Human | Agent | None:
        """The agent or the member whom a token names, in the organisation that it names; never the one for the other."""
        org_id = self._org(claims, directory)
        if org_id is None or claims.get(_BOUND) is not None:
            return None
        if self._names.agent is not None and self._names.agent in claims:
            agent = directory.agents.get(_text(claims, self._names.agent))
            return agent if agent is not None and agent.org_id == org_id and agent.is_active else None
        return self._member(claims, org_id, directory) if claims.get(_ACTOR) is None else None

    def _org(self, claims: Mapping[str, object], directory: Directory) -> str | None:
        """The organisation a token is for: the one it names, which whoever it names has to be of, or the only one there is."""
        if self._names.org is None:
            orgs = list(directory.orgs)
            return orgs[0] if len(orgs) == 1 else None
        return _text(claims, self._names.org)

    def _member(self, claims: Mapping[str, object], org_id: str, directory: Directory) -> Human | None:
        """The member with the address that the issuer has verified, while its word on their role is the organisation's."""
        given, verified = _text(claims, self._names.email), claims.get(f"{self._names.email}_verified")
        address = normal_email(given) if verified is True and len(given) <= LONGEST else None
        human = directory.human_with_email(address) if address is not None else None
        if human is None or human.org_id != org_id:
            return None
        if self._names.role is not None:
            said = claims.get(self._names.role)
            if human.role not in (said if isinstance(said, list) else [said]):
                return None
        return human

    def _is_as_first_used(self, token: AccessToken, principal: Human | Agent) -> bool:
        """Whether nothing that ends the credentials of a principal has happened since this token was first shown."""
        now_used = (principal.id, principal.generation)
        with self._lock:
            first_used = self._first_used.setdefault(token.digest, now_used)
            self._first_used.move_to_end(token.digest)
            if len(self._first_used) > REMEMBERED:
                self._first_used.popitem(last=False)
        return first_used == now_used


def find_issuer(settings: Settings, orgs: int, now: datetime) -> Issuer | None:
    """The issuer that the settings name, for a data directory with so many organisations; keys in a file are read at once.

    Raises:
        ConfigError: the file is no key set, or nothing says for which organisation a token is.
    """
    issuer, audience, where = settings.oidc_issuer, settings.oidc_audience, settings.oidc_jwks
    if issuer is None or audience is None or where is None:
        return None
    if orgs > 1 and settings.oidc_org_claim is None:
        raise ConfigError(
            f"`oidc_org_claim` is required, for there are {orgs} organisations here: the claim that holds the id of one"
        )
    keys = IssuerKeys(key_source(where))
    if "://" not in where:
        try:
            keys.load(now)
        except KeySetUnusable as wrong:
            raise ConfigError(f"`oidc_jwks` must be an https address or a file with a JWK set: {wrong}") from wrong
    skew = settings.oidc_clock_skew if settings.oidc_clock_skew is not None else SKEW_SECONDS
    algorithms = frozenset(listed(settings.oidc_algorithms or ALGORITHMS))
    terms = Terms(issuer, frozenset(listed(audience)), algorithms, timedelta(seconds=skew))
    names = Names(
        settings.oidc_email_claim or OIDC_EMAIL, settings.oidc_org_claim, settings.oidc_role_claim, settings.oidc_agent_claim
    )
    return Issuer(terms, names, keys)


def _text(claims: Mapping[str, object], name: str) -> str:
    """A claim that is a text; empty when it is none."""
    value = claims.get(name)
    return value if isinstance(value, str) else ""
