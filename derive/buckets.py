"""Buckets: the fingerprint within which decisions are comparable, and its fact key."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from derive.amounts import read_amount
from derive.bands import band_of, is_band
from derive.echo import echo
from derive.recipients import read_recipient

RecipientKind = Literal["new", "known", "none"]

ACTION_PATTERN = re.compile(r"^[a-z0-9_]+(\.[a-z0-9_]+)+$")
ACTION_LENGTH = 64
_PREFIX = "approval_tendency:"


@dataclass(frozen=True, slots=True)
class Bucket:
    """Names an action, an amount band (of this table or an earlier one) and a recipient; ValueError for what cannot be.

    INVARIANT: `recipient` is `none` when `recipient_kind` is; a real recipient called `none` is new or known.
    """

    action_type: str
    amount_band: str
    recipient_kind: RecipientKind
    recipient: str

    def __post_init__(self) -> None:
        if not is_action_type(self.action_type):
            raise ValueError(f"action_type {echo(self.action_type)} is not of the form `namespace.verb`")
        if not is_band(self.amount_band):
            raise ValueError(f"amount_band {echo(self.amount_band)} is not a band")
        match self.recipient_kind, self.recipient:
            case ("none", "none"):
                pass
            case ("new" | "known", name) if name:
                pass
            case _:
                raise ValueError(f"recipient_kind {echo(self.recipient_kind)} does not go with the recipient")


def is_action_type(value: str) -> bool:
    """Tells whether a word is an action: lower-case `namespace.verb`, at most 64 characters, no wildcard."""
    return len(value) <= ACTION_LENGTH and ACTION_PATTERN.fullmatch(value) is not None


def bucket_of(action_type: str, payload: Mapping[str, object], *, known_recipient: bool) -> Bucket:
    """Gives the bucket of an action; `known_recipient` is history's word on the recipient, if there is one.

    Raises AmountError for a malformed amount and ValueError for a malformed action.
    """
    band = band_of(read_amount(payload))
    recipient = read_recipient(payload)
    if recipient is None:
        return Bucket(action_type, band, "none", "none")
    return Bucket(action_type, band, "known" if known_recipient else "new", recipient)


def fact_key(bucket: Bucket) -> str:
    """Gives `approval_tendency:action|band|kind|recipient`, `%` and `|` of the recipient percent-escaped."""
    recipient = bucket.recipient.replace("%", "%25").replace("|", "%7C")
    return f"{_PREFIX}{bucket.action_type}|{bucket.amount_band}|{bucket.recipient_kind}|{recipient}"


def bucket_of_key(key: str) -> Bucket:
    """Gives the bucket that fact_key made the key of; raises ValueError for a key that it makes of none."""
    parts = key.removeprefix(_PREFIX).split("|")
    if len(parts) == 4:
        action, band, kind, escaped = parts
        recipient = escaped.replace("%7C", "|").replace("%25", "%")
        bucket = Bucket(action, band, cast("RecipientKind", kind), recipient)  # Bucket refuses any other kind
        if fact_key(bucket) == key:
            return bucket
    raise ValueError(f"fact_key {echo(key)} is not of the form `{_PREFIX}action|band|kind|recipient`")
