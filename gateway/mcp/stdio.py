"""MCP on standard input and output: each line is passed on to a running gateway, and its answer back."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any, BinaryIO

import httpx

TIMEOUT_SECONDS = 60.0
ACCEPT = "application/json, text/event-stream"
#: Where a message of the newer protocol names its version; the older one says it once, in the answer to `initialize`.
VERSION_MEMBER = "io.modelcontextprotocol/protocolVersion"
PARSE_ERROR, INVALID_REQUEST, NOT_ANSWERED = -32700, -32600, -32000


class Bridge:
    """A client of the gateway's `/mcp` with one key, which answers what it is given in the words of the gateway."""

    def __init__(self, url: str, key: str) -> None:
        self._url = url
        self._http = httpx.Client(
            headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json", "Accept": ACCEPT},
            timeout=TIMEOUT_SECONDS,
        )
        self._version: str | None = None

    def run(self, lines: Iterable[bytes], out: BinaryIO) -> None:
        """Answer every line, one after the other, until there are no more."""
        with self._http:
            for line in lines:
                if line.strip():
                    answer = self.answer(line)
                    if answer is not None:
                        out.write(answer + b"\n")
                        out.flush()

    def answer(self, line: bytes) -> bytes | None:
        """What the gateway answers to one message; None for a notification."""
        try:
            sent = json.loads(line)
        except (ValueError, RecursionError):
            return _error(None, PARSE_ERROR, "the line is not JSON")
        if not isinstance(sent, dict):
            return _error(None, INVALID_REQUEST, "the line must be one JSON-RPC message")
        named = sent.get("id")
        try:
            got = self._http.post(f"{self._url}/mcp", content=line, headers=self._headers(sent))
        except (httpx.HTTPError, httpx.InvalidURL) as wrong:
            return _error(named, NOT_ANSWERED, f"the gateway at {self._url} does not answer: {wrong}") if "id" in sent else None
        return self._passed(sent, got) if "id" in sent else None

    def _passed(self, sent: dict[str, Any], got: httpx.Response) -> bytes:
        try:
            answer = got.json()
            if "error" not in answer:
                result = answer["result"]
                if sent.get("method") == "initialize":
                    self._version = str(result["protocolVersion"])
            elif answer["id"] is None:
                return _error(sent["id"], answer["error"]["code"], answer["error"]["message"])
            return b"".join(got.content.splitlines())  # a line to a message; no text in JSON holds the end of one
        except (ValueError, KeyError, TypeError):
            return _error(sent["id"], NOT_ANSWERED, f"what answers at {self._url} is no gateway: status {got.status_code}")

    def _headers(self, sent: dict[str, Any]) -> dict[str, str]:
        """What HTTP wants to know of a message without reading it."""
        match sent.get("params"):
            case {"_meta": {**meta}} if isinstance(meta.get(VERSION_MEMBER), str):
                version = str(meta[VERSION_MEMBER])
            case _:
                version = self._version or ""
        made = {"MCP-Protocol-Version": _header(version)} if version else {}
        method, params = sent.get("method"), sent.get("params")
        if isinstance(method, str):
            made["Mcp-Method"] = _header(method)
        if method == "tools/call" and isinstance(params, dict) and isinstance(params.get("name"), str):
            made["Mcp-Name"] = _header(params["name"])
        return made


def _header(value: str) -> str:
    """A value as the protocol writes it into a header: as it is where that can be, else in base64."""
    if value.isascii() and value.isprintable() and value == value.strip() and not value.startswith("=?"):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'replace')).decode('ascii')}?="


def _error(named: object, code: int, sentence: str) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": named, "error": {"code": code, "message": sentence}}).encode("utf-8")
