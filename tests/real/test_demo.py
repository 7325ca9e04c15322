"""The demo: its first line is what scripts read, and its three requests show what they say."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import httpx

from gateway.web.server import listen
from tests.real.process import Server, run
from tests.real.world import done

PERSON = {"email", "password", "api_key"}


def test_the_first_line_holds_a_credential_for_everybody_and_each_of_them_works() -> None:
    with Server("demo", "--port", "0", "--json") as demo:
        said = demo.said
        credentials = said["credentials"]
        assert said.keys() == {"url", "credentials"}
        roles = ("owner", "admin", "security", "auditor", "member")
        assert credentials.keys() == {*roles, "platform", "agents", "other_org"}
        assert all(credentials[role].keys() == PERSON for role in roles)
        assert credentials["platform"].keys() == {"api_key", "template_id"}
        assert credentials["other_org"].keys() == {"owner", "agents"}
        agents = [*credentials["agents"], *credentials["other_org"]["agents"]]
        assert all(agent.keys() == {"id", "name", "api_key"} for agent in agents)
        people = {role: credentials[role] for role in roles} | {"other owner": credentials["other_org"]["owner"]}
        with httpx.Client(base_url=said["url"]) as http:
            for role, person in people.items():
                me = done(http.get("/v1/auth/me", headers=bearer(person["api_key"])), 200)
                assert (me["email"], me["role"]) == (person["email"], role.removeprefix("other "))
                signed_in = {"email": person["email"], "password": person["password"]}
                done(http.post("/v1/auth/token", json=signed_in), 200)
            for agent in agents:
                me = done(http.get("/v1/agents/me", headers=bearer(agent["api_key"])), 200)
                assert (me["id"], me["name"]) == (agent["id"], agent["name"])
            platform = bearer(credentials["platform"]["api_key"])
            user = {"email": "somebody@people.example"}
            connection = done(http.post("/v1/platform/users/upsert", json=user, headers=platform), 201)["connection_id"]
            template = {"template_id": credentials["platform"]["template_id"]}
            done(http.post(f"/v1/platform/connections/{connection}/bootstrap", json=template, headers=platform), 201)
        assert (demo.stop(), demo.errors()) == (0, "")


def test_its_three_requests_show_an_allowed_read_a_denied_one_and_a_prediction_that_permits_nothing() -> None:
    with Server("demo", "--port", "0") as demo:
        assert demo.process.stdout is not None
        assert "temporary: gone when this ends" in demo.first
        where = Path(demo.first.partition("sample data in ")[2].partition(" (")[0])
        assert where.is_dir()
        requests, password = [], None
        for line in demo.process.stdout:
            if line.startswith("security@sample.example "):
                password = line.split()[1]
            if line.startswith("  curl "):
                requests.append(shlex.split(line))
            if line.startswith("Ctrl-C"):
                break
        answers = [json.loads(subprocess.run(request, capture_output=True, text=True, check=True).stdout) for request in requests]
        signed_in = {"email": "security@sample.example", "password": password}
        done(httpx.post(f"{demo.first.split()[3].rstrip(',')}/v1/auth/token", json=signed_in), 200)
        allowed, denied, predicted = answers
        assert "customer-17@example.com" in allowed["context"]
        assert (denied["status"], denied["title"]) == (403, "forbidden")
        assert denied["detail"]
        assert denied["decision_id"]
        assert (predicted["likelihood"], predicted["suggest_auto"]) == (0.83, False)
        assert predicted["blocked_reason"] == "rule_requires_approval"
        assert demo.stop() == 0
        assert not where.exists()


def test_a_demo_that_is_kept_is_served_again(tmp_path: Path) -> None:
    data = tmp_path / "kept"
    with Server("demo", "--data", data, "--port", "0", "--json") as demo:
        owner = demo.said["credentials"]["owner"]
        assert demo.stop() == 0
    again = run("demo", "--data", data, "--port", "0")
    served = f"peergate: {data} is there already: serve it with peergate serve --data {data}\n"
    assert (again.returncode, again.stderr) == (4, served)
    with Server.serve(data) as server:
        assert done(httpx.get(f"{server.url}/v1/auth/me", headers=bearer(owner["api_key"])), 200)["email"] == owner["email"]
        assert server.stop() == 0


def test_a_port_that_is_taken_leaves_no_data_whose_credentials_nobody_was_told(tmp_path: Path) -> None:
    with listen("127.0.0.1", 0) as taken:
        refused = run("demo", "--data", tmp_path / "demo", "--port", str(taken.getsockname()[1]))
    assert (refused.returncode, "cannot listen on" in refused.stderr) == (1, True)
    assert not (tmp_path / "demo").exists()


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}
