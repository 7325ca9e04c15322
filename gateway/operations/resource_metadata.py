"""What this gateway is to a client without a token: which resource, and who issues tokens for it (RFC 9728)."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

from gateway.config import Settings
from gateway.errors import NotFound
from gateway.operations.call import Call
from gateway.operations.operation import Operation, Reply
from gateway.operations.wire import records as wire

WELL_KNOWN = "/.well-known/oauth-protected-resource"
#: Where agents speak the Model Context Protocol: a resource of its own name.
MCP = "/mcp"
_PUBLIC = "a client reads it to learn who issues tokens, before it has one"


def metadata_url(settings: Settings, path: str = "") -> str | None:
    """Where the metadata of the gateway, or of a path of it such as `/mcp`, is read; None when there is none.

    The well-known part stands between host and path, so a gateway below a path has it outside of that path.
    """
    if settings.public_url is None or settings.oidc_issuer is None:
        return None
    public = urlsplit(settings.public_url)
    return urlunsplit((public.scheme, public.netloc, WELL_KNOWN + public.path.rstrip("/") + path, "", ""))


async def gateway_metadata(call: Call) -> Reply:
    """The metadata of the whole gateway."""
    return _metadata(call.services.settings, "")


async def mcp_metadata(call: Call) -> Reply:
    """The metadata of what is at `/mcp`."""
    return _metadata(call.services.settings, MCP)


def _metadata(settings: Settings, path: str) -> Reply:
    for name in ("public_url", "oidc_issuer"):
        if getattr(settings, name) is None:
            raise NotFound(f"there is no metadata, because the setting `{name}` is not set")
    return Reply(
        {
            "resource": f"{settings.public_url}".rstrip("/") + path,
            "authorization_servers": [settings.oidc_issuer],
            "bearer_methods_supported": ["header"],
            "resource_name": "Peergate",
        }
    )


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "resource.metadata",
        "GET",
        WELL_KNOWN,
        "Say who issues tokens for this gateway.",
        gateway_metadata,
        public=_PUBLIC,
        answers={200: wire.RESOURCE},
        problems=(404,),
    ),
    Operation(
        "resource.mcp_metadata",
        "GET",
        WELL_KNOWN + MCP,
        "Say who issues tokens for what is at `/mcp`.",
        mcp_metadata,
        public=_PUBLIC,
        answers={200: wire.RESOURCE},
        problems=(404,),
    ),
)
