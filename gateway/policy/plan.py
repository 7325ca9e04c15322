"""A plan: what the policies say of rows that are not there yet, as a condition on them."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.model.condition import Condition
from gateway.model.decision import Verdict


@dataclass(frozen=True, slots=True)
class Plan:
    """The answer to a question whose resource is unknown.

    `condition` is true of exactly those rows for which the decision would be an allow without errors.

    `verdict` is an allow when that could be so of some row, with the permits that are left to decide; else a deny as of a
    single decision: `not_permitted` when no permit is left, `forbidden` with the forbids that hold whatever the row,
    `evaluation_error`, `invalid_request`.
    """

    verdict: Verdict
    condition: Condition
