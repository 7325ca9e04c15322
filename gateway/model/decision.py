"""A decision: what Cedar said of one request, and what the fail-closed rules made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from gateway.model.entity import EntityUid, Value


class DenyKind(StrEnum):
    """Why a request was not allowed; recorded with every deny."""

    FORBIDDEN = "forbidden"
    NOT_PERMITTED = "not_permitted"
    EVALUATION_ERROR = "evaluation_error"
    INVALID_REQUEST = "invalid_request"
    STALE = "stale"
    DEADLINE = "deadline"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class Query:
    """One question to the engine: may `principal` do `action` on `resource` in `context`?"""

    principal: EntityUid
    action: str
    resource: EntityUid
    context: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Reason:
    """One determining policy, as its annotations describe it."""

    policy_id: str
    effect: str
    text: str
    code: str | None = None
    precedence: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to a `Query`.

    `allowed` is true only for Cedar's Allow, without an evaluation error, over a complete slice; then `deny_kind` is None.
    `policies` are the `@id`s of the determining policies, sorted; `reasons` describe the same policies in the same order.
    `errors` are the ids of the policies that failed to evaluate, sorted: never error texts, which carry attribute values.
    """

    allowed: bool
    deny_kind: DenyKind | None
    policies: tuple[str, ...]
    reasons: tuple[Reason, ...]
    errors: tuple[str, ...]
