"""AuthZEN over the wire: a process that serves the sample store, and one that is pointed at a store that does not load."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from tests.authzen.asking import BATCH, DOCUMENTS, RESOURCES, SINGLE, asked
from tests.real.process import Server, init, run

PUBLIC_URL = "https://pdp.sample.example/tenant1"


def test_a_process_beside_another_store_answers_its_clients(tmp_path: Path) -> None:
    owner = init(tmp_path / "data")
    arguments = ("serve", "--data", tmp_path / "data", "--port", "0", "--json", "--store", DOCUMENTS)
    with Server(*arguments, environment={"PEERGATE_PUBLIC_URL": PUBLIC_URL}) as server:
        connection = HTTPConnection(urlsplit(server.url).netloc)

        def call(method: str, path: str, body: object = None) -> tuple[int, str | None, dict[str, object]]:
            headers = {"X-Request-ID": 'any "id" {at all}', "Content-Type": "application/json"}
            headers |= {"Authorization": f"Bearer {owner['api_key']}"}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, answer.getheader("x-request-id"), json.loads(answer.read())

        assert call("POST", SINGLE, asked()) == (200, 'any "id" {at all}', {"decision": True})
        assert call("POST", SINGLE, asked("nobody"))[2] == {"decision": False}
        assert call("POST", SINGLE, {})[:2] == (400, 'any "id" {at all}')
        batch = {**asked(), "evaluations": [{}, {"subject": {"type": "user", "id": "nobody"}}]}
        assert call("POST", BATCH, batch)[2] == {"evaluations": [{"decision": True}, {"decision": False}]}
        found = call("POST", RESOURCES, {**asked("dan"), "page": {"limit": 2}})[2]
        assert [each["id"] for each in found["results"]] == ["archive", "price-list"]  # type: ignore[index, attr-defined]
        status, _, metadata = call("GET", "/.well-known/authzen-configuration/tenant1")
        assert (status, metadata["policy_decision_point"]) == (200, PUBLIC_URL)
        connection.close()
        assert server.stop() == 0


def test_a_store_that_does_not_load_is_not_served(tmp_path: Path) -> None:
    init(tmp_path / "data")
    (tmp_path / "store").mkdir()
    refused = run("serve", "--data", tmp_path / "data", "--port", "0", "--store", tmp_path / "store")
    assert refused.returncode == 4
    assert refused.stderr.startswith(f"peergate: the store {tmp_path / 'store'} does not load:\n")
    assert "schema.cedarschema" in refused.stderr
