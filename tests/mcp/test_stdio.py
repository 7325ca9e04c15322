"""`peergate mcp`: what comes in on standard input is the gateway's to answer, in the gateway's own words."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from gateway.cli.main import main
from gateway.mcp.stdio import Bridge
from tests.builders import Client
from tests.mcp.served import Served, message
from tests.real.process import run


def passed(gateway: Served, key: str, *lines: object, url: str | None = None) -> list[Any]:
    """What a bridge answers to these messages; bytes are sent as they are."""
    out = io.BytesIO()
    sent = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    Bridge(url or gateway.url, key).run(sent, out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


@pytest.mark.parametrize(
    "sent",
    [
        message("tools/list"),
        message("tools/call", {"name": "memory_search", "arguments": {"query": "tea"}}),
        message("tools/call", {"name": "memory_search", "arguments": {"query": ""}}),
        message("tools/call", {"name": "nonsense", "arguments": {}}),
        message("tools/call", {"name": "n\N{SNOWMAN}nsense", "arguments": {}}),
        message("tools/call", {"name": 7}),
        message("nonsense"),
        message("tools/call", []),
    ],
    ids=str,
)
def test_an_answer_is_that_of_http(gateway: Served, agent: Client, sent: dict[str, object]) -> None:
    (told,) = passed(gateway, agent.key, sent)
    there = gateway.send(agent.key, json.dumps(sent).encode(), mcp_protocol_version="2025-03-26").json()
    if "error" in there:
        assert told == {"jsonrpc": "2.0", "id": 1, "error": there["error"]}
    else:
        assert told["result"].keys() == there["result"].keys()
        assert told["id"] == 1


def test_a_handshake_that_is_refused_is_told_as_the_gateway_told_it(gateway: Served, agent: Client) -> None:
    sent = message("initialize", {"protocolVersion": 7})
    there = gateway.send(agent.key, json.dumps(sent).encode()).json()
    assert passed(gateway, agent.key, sent) == [there]
    assert there["error"]["code"] == -32602


class Recorder(BaseHTTPRequestHandler):
    """Answers every message with the headers that came with it."""

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
        result = {"protocolVersion": "2025-11-25", "headers": {name.lower(): value for name, value in self.headers.items()}}
        body = json.dumps({"jsonrpc": "2.0", "id": sent.get("id"), "result": result}).encode()
        self.send_response(200 if "id" in sent else 202)
        self.send_header("content-length", str(len(body) if "id" in sent else 0))
        self.end_headers()
        if "id" in sent:
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def recorder() -> Iterator[str]:
    yield from serving(Recorder)


def test_what_http_wants_to_know_of_a_message_goes_beside_it(gateway: Served, recorder: str) -> None:
    modern = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}, "name": "t\N{SNOWMAN}", "arguments": {}}
    lines = (
        message("tools/call", {"name": "memory_search", "arguments": {}}),
        message("initialize", {}),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        b"\n",
        message("tools/list"),
        message("tools/call", modern),
    )
    first, begun, after, new = (made["result"]["headers"] for made in passed(gateway, "ocv_key", *lines, url=recorder))
    assert "mcp-protocol-version" not in first
    assert "mcp-protocol-version" not in begun
    assert (first["authorization"], first["mcp-method"], first["mcp-name"]) == ("Bearer ocv_key", "tools/call", "memory_search")
    assert (after["mcp-protocol-version"], after["mcp-method"], after.get("mcp-name")) == ("2025-11-25", "tools/list", None)
    assert (new["mcp-protocol-version"], new["mcp-name"]) == ("2026-07-28", "=?base64?dOKYgw==?=")


def test_what_cannot_be_passed_on_is_said_in_one_line(gateway: Served, agent: Client) -> None:
    nowhere = "http://127.0.0.1:1"
    assert passed(gateway, agent.key, b"{not json", b"[1]", b"\xff") == [
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "the line is not JSON"}},
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "the line must be one JSON-RPC message"}},
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "the line is not JSON"}},
    ]
    notification = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    (silent,) = passed(gateway, agent.key, message("tools/list"), notification, url=nowhere)
    assert silent["error"]["code"] == -32000
    assert silent["error"]["message"].startswith(f"the gateway at {nowhere} does not answer: ")
    (no_gateway,) = passed(gateway, agent.key, message("tools/list"), url=f"{gateway.url}/none")
    assert no_gateway["error"]["message"].endswith("is no gateway: status 404")


@pytest.mark.parametrize("version", ["\N{SNOWMAN}", "\ud800", "2025-06-18\r\nX-More: yes", 7, ""], ids=ascii)
def test_a_version_that_is_none_ends_nothing(gateway: Served, recorder: str, version: object) -> None:
    meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": version}}
    told, after = passed(gateway, "ocv_key", message("tools/list", meta), message("tools/list"), url=recorder)
    assert (told["id"], after["id"]) == (1, 1)
    assert "x-more" not in told["result"]["headers"]


class Odd(BaseHTTPRequestHandler):
    """Answers with what its path says; a message asks for it under `odd`."""

    answers: ClassVar[dict[str, tuple[int, bytes]]] = {
        "elsewhere": (307, b""),
        "nothing": (200, b""),
        "lines": (200, b'{"jsonrpc": "2.0",\r\n"id": 1,\n"result": {}}'),
        "two": (200, b'{"jsonrpc": "2.0", "id": 1, "result": {}}\n{"jsonrpc": "2.0", "id": 2, "method": "ping"}'),
        "list": (200, b"[]"),
        "another": (200, b'{"ok": true}'),
        "version": (200, b'{"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 7}}'),
    }

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
        status, body = self.answers[sent["params"]["odd"]]
        self.send_response(status)
        self.send_header("location", "/elsewhere")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def odd() -> Iterator[str]:
    yield from serving(Odd)


@pytest.mark.parametrize("case", Odd.answers)
def test_each_message_has_one_line_of_answer_whatever_answers_there(gateway: Served, odd: str, case: str) -> None:
    first, second = passed(gateway, "ocv_key", message("initialize", {"odd": case}), message("ping", {"odd": case}), url=odd)
    if case == "lines":
        assert second == {"jsonrpc": "2.0", "id": 1, "result": {}}
    else:
        assert first == second
        assert ("result" in first, "error" in first) == (case == "version", case != "version")


def test_it_wants_a_key_and_an_address(tmp_path: Any) -> None:
    for environment in (
        {},
        {"PEERGATE_URL": "http://127.0.0.1:1"},
        {"PEERGATE_URL": "http://127.0.0.1:1", "PEERGATE_KEY": "\xe9"},
    ):
        ended = run("mcp", XDG_CONFIG_HOME=str(tmp_path), **environment)
        assert (ended.returncode, ended.stdout) == (2, "")
        assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize("form", [["--json"], []])
def test_the_entries_for_clients_hold_no_key(
    form: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEERGATE_KEY", "ocv_real")
    monkeypatch.setenv("PEERGATE_URL", "https://gateway.example/")
    assert main(["mcp", "config", *form]) == 0
    printed = capsys.readouterr().out
    assert "real" not in printed
    if form:
        made = json.loads(printed)
    else:
        parts = "".join(line for line in printed.splitlines(keepends=True) if not line.startswith("#"))
        first, end = json.JSONDecoder().raw_decode(parts)
        made = {"stdio": first, "http": json.loads(parts[end:])}
    stdio, http = made["stdio"]["mcpServers"]["peergate"], made["http"]["mcpServers"]["peergate"]
    assert (stdio["command"], stdio["args"], [*stdio["env"]]) == ("peergate", ["mcp"], ["PEERGATE_URL", "PEERGATE_KEY"])
    assert (http["url"], [*http["headers"]]) == ("https://gateway.example/mcp", ["Authorization"])
