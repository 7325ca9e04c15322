"""Who is calling, as authentication found it; nothing in it comes from the request's own words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from gateway.model.entity import EntityUid

PrincipalType = Literal["Human", "Agent", "Platform", "Connection", "Bridge", "Operator"]


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated principal, the organisation it belongs to and the credential it showed.

    `token_id` is the id of the token when the bearer was one, else None; `expires_at` is the end of the bearer, and
    `key_ends_at` that of the key that a token was given for.
    """

    type: PrincipalType
    id: str
    org_id: str
    credential_id: str
    token_id: str | None = None
    expires_at: datetime | None = None
    key_ends_at: datetime | None = None

    @property
    def uid(self) -> EntityUid:
        return EntityUid(self.type, self.id)

    def lives(self, now: datetime) -> bool:
        """Whether neither the bearer nor the key behind it has ended by itself."""
        return all(end is None or now < end for end in (self.expires_at, self.key_ends_at))


#: Who calls before authentication. Public operations decide nothing for it and read nothing of anybody's.
ANONYMOUS = Caller("Operator", "anonymous", "", "")
#: A monitoring system that showed the token of the metrics.
SCRAPER = Caller("Operator", "metrics", "", "metrics")
#: Whoever holds the data directory and runs a command on it.
OPERATOR = Caller("Operator", "local", "", "local")
