"""How a refusal reaches a model: the public reason, what to do next and the decision's id, and nothing more."""

from __future__ import annotations

from gateway.errors import GatewayError
from gateway.mcp.tool import Shown
from gateway.web.problems import problem_details, problem_headers


def refused(error: GatewayError) -> Shown:
    """The problem details of HTTP, and the same as lines."""
    told = problem_details(error)
    lines = [f"{error.title}: {error.detail}"]
    wait = problem_headers(error).get("Retry-After")
    if wait is not None:
        told["retry_after"] = int(wait)
        lines.append(f"try again in {wait} s")
    if "next" in told:
        lines.append(f"next: {told['next']}")
    if "decision_id" in told:
        lines.append(f"decision {told['decision_id']}")
    return Shown(("\n".join(lines),), told)
