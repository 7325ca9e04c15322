"""The public keys of an issuer, read from its JWK set: bounded, and only those that verify signatures."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey

from gateway.authn.compact import read_object

KEY_SET_BYTES = 256 * 1024
KEYS = 100
KID_CHARACTERS = 256
#: Shorter ones are broken; longer ones cost more to verify with than anybody signs for.
RSA_BITS = (2_048, 8_192)
RSA_EXPONENT_BITS = 32

_RSA = ("RSA", None)
_ED25519 = ("OKP", "Ed25519")
#: The type and curve of the only keys that each algorithm is ever verified with. All are signatures by a private key.
FITS: Final[Mapping[str, tuple[str, str | None]]] = {
    "RS256": _RSA,
    "RS384": _RSA,
    "RS512": _RSA,
    "PS256": _RSA,
    "PS384": _RSA,
    "PS512": _RSA,
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": _ED25519,
    "Ed25519": _ED25519,
}
#: The public members of each type: whatever else an entry holds, nothing else is imported.
_MEMBERS: Final = {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x")}
#: The private and the symmetric ones: a key that is published with them is everybody's.
_SECRET: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})

Jwk = RSAKey | ECKey | OKPKey


class KeySetUnusable(Exception):
    """A key set that cannot be had or read; the message says why and holds nothing of it."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key and the algorithms that it may verify."""

    jwk: Jwk = field(repr=False)
    algorithms: frozenset[str]


def read_key_set(content: bytes) -> Mapping[str, PublicKey]:
    """The usable keys of a JWK set by `kid`.

    A key of another use, type or strength is left out, and so are two different ones of one `kid`, for nothing says which
    of them is meant. A set without keys is one: that is how an issuer withdraws them.

    Raises:
        KeySetUnusable: too large, too many keys, or no key set.
    """
    if len(content) > KEY_SET_BYTES:
        raise KeySetUnusable(f"it is over the limit of {KEY_SET_BYTES // 1024} KiB")
    entries = (read_object(content) or {}).get("keys")
    if not isinstance(entries, list):
        raise KeySetUnusable("it is no JWK set")
    if len(entries) > KEYS:
        raise KeySetUnusable(f"it has more than {KEYS} keys")
    found: dict[str, PublicKey] = {}
    doubtful: set[str] = set()
    for entry in entries:
        named = _read_key(entry) if isinstance(entry, dict) else None
        if named is None:
            continue
        kid, key = named
        if kid in found and found[kid].jwk.thumbprint() != key.jwk.thumbprint():
            doubtful.add(kid)
        found[kid] = key
    return {kid: key for kid, key in found.items() if kid not in doubtful}


def _read_key(entry: Mapping[str, object]) -> tuple[str, PublicKey] | None:
    kid, operations = entry.get("kid"), entry.get("key_ops", ["verify"])
    if not isinstance(kid, str) or not 0 < len(kid) <= KID_CHARACTERS or not _SECRET.isdisjoint(entry):
        return None
    if entry.get("use", "sig") != "sig" or not isinstance(operations, list) or "verify" not in operations:
        return None
    jwk = _import(entry)
    if jwk is None:
        return None
    kind = (jwk.key_type, entry["crv"] if jwk.key_type != "RSA" else None)
    alg = entry.get("alg")
    algorithms = frozenset(name for name, fits in FITS.items() if fits == kind and alg in (None, name))
    return (kid, PublicKey(jwk, algorithms)) if algorithms else None


def _import(entry: Mapping[str, object]) -> Jwk | None:
    """The public half of a key, or None when it is none of ours or not a good one."""
    kty = entry.get("kty")
    members = _MEMBERS.get(kty) if isinstance(kty, str) else None
    if members is None:
        return None
    # Read again as text: a member of another type is no key.
    public = {name: value for name in members if isinstance(value := entry.get(name), str)}
    if len(public) < len(members):
        return None
    try:
        match kty:
            case "RSA":
                return RSAKey.import_key({"kty": "RSA", **public}) if _is_strong(public) else None
            case "EC":
                return ECKey.import_key({"kty": "EC", **public})
            case _:
                return OKPKey.import_key({"kty": "OKP", **public})
    except (JoseError, ValueError, KeyError):
        return None


def _is_strong(public: Mapping[str, str]) -> bool:
    shortest, longest = RSA_BITS
    return shortest <= _bits(public["n"]) <= longest and 2 <= _bits(public["e"]) <= RSA_EXPONENT_BITS


def _bits(number: str) -> int:
    raw = base64.b64decode(number + "=" * (-len(number) % 4), altchars=b"-_", validate=True)
    return int.from_bytes(raw).bit_length()
