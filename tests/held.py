"""A gateway that holds one of everything, and who may come to it with which credential."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.builders import Client, Gateway, done
from tests.web.samples import BODIES, CEDAR, FACT_KEY, OTHERWISE, RULES

DID = "did:web:peer.example"
#: Members of the samples that name what is not held.
NOT_HELD = {
    "memory.remember": {"supersedes", "derived_from"},
    "remote_connection.create": {"id", "replaces"},
    "arp.read_note": {"source_path"},
}


class Held:
    """One of everything in one organisation. `callers` are keys by who shows them, None is no key."""

    def __init__(self, data: Path) -> None:
        self.gateway = gateway = Gateway(data, public_url="https://gateway.example")
        owner = gateway.owner
        agent = self.agent = gateway.agent("asking", policy=RULES)
        other = gateway.agent("other", policy=RULES)
        peer = gateway.peer(observers=[agent, other])
        for event_id in ("one", "two", "three"):
            event = done(agent.post(f"/v1/peers/{peer['id']}/events", {**BODIES["peer.record_event"], "event_id": event_id}), 201)
        platforms = [self._made("/v1/org/platform-apps", {"name": slug, "slug": slug}) for slug in ("app", "second")]
        platform = Client(gateway.http, "platform", platforms[0]["api_key"])
        user = done(platform.post("/v1/platform/users/upsert", {"email": "user@sample.example"}), 201)
        self.template = self._made("/v1/org/platform-templates", BODIES["platform_template.create"])["template"]["id"]
        links = [
            self._made("/v1/connections", {"agent_id": agent.id, "peer_did": DID, "id": f"conn-{name}"}) for name in ("a", "b")
        ]
        remote = links[1]["connection"]["id"]
        grant = self._made(f"/v1/connections/{remote}/grants", {"actions": ["search", "read"], "project_id": "alpha"})["grant"]
        memory = self._made("/v1/memories", {"text": "t", "project_id": "alpha", "agent_id": agent.id})["memory"]
        approval = done(agent.post("/v1/approvals/request", BODIES["approval.request"]), 202)
        policy = self._made("/v1/org/cedar-policies", {"name": "n", "cedar_text": CEDAR})
        key = self._made("/v1/auth/api-keys", {"name": "second"})["key"]
        decision = done(owner.get("/v1/decisions"), 200)["decisions"][0]
        bridge = self._made(f"/v1/agents/{agent.id}/bridge-token", {})
        self.callers: dict[str, str | None] = {
            "owner": owner.key,
            "agent": agent.key,
            "auditor": gateway.auditor.key,
            "platform": platform.key,
            "connection": links[0]["credential"],
            "bridge": bridge["token"],
            "nobody": None,
        }
        self.ids = {
            "agent_id": other.id,
            "approval_id": approval["id"],
            "connection_id": user["connection_id"],
            "decision_id": decision["id"],
            "event_id": event["event_id"],
            "grant_id": grant["id"],
            "memory_id": memory["id"],
            "key": FACT_KEY,
        }
        self.of_noun = {
            "agent": other.id,
            "bridge": other.id,
            "grant": remote,
            "key": key["id"],
            "member": gateway.security.id,
            "memory": memory["id"],
            "peer": peer["id"],
            "platform_app": platforms[1]["app"]["id"],
            "policy": policy["id"],
            "remote_connection": remote,
        }

    def _made(self, path: str, body: object) -> dict[str, Any]:
        made: dict[str, Any] = done(self.gateway.owner.post(path, body), 201)
        return made

    def example(self, name: str, parameter: str) -> object:
        """What leads an operation to what is held, for a parameter of its path."""
        noun = "remote_connection" if name == "memory.forget_connection" else name.split(".")[0]
        return self.of_noun[noun] if parameter == "id" else self.ids[parameter]

    def body(self, name: str) -> dict[str, object]:
        """A body of an operation, about what is held."""
        left_out = left_out_of(name)
        body = {member: value for member, value in BODIES.get(name, {}).items() if member not in left_out}
        agent = self.agent.id if name.split(".")[0] in ("memory", "remote_connection") else self.ids["agent_id"]
        about = {
            "id": self.of_noun["memory"],
            "agent_id": agent,
            "connection_id": "conn-a",
            "source_did": DID,
            "template_id": self.template,
        }
        return body | {member: value for member, value in about.items() if member in body}


def left_out_of(name: str) -> set[str]:
    """Members of an operation's body that no one body has beside all the others, or that name what is not held."""
    return OTHERWISE.get(name, set()) | NOT_HELD.get(name, set())
