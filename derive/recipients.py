"""Recipients: who an action reaches, as its payload names them."""

from collections.abc import Mapping
from unicodedata import normalize

RECIPIENT_FIELDS = ("recipient", "to", "payee", "customer_email", "email", "account")


def read_recipient(payload: Mapping[str, object]) -> str | None:
    """Gives the first string of RECIPIENT_FIELDS, trimmed, NFC, lower case; None when there is none.

    A field that is not a string, or is blank, counts as absent and the next one is read: a blank `recipient`
    cannot hide the `to` that is paid. Look-alikes are not folded: one code point apart is another recipient.
    """
    for field in RECIPIENT_FIELDS:
        value = payload.get(field)
        if isinstance(value, str) and (name := value.strip()):
            return normalize("NFC", normalize("NFC", name).lower())
    return None
