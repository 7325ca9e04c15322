"""Time-based one-time passwords (RFC 6238): six digits, thirty seconds, each accepted once."""

from __future__ import annotations

import hmac
import re
from datetime import datetime

import pyotp

STEP_SECONDS = 30
ISSUER = "Peergate"
#: Steps before and after the present one that are accepted, for clocks that differ.
WINDOW = 1

_CODE = re.compile(r"[0-9]{6}")


def new_secret() -> str:
    """A fresh shared secret: 160 bits in base32."""
    return pyotp.random_base32()


def enrolment_uri(secret: str, account: str) -> str:
    """The `otpauth://` address that an authenticator app reads as a QR code."""
    return pyotp.TOTP(secret).provisioning_uri(name=account, issuer_name=ISSUER)


def matching_step(secret: str, code: str, now: datetime, *, last_step: int | None) -> int | None:
    """The time step a code belongs to, or None when it is of none in the window or was used.

    A code counts only for a step after `last_step`, the last one accepted: seen over a shoulder, it is worth nothing.
    """
    if not _CODE.fullmatch(code):
        return None
    generator = pyotp.TOTP(secret)
    present = int(now.timestamp()) // STEP_SECONDS
    steps = [
        step for step in range(present - WINDOW, present + WINDOW + 1) if hmac.compare_digest(generator.generate_otp(step), code)
    ]
    return next((step for step in steps if last_step is None or step > last_step), None)
