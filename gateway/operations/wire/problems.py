"""Refusals on the wire: problem details, and the form that the network's bridge takes."""

from __future__ import annotations

from gateway.operations.schema import COUNT, ID, TEXT, Maybe, Members, Schema, only, shape, some, table, whole

_TYPE: Schema = {"type": "string", "pattern": "^urn:peergate:problem:"}
PROBLEM_MEMBERS: Members = {
    "type": _TYPE,
    "title": TEXT,
    "status": whole(400, 599),
    "detail": TEXT,
    "fields": Maybe(table(TEXT)),
    "decision_id": Maybe(ID),
    "next": Maybe(TEXT),
}
PROBLEM = shape("Problem", **PROBLEM_MEMBERS)
#: Where the bridge asks: `reason` is left out where it would tell one cause from another.
BRIDGE_PROBLEM = shape("BridgeProblem", ok=only(False), error=TEXT, reason=Maybe(TEXT))
LINK_REQUIRED = shape(
    "LinkRequired",
    **PROBLEM_MEMBERS,
    link_required=Maybe(shape(status=only("link_required"), reason=TEXT, authorize_url=TEXT, app_slug=TEXT)),
)
NOT_LOADED = shape(
    "PoliciesNotLoaded",
    **PROBLEM_MEMBERS,
    findings=Maybe(some(shape(file=TEXT, line=COUNT, policy_id=TEXT, message=TEXT))),
)
