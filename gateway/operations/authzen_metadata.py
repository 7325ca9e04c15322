"""The metadata of the AuthZEN Authorization API 1.0: where the endpoints are, from the settings and never from a request."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

from gateway.errors import NotFound
from gateway.operations.call import Call
from gateway.operations.operation import Operation, Reply
from gateway.operations.wire import authzen as wire

WELL_KNOWN = "/.well-known/authzen-configuration"
ENDPOINTS = {
    "access_evaluation_endpoint": "/access/v1/evaluation",
    "access_evaluations_endpoint": "/access/v1/evaluations",
    "search_subject_endpoint": "/access/v1/search/subject",
    "search_resource_endpoint": "/access/v1/search/resource",
    "search_action_endpoint": "/access/v1/search/action",
}
PUBLIC = "clients read it before they have a credential; it says where to ask, and nothing of what is held"


async def metadata(call: Call) -> Reply:
    """Where this decision point answers. It is known by the address in the settings, and by no other."""
    known = call.services.settings.public_url
    if known is None:
        raise NotFound("this gateway advertises no address: `public_url` (PEERGATE_PUBLIC_URL) is not set")
    identifier = known.rstrip("/")
    tenant = call.path.get("tenant")
    if urlsplit(identifier).path != ("" if tenant is None else f"/{quote(tenant)}"):
        raise NotFound("the address of this decision point, `public_url`, has another path")
    endpoints = {name: identifier + path for name, path in ENDPOINTS.items()}
    return Reply({"policy_decision_point": identifier, **endpoints}, headers={"Cache-Control": "public, max-age=3600"})


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "authzen.metadata",
        "GET",
        WELL_KNOWN,
        "Show where AuthZEN clients ask.",
        metadata,
        public=PUBLIC,
        answers={200: wire.METADATA},
        problems=(404,),
    ),
    Operation(
        "authzen.metadata_of_path",
        "GET",
        f"{WELL_KNOWN}/{{tenant}}",
        "Show where AuthZEN clients ask when the address of this gateway has a path.",
        metadata,
        public=PUBLIC,
        answers={200: wire.METADATA},
        problems=(404,),
    ),
)
