"""What a 401 asks for: the `WWW-Authenticate` header."""

from __future__ import annotations

from gateway.errors import InvalidToken, Unauthenticated


def challenge(refused: Unauthenticated, metadata: str | None = None) -> str:
    """The challenge of RFC 6750, with the address of the resource's metadata (RFC 9728) where there is one.

    A request that shows no credential is told of no error, for there was none.
    """
    said: dict[str, str] = {}
    if isinstance(refused, InvalidToken):
        said |= {"error": "invalid_token", "error_description": refused.reason}
    if metadata is not None:
        said["resource_metadata"] = metadata
    return " ".join(("Bearer", ", ".join(f'{name}="{value}"' for name, value in said.items()))).rstrip()
