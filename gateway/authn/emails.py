"""E-mail addresses as the names of accounts: one spelling each."""

from __future__ import annotations

import re
import unicodedata

LONGEST = 254

ADDRESS = re.compile(r"[^\s@]+@[^\s@.]+(\.[^\s@.]+)*")


def normal_email(text: str) -> str | None:
    """The one spelling of an address (trimmed, composed, lower case), or None when it is none.

    Look-alike letters stay different: folding them would hand one person's account to another.
    """
    address = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text.strip()).lower())
    plain = len(address) <= LONGEST and address.isprintable() and ADDRESS.fullmatch(address)
    return address if plain else None
