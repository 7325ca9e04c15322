"""An issuer of access tokens: real keys, real signatures, and a server on this machine that publishes the keys."""

from __future__ import annotations

import json
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from tests.authn.builders import NOW

ISSUER = "https://issuer.example/realm"
AUDIENCE = "https://gate.example"
Key = RSAKey | ECKey | OKPKey


def key(kind: str = "P-256", number: int = 1) -> Key:
    """A key of a curve, or of RSA with so many bits; the same one for the same number."""
    return _key(kind, number)


@cache
def _key(kind: str, _: int) -> Key:
    if kind.isdecimal():
        with warnings.catch_warnings(action="ignore"):  # a short one is made to be refused
            return RSAKey.generate_key(int(kind))
    return OKPKey.generate_key(kind) if kind in ("Ed25519", "X25519") else ECKey.generate_key(kind)  # type: ignore[arg-type]


def published(kid: str | None, of: Key | None = None, **more: object) -> dict[str, Any]:
    """The entry of a key in a key set, its public half."""
    named = {} if kid is None else {"kid": kid}
    return {**(of or key()).as_dict(private=False), **named, **more}


def key_set(*entries: Mapping[str, Any]) -> bytes:
    return json.dumps({"keys": list(entries)}).encode()


def claims(now: datetime = NOW, **changed: object) -> dict[str, object]:
    """The claims of a good token of a member; None takes one away."""
    at = int(now.timestamp())
    given: dict[str, object] = {"iss": ISSUER, "aud": AUDIENCE, "sub": "someone", "iat": at, "exp": at + 600, "jti": "j"}
    given |= {"email": "human-2@sample.example", "email_verified": True, **changed}
    return {name: value for name, value in given.items() if value is not None}


def signed(
    said: Mapping[str, object] | None = None,
    *,
    alg: str = "ES256",
    kid: str | None = "one",
    by: Key | None = None,
    header: Mapping[str, object] | None = None,
) -> str:
    """A token, with whatever header and key a test asks for."""
    whole = {"alg": alg, **({} if kid is None else {"kid": kid}), **(header or {})}
    with warnings.catch_warnings(action="ignore"):  # the library advises against the name EdDSA
        registry = JWSRegistry(algorithms=[alg], strict_check_header=False)
        return jwt.encode(whole, dict(said if said is not None else claims()), by or key(), registry=registry)


@dataclass
class KeyServer:
    """Publishes a key set. `status`, `headers`, `content` and `pause` (seconds before the body, and between its bytes when it
    is slow) are what the next answer is made of; `asked` counts the requests of each path."""

    content: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    before: Callable[[], None] = lambda: None
    drip: float = 0.0
    url: str = ""
    asked: list[str] = field(default_factory=list)


@contextmanager
def publishing(*entries: Mapping[str, Any]) -> Iterator[KeyServer]:
    """A server of a key set until the block ends."""
    made = KeyServer(key_set(*entries))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked.append(self.path)
            made.before()
            with suppress(ConnectionError):
                self.send_response(made.status)
                for name, value in made.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(made.content)))
                self.end_headers()
                for start in range(0, len(made.content), 1 if made.drip else 65_536):
                    self.wfile.write(made.content[start : start + (1 if made.drip else 65_536)])
                    time.sleep(made.drip)

        def log_message(self, *_: object) -> None:
            """Nothing: it is a test."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        made.url = f"http://127.0.0.1:{server.server_address[1]}/keys"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()
