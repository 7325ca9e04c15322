"""Secrets that the gateway hands out: how they are made, hashed and compared."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import Final, Literal

Prefix = Literal["1ck_", "ocv_", "plt_", "pgc_", "pgb_", "ct_", "rat_"]
KeyHolder = Literal["Human", "Agent", "Platform", "Connection", "Bridge"]

HUMAN_KEY: Final[Prefix] = "1ck_"
AGENT_KEY: Final[Prefix] = "ocv_"
PLATFORM_KEY: Final[Prefix] = "plt_"
CONNECTION_KEY: Final[Prefix] = "pgc_"
BRIDGE_KEY: Final[Prefix] = "pgb_"
CLAIM: Final[Prefix] = "ct_"
REAUTH: Final[Prefix] = "rat_"

#: The prefix of a long-lived key says whose it is; the stored row has to agree.
KEY_HOLDERS: Final[Mapping[str, KeyHolder]] = {
    HUMAN_KEY: "Human",
    AGENT_KEY: "Agent",
    PLATFORM_KEY: "Platform",
    CONNECTION_KEY: "Connection",
    BRIDGE_KEY: "Bridge",
}

#: Of every prefix in there.
PREFIX_CHARACTERS = 4
SECRET_BYTES = 32
#: Longer than any key: what is sent as one may be no longer.
KEY_CHARACTERS = 256


def mint_key(prefix: Prefix) -> tuple[str, str]:
    """A fresh secret with its prefix, and the hash under which it is stored.

    The secret is shown once and kept nowhere.
    """
    secret = prefix + secrets.token_urlsafe(SECRET_BYTES)
    return secret, hash_secret(secret)


def mint_password() -> str:
    """A password to hand to a person once: 144 random bits in 24 characters."""
    return secrets.token_urlsafe(18)


def hash_secret(secret: str) -> str:
    """SHA-256 of a secret, in hex.

    A plain hash is right here and only here: 256 random bits cannot be guessed however fast the hash is, so a slow,
    salted one would cost each request and protect nothing. What people choose goes through `passwords`.
    """
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def same_hash(one: str, other: str) -> bool:
    """Whether two hashes are equal, in time that does not depend on where they differ."""
    return hmac.compare_digest(one.encode("utf-8"), other.encode("utf-8"))


def holder_of(secret: str) -> KeyHolder | None:
    """Whose kind of key this is by its prefix, or None when it is no long-lived key."""
    return KEY_HOLDERS.get(secret[:PREFIX_CHARACTERS])
