"""Where a request says it is going and comes from: a page in a browser must not reach a gateway on its own machine."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from gateway.errors import Forbidden, GatewayError, echo
from gateway.web.request import Headers

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?")
_ORIGIN = re.compile(r"https?://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?")


class Misdirected(GatewayError):
    """The request is for another host than this one."""

    status = 421
    title = "misdirected request"


def check_place(headers: Headers, public_url: str | None) -> None:
    """Let through what is meant for this machine by one of its own names, or for the host of `public_url`.

    Raises:
        Misdirected: `Host` is missing or names another.
        Forbidden: `Origin` is there and is another.
    """
    public = urlsplit(public_url.lower()) if public_url is not None else None
    host = _HOST.fullmatch(headers.get("host", "").lower())
    if host is None or (host[1] not in LOOPBACK and (public is None or host[1] != _name(public.netloc))):
        raise Misdirected(f"`host` must be a name of this gateway, got {echo(headers.get('host', ''))}: see `public_url`")
    if "origin" not in headers:
        return
    sent = headers["origin"].lower()
    origin = _ORIGIN.fullmatch(sent)
    if origin is None or (origin[1] not in LOOPBACK and (public is None or sent != f"https://{public.netloc}")):
        raise Forbidden(f"`origin` must be a page of this gateway, got {echo(headers['origin'])}")


def _name(netloc: str) -> str:
    found = _HOST.fullmatch(netloc)
    return found[1] if found is not None else ""
