"""What a token says, and the strict reading of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from gateway.model.ids import REMOTE_ID

Subject = Literal["Human", "Agent", "Connection"]

_SUBJECTS: Final[dict[str, Subject]] = {"user": "Human", "agent": "Agent", "connection": "Connection"}
_KINDS: Final[dict[Subject, str]] = {subject: kind for kind, subject in _SUBJECTS.items()}
# Ids of ours are UUIDs; the id of a connection is the network's.
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_IDS: Final[dict[Subject, re.Pattern[str]]] = {
    "Human": _UUID,
    "Agent": _UUID,
    "Connection": REMOTE_ID,
}
_TEXTS = ("org", "jti", "cid")
_NUMBERS = ("iat", "exp", "gen")


@dataclass(frozen=True, slots=True)
class Claims:
    """A token's content: who, until when, and what it hangs on.

    `credential_id` is the key the token was exchanged from, empty for a password and for a conversation. `generation` is
    the principal's at issue, for a connection with that of its agent added. `issued_at` and `expires_at` are whole seconds
    since the epoch.
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
    found = _read_subject(given.get("sub"))
    texts = {name: value for name in _TEXTS if isinstance(value := given.get(name), str)}
    # `type(...) is int`: a JSON true is no number, and 1e9 is no whole one.
    numbers = {name: value for name in _NUMBERS if isinstance(value := given.get(name), int) and type(value) is int}
    if found is None or len(texts) < len(_TEXTS) or len(numbers) < len(_NUMBERS) or not texts["jti"]:
        return None
    return Claims(
        principal_type=found[0],
        principal_id=found[1],
        org_id=texts["org"],
        credential_id=texts["cid"],
        generation=numbers["gen"],
        issued_at=numbers["iat"],
        expires_at=numbers["exp"],
        token_id=texts["jti"],
    )


def _read_subject(given: object) -> tuple[Subject, str] | None:
    """The kind and the id of a subject such as `agent:<id>`."""
    kind, _, found_id = given.partition(":") if isinstance(given, str) else ("", "", "")
    subject = _SUBJECTS.get(kind)
    return (subject, found_id) if subject is not None and _IDS[subject].fullmatch(found_id) else None
