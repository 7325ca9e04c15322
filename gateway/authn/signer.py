"""Tokens: three-part JWTs signed with Ed25519, by keys that can be rotated."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import OKPKey

from gateway import limits
from gateway.authn.claims import Claims, read_claims
from gateway.authn.compact import read_compact
from gateway.authn.keyfile import KeyFileError, read_private, replace, write_new

#: RFC 9864: the name says the curve. The list of what is accepted has one entry, so a token never picks its own.
ALGORITHM = "Ed25519"
FILE = Path("keys") / "signing.json"
#: A token signed just before a rotation may live this long.
OVERLAP = timedelta(seconds=limits.TOKEN_SECONDS_RANGE[1])
#: Verified tokens kept, so that a request costs a look-up and not a signature; one is about a kilobyte.
CACHED_TOKENS = 10_000


@dataclass(frozen=True, slots=True)
class Key:
    """A signing key, or the public half of one that was rotated out and verifies until `ends_at`."""

    kid: str
    jwk: OKPKey = field(repr=False)
    ends_at: datetime | None

    def good_at(self, now: datetime) -> bool:
        """Whether it verifies now."""
        return self.ends_at is None or now < self.ends_at


class Signer:
    """Signs with the newest key and verifies with every key whose overlap has not ended.

    A verified token is remembered; whether its key still counts, and its times, are looked at on every call.
    """

    def __init__(self, path: Path, keys: Mapping[str, Key], signing: str) -> None:
        self._path = path
        self._keys = dict(keys)
        self._signing = signing
        self._verified: OrderedDict[str, tuple[str, Claims]] = OrderedDict()

    @classmethod
    def create(cls, data: Path) -> Signer:
        """Make the first key of a data directory.

        Raises:
            KeyFileError: there is a key file already.
        """
        key = _new_key()
        signer = cls(data / FILE, {key.kid: key}, key.kid)
        write_new(signer._path, signer._written())
        return signer

    @staticmethod
    def refuse_existing(data: Path) -> None:
        """Make sure that `create` will not find a key file.

        Raises:
            KeyFileError: there is one already.
        """
        if (data / FILE).exists():
            raise KeyFileError(f"{data / FILE} exists already: keys in use are not overwritten")

    @classmethod
    def load(cls, data: Path) -> Signer:
        """Read the keys of a data directory.

        Raises:
            KeyFileError: missing, open to other users, or not a key file.
        """
        path = data / FILE
        text = read_private(path)
        try:
            stored = json.loads(text)
            keys = [_read_key(entry) for entry in stored["keys"]]
            signing = stored["signing"]
            whole = any(key.kid == signing and key.jwk.is_private and key.ends_at is None for key in keys)
        except (ValueError, KeyError, TypeError, JoseError) as wrong:
            # The cause is cut off: its message could quote a key.
            raise KeyFileError(f"{path} is not a file of signing keys ({type(wrong).__name__})") from None
        if not whole:
            raise KeyFileError(f"{path} names no key to sign with")
        return cls(path, {key.kid: key for key in keys}, signing)

    @property
    def kids(self) -> tuple[str, ...]:
        """The ids of the keys, the signing one last."""
        return (*(kid for kid in self._keys if kid != self._signing), self._signing)

    def rotate(self, now: datetime, *, overlap: timedelta = OVERLAP) -> str:
        """Sign with a new key from now on, and return its id; the old one verifies until `overlap` has passed.

        The private half of the old key is gone. With no overlap every token issued so far ends at once.
        """
        old, new = self._keys[self._signing], _new_key()
        kept = {kid: key for kid, key in self._keys.items() if key.good_at(now)}
        kept[old.kid] = Key(old.kid, OKPKey.import_key(old.jwk.as_dict(private=False)), now + overlap)
        rotated = Signer(self._path, {**kept, new.kid: new}, new.kid)
        replace(self._path, rotated._written())
        self._keys, self._signing = rotated._keys, rotated._signing
        return new.kid

    def copy_to(self, data: Path) -> None:
        """Write the keys, private halves included, into another data directory: a backup that is served signs on with them.

        Raises:
            KeyFileError: there is a key file already.
        """
        write_new(data / FILE, self._written())

    def sign(self, claims: Claims, scopes: list[str]) -> str:
        """A token with these claims."""
        key = self._keys[self._signing]
        header = {"alg": ALGORITHM, "kid": key.kid, "typ": "JWT"}
        return jwt.encode(header, claims.written(scopes), key.jwk, algorithms=[ALGORITHM])

    def seal(self, content: bytes) -> tuple[bytes, bytes]:
        """An Ed25519 signature of bytes that are no token, and the public key as PEM, for tools that know nothing of ours."""
        key = self._keys[self._signing].jwk
        signature: bytes = key.private_key.sign(content)  # type: ignore[union-attr]  # the signing key is whole, and Ed25519
        return signature, key.as_pem(private=False)

    def verify(self, token: str, now: datetime) -> Claims | None:
        """The claims of a token that one of the keys signed and whose time is now, without leeway; else None."""
        known = self._verified.get(token)
        if known is None:
            known = self._check(token)
            if known is None:
                return None
            self._verified[token] = known
            if len(self._verified) > CACHED_TOKENS:
                self._verified.popitem(last=False)
        else:
            self._verified.move_to_end(token)
        kid, claims = known
        key = self._keys.get(kid)
        if key is None or not key.good_at(now) or not claims.issued_at <= now.timestamp() < claims.expires_at:
            self._verified.pop(token, None)
            return None
        return claims

    def _check(self, token: str) -> tuple[str, Claims] | None:
        """The key id and claims of a token with a good signature; time is not looked at."""
        read = read_compact(token)
        header = read.header if read is not None else {}
        kid = header.get("kid")
        key = self._keys.get(kid) if isinstance(kid, str) else None
        # Exactly these three members: no `crit`, no embedded key, no second way to say what the algorithm is.
        if key is None or header != {"alg": ALGORITHM, "kid": key.kid, "typ": "JWT"}:
            return None
        try:
            claims = read_claims(jwt.decode(token, key.jwk, algorithms=[ALGORITHM]).claims)
        except (JoseError, ValueError, RecursionError):
            return None
        return (key.kid, claims) if claims is not None else None

    def _written(self) -> str:
        entries = [
            {**key.jwk.as_dict(private=key.jwk.is_private), "kid": key.kid, "ends_at": key.ends_at and key.ends_at.isoformat()}
            for key in self._keys.values()
        ]
        return json.dumps({"signing": self._signing, "keys": entries}, indent=1) + "\n"


def _new_key() -> Key:
    jwk = OKPKey.generate_key("Ed25519")
    return Key(jwk.thumbprint(), jwk, None)


def _read_key(entry: Mapping[str, str]) -> Key:
    ends_at = entry["ends_at"]
    jwk = OKPKey.import_key({name: entry[name] for name in ("kty", "crv", "x", "d") if name in entry})
    return Key(entry["kid"], jwk, datetime.fromisoformat(ends_at) if ends_at is not None else None)
