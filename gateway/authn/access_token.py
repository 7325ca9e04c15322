"""An access token of an issuer: its shape, its signature and its claims, each looked at strictly and in this order."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jws import JWSRegistry

from gateway import limits
from gateway.authn.compact import read_compact, read_object
from gateway.authn.jwks import FITS, PublicKey
from gateway.errors import InvalidToken

#: What a token may say it is, in lower case: RFC 9068 names the first; many issuers say only that it is a JWT, or nothing.
TYPES: Final = frozenset({"at+jwt", "application/at+jwt", "jwt"})
#: Members of a header that are refused: none of the extensions is understood here, keys come from nowhere but the key set,
#: and what is inside is claims and no other token.
REFUSED: Final = frozenset({"crit", "jku", "jwk", "x5u", "x5c", "cty", "enc", "zip"})
#: Ours live as long at most. What an issuer revokes is not seen here before its token ends.
LONGEST = timedelta(seconds=limits.TOKEN_SECONDS_RANGE[1])
#: The last second that a time can be.
_LAST: Final = datetime(9999, 12, 30, tzinfo=UTC).timestamp()


@dataclass(frozen=True, slots=True)
class Terms:
    """Whose tokens are taken and for what; `skew` is how far the issuer's clock may be from ours."""

    issuer: str
    audiences: frozenset[str]
    algorithms: frozenset[str]
    skew: timedelta


@dataclass(frozen=True, slots=True)
class Outline:
    """What a token says of itself before anything of it is believed.

    `digest` is of what is signed: a signature can be written in two ways by anybody, what it signs cannot.
    """

    algorithm: str
    kid: str
    digest: str


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A token that its issuer signed for us and that is good now; `ends_at` has the skew in it."""

    claims: Mapping[str, object]
    digest: str
    ends_at: datetime


class _Registry(JWSRegistry):
    """The algorithms of the library, without its advice on them: which are taken is decided before it is asked."""

    max_header_length = 2_048

    def get_alg(self, name: str) -> Any:
        return self.algorithms[name]


_REGISTRY = _Registry(algorithms=list(FITS), strict_check_header=False)


def outline(token: str, terms: Terms) -> Outline | None:
    """How a token would have to be verified, or None when it is not of a shape that is taken.

    Whom it names as its issuer is read here already, unproven, so that no other token can make keys be fetched.
    """
    read = read_compact(token)
    if read is None or not REFUSED.isdisjoint(read.header):
        return None
    algorithm, kid, kind = read.header.get("alg"), read.header.get("kid"), read.header.get("typ", "JWT")
    if not isinstance(algorithm, str) or algorithm not in terms.algorithms:
        return None
    if not isinstance(kid, str) or not isinstance(kind, str) or kind.lower() not in TYPES:
        return None
    if (read_object(read.payload) or {}).get("iss") != terms.issuer:
        return None
    return Outline(algorithm, kid, hashlib.sha256(token.rpartition(".")[0].encode("ascii")).hexdigest())


def verify(token: str, found: Outline, key: PublicKey, terms: Terms, now: datetime) -> AccessToken:
    """The token, when its key signed it, for us, and it is good now. The issuer is the one that `outline` found in it.

    Raises:
        InvalidToken: it is not; what is wrong with it is said only when the signature is right.
    """
    claims = _signed(token, found, key)
    if claims is None:
        raise InvalidToken
    if terms.audiences.isdisjoint(_audience(claims.get("aud"))):
        raise InvalidToken("the token is for another audience")
    return AccessToken(claims, found.digest, _good_until(claims, terms.skew, now))


def _signed(token: str, found: Outline, key: PublicKey) -> dict[str, object] | None:
    if found.algorithm not in key.algorithms:
        return None
    try:
        return read_object(jws.deserialize_compact(token, key.jwk, registry=_REGISTRY).payload or b"")
    except (JoseError, ValueError):
        return None


def _audience(given: object) -> set[str]:
    """Whom a token is for: one name, or a list of nothing but names."""
    names = given if isinstance(given, list) else [given]
    return {name for name in names if isinstance(name, str)} if all(isinstance(name, str) for name in names) else set()


def _good_until(claims: Mapping[str, object], skew: timedelta, now: datetime) -> datetime:
    """When the token ends; it has begun and has not ended.

    Raises:
        InvalidToken: it has ended, has not begun, or does not say when.
    """
    expires_at, issued_at = _time(claims, "exp"), _time(claims, "iat")
    if expires_at is None or issued_at is None:
        raise InvalidToken("the token does not say when it was issued and when it expires")
    ends_at = expires_at + skew
    if now >= ends_at:
        raise InvalidToken("the token has expired")
    if now + skew < max(issued_at, _time(claims, "nbf") or issued_at):
        raise InvalidToken("the token is not valid yet")
    if expires_at - issued_at > LONGEST:
        raise InvalidToken(f"the token is issued for more than {LONGEST.total_seconds() / 3600:.0f} hours")
    return ends_at


def _time(claims: Mapping[str, object], name: str) -> datetime | None:
    """A time in seconds since the epoch, or None when there is none. A JSON true is no number, and a text of digits neither."""
    value = claims.get(name)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < _LAST:
        raise InvalidToken("a time in the token is not one")
    return datetime.fromtimestamp(value, UTC)
