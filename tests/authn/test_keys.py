"""Secrets: their form, and what is kept of them."""

from __future__ import annotations

import hashlib

import pytest

from gateway.authn.keys import Prefix, hash_secret, holder_of, mint_key, mint_password, same_hash


@pytest.mark.parametrize("prefix", ["1ck_", "ocv_", "plt_", "pgc_", "pgb_", "ct_", "rat_"])
def test_a_secret_has_its_prefix_and_256_random_bits(prefix: Prefix) -> None:
    secrets = {mint_key(prefix)[0] for _ in range(100)}
    assert len(secrets) == 100
    assert all(secret.startswith(prefix) and len(secret) == len(prefix) + 43 for secret in secrets)


def test_what_is_stored_is_the_hash_of_the_whole_secret() -> None:
    secret, stored = mint_key("ocv_")
    assert stored == hash_secret(secret) == hashlib.sha256(secret.encode()).hexdigest()


def test_hashes_are_equal_only_when_they_are() -> None:
    one, other = hash_secret("a"), hash_secret("b")
    assert (same_hash(one, one), same_hash(one, other), same_hash(one, one[:-1]), same_hash(one, "\u00e9")) == (
        True,
        False,
        False,
        False,
    )


def test_any_string_can_be_hashed() -> None:
    assert len(hash_secret("\ud800")) == 64


@pytest.mark.parametrize(
    ("secret", "holder"),
    [
        ("1ck_a", "Human"),
        ("ocv_a", "Agent"),
        ("plt_a", "Platform"),
        ("pgc_a", "Connection"),
        ("pgb_a", "Bridge"),
        ("rat_a", None),
        ("ct_a", None),
        ("1CK_a", None),
        ("", None),
    ],
)
def test_a_prefix_says_whose_key_it_is(secret: str, holder: str | None) -> None:
    assert holder_of(secret) == holder


def test_a_minted_password_is_long_enough_for_its_own_rule() -> None:
    assert len({mint_password() for _ in range(50)}) == 50
    assert len(mint_password()) == 24
