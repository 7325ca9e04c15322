"""The dialect of the network's bridge: its paths, and how a refusal looks on them."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from gateway.errors import GatewayError
from gateway.web.answer import Answer, answer
from gateway.web.problems import problem_headers

CHAT = b"/api/web/chat"
PATHS = b"/api/arp/"

#: The word for each status; of the others, those below 500 are a bad request and the rest are ours.
WORDS = {
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    422: "obligation_unsatisfiable",
    429: "rate_limited",
}
#: What is refused without a reason, because any reason would tell one cause from another.
BARE = frozenset({401, 404})


def speaks(path: bytes) -> bool:
    """Whether a path as it was sent, of a route or of none, is one that the bridge asks for."""
    decoded = unquote_to_bytes(path)
    return decoded == CHAT or decoded.startswith(PATHS)


def refusal(error: GatewayError, metadata: str | None = None) -> Answer:
    """The answer that an error is: `{ok: false, error, reason}`, without the reason where it would tell one cause from another.

    INVARIANT: nothing in its body depends on the request id or on the clock, so that two refusals for one reason are equal.
    """
    word = WORDS.get(error.status, "bad_request" if error.status < 500 else "internal")
    body: dict[str, object] = {"ok": False, "error": word}
    if error.status not in BARE:
        body["reason"] = error.detail
    return answer(error.status, body, problem_headers(error, metadata))
