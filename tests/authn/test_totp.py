"""One-time codes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyotp
import pytest

from gateway.authn.totp import enrolment_uri, matching_step, new_secret
from tests.authn.builders import NOW

#: RFC 6238, appendix B: the SHA-1 seed, and the last six digits of its codes.
RFC_SECRET = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
PRESENT = int(NOW.timestamp()) // 30


def code(offset: int = 0) -> str:
    return pyotp.TOTP(RFC_SECRET).generate_otp(PRESENT + offset)


@pytest.mark.parametrize(
    ("at", "expected"), [(59, "287082"), (1111111109, "081804"), (1234567890, "005924"), (20000000000, "353130")]
)
def test_codes_are_those_of_the_standard(at: int, expected: str) -> None:
    assert matching_step(RFC_SECRET, expected, datetime.fromtimestamp(at, UTC), last_step=None) == at // 30


@pytest.mark.parametrize(("offset", "accepted"), [(-2, False), (-1, True), (0, True), (1, True), (2, False)])
def test_a_clock_may_differ_by_one_step(offset: int, accepted: bool) -> None:
    assert matching_step(RFC_SECRET, code(offset), NOW, last_step=None) == (PRESENT + offset if accepted else None)


def test_a_code_counts_once_and_so_does_every_one_before_it() -> None:
    assert matching_step(RFC_SECRET, code(), NOW, last_step=PRESENT) is None
    assert matching_step(RFC_SECRET, code(-1), NOW, last_step=PRESENT) is None
    assert matching_step(RFC_SECRET, code(1), NOW, last_step=PRESENT) == PRESENT + 1


@pytest.mark.parametrize("form", ["", "12345", "1234567", "\u0661\u0662\u0663\u0664\u0665\u0666", "12 456", "abcdef", "-12345"])
def test_anything_but_six_digits_is_refused(form: str) -> None:
    assert matching_step(RFC_SECRET, form, NOW, last_step=None) is None
    assert matching_step(RFC_SECRET, code() + form[:1] + "\n", NOW, last_step=None) is None


def test_a_step_has_thirty_seconds() -> None:
    later = NOW + timedelta(seconds=59)
    assert matching_step(RFC_SECRET, code(), later, last_step=None) == PRESENT
    assert matching_step(RFC_SECRET, code(), NOW + timedelta(seconds=60), last_step=None) is None


def test_enrolment_names_the_product_and_the_account() -> None:
    secret = new_secret()
    assert len(secret) == 32
    assert new_secret() != secret
    assert (
        enrolment_uri(secret, "a+b@sample.example")
        == f"otpauth://totp/Peergate:a%2Bb%40sample.example?secret={secret}&issuer=Peergate"
    )
