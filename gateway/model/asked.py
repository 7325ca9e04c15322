"""What somebody asks of a policy store from outside: may a subject do an action on a resource?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Properties = Mapping[str, object]
#: What a search looks for: the member of the question that it leaves open.
Sought = Literal["subject", "resource", "action"]


class Named(NamedTuple):
    """A subject or a resource as it is named from outside: a type, an id, and what was sent of it."""

    type: str
    id: str
    properties: Properties | None = None


class Asked(NamedTuple):
    """One question, its values as JSON has them; of a search, the id or the name that it looks for is empty."""

    subject: Named
    action: str
    resource: Named
    action_properties: Properties | None = None
    context: Properties | None = None


class Unusable(ValueError):
    """A value that was sent cannot be what the schema says it is; `place` names it, and the message says why."""

    def __init__(self, place: str, why: str) -> None:
        super().__init__(f"`{place}` {why}")
        self.place = place
