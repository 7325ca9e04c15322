"""What a token says, and the strict reading of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

Subject = Literal["Human", "Agent"]

_SUBJECTS: Final[dict[str, Subject]] = {"user": "Human", "agent": "Agent"}
_KINDS: Final[dict[Subject, str]] = {"Human": "user", "Agent": "agent"}
_SUBJECT = re.compile(r"(user|agent):([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_TEXTS = ("org", "jti", "cid")
_NUMBERS = ("iat", "exp", "gen")


@dataclass(frozen=True, slots=True)
class Claims:
    """A token's content: who, until when, and what it hangs on.

    `credential_id` is the key the token was exchanged from, empty for a password. `generation` is the principal's at
    issue. `issued_at` and `expires_at` are whole seconds since the epoch.
    """

    principal_type: Subject
    principal_id: str
    org_id: str
    credential_id: str
    generation: int
    issued_at: int
    expires_at: int
    token_id: str

    def written(self, scopes: list[str]) -> dict[str, object]:
        """The claims under their names on the wire. `scopes` is for clients to read; no decision here looks at it."""
        return {
            "sub": f"{_KINDS[self.principal_type]}:{self.principal_id}",
            "org": self.org_id,
            "scopes": scopes,
            "iat": self.issued_at,
            "exp": self.expires_at,
            "jti": self.token_id,
            "gen": self.generation,
            "cid": self.credential_id,
        }


def read_claims(given: Mapping[str, object]) -> Claims | None:
    """The claims of a payload, or None when one is missing or of the wrong type."""
    subject = given.get("sub")
    found = _SUBJECT.fullmatch(subject) if isinstance(subject, str) else None
    texts = {name: value for name in _TEXTS if isinstance(value := given.get(name), str)}
    # `type(...) is int`: a JSON true is no number, and 1e9 is no whole one.
    numbers = {name: value for name in _NUMBERS if isinstance(value := given.get(name), int) and type(value) is int}
    if found is None or len(texts) < len(_TEXTS) or len(numbers) < len(_NUMBERS) or not texts["jti"]:
        return None
    return Claims(
        principal_type=_SUBJECTS[found[1]],
        principal_id=found[2],
        org_id=texts["org"],
        credential_id=texts["cid"],
        generation=numbers["gen"],
        issued_at=numbers["iat"],
        expires_at=numbers["exp"],
        token_id=texts["jti"],
    )
