"""What a policy writes as text and Cedar reads as a number: amounts, moments and lengths of time."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from gateway.policy.prove.schema import Unprovable

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DURATION = re.compile(r"(-)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+)s)?(?:(\d+)ms)?")
MILLISECONDS = (86_400_000, 3_600_000, 60_000, 1_000, 1)


def amount(text: str) -> int:
    """Returns a `decimal` as ten-thousandths."""
    return int(Decimal(text) * 10_000)


def moment(text: str) -> int:
    """Returns a `datetime` as milliseconds; raises `Unprovable`."""
    try:
        read = datetime.fromisoformat(text)
    except ValueError as error:
        raise Unprovable(f"the moment `{text}`") from error
    return (read.replace(tzinfo=read.tzinfo or UTC) - EPOCH) // timedelta(milliseconds=1)


def length(text: str) -> int:
    """Returns a `duration` as milliseconds; raises `Unprovable`."""
    if not (match := DURATION.fullmatch(text)):
        raise Unprovable(f"the length of time `{text}`")
    sign, *counts = match.groups()
    total = sum(int(count or 0) * unit for count, unit in zip(counts, MILLISECONDS, strict=True))
    return -total if sign else total
