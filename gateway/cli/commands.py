"""The client commands as a table: each is one request to the API, with the arguments that fill it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Place = Literal["path", "query", "body", "json", "confirm"]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: a positional when it fills the path, else a `--flag`. `place` says which part of the request it fills.

    A `json` argument is parsed as JSON (`@file` reads a file); `confirm` is sent as `X-Auth-Confirm`.
    """

    name: str
    help: str
    place: Place = "body"
    required: bool = False
    many: bool = False
    choices: tuple[str, ...] = ()
    kind: type = str

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")


@dataclass(frozen=True, slots=True)
class Command:
    """`peergate NOUN VERB`; `rows` is the member that holds a list and `columns` what a table of it shows."""

    noun: str
    verb: str
    method: str
    path: str
    help: str
    arguments: tuple[Argument, ...] = ()
    rows: str | None = None
    columns: tuple[str, ...] = ()


def _path(name: str, help: str) -> Argument:
    return Argument(name, help, "path", required=True)


def _query(name: str, help: str, **more: object) -> Argument:
    return Argument(name, help, "query", **more)  # type: ignore[arg-type]


LIMIT = _query("limit", "rows at most", kind=int)
OFFSET = _query("offset", "rows to skip", kind=int)
CONFIRM = Argument("confirm", "your password, or a rat_ token from `peergate totp confirm`", "confirm")
PEER = _path("peer_id", "the peer")
AGENT = Argument("agent", "the agent's id")

COMMANDS: tuple[Command, ...] = (
    Command("agent", "list", "GET", "/v1/agents", "list agents", rows="agents", columns=("id", "name", "is_active", "created_at")),
    Command("agent", "show", "GET", "/v1/agents/{agent_id}", "show one agent", (_path("agent_id", "the agent"),)),
    Command(
        "agent", "create", "POST", "/v1/agents", "register an agent and print its key, once",
        (
            Argument("name", "what people call it", required=True),
            Argument("description", "what it does"),
            Argument("action_approval_policy", "its written rules, as JSON or @file", "json"),
        ),
    ),
    Command(
        "agent", "update", "PATCH", "/v1/agents/{agent_id}", "change an agent or its written rules",
        (
            _path("agent_id", "the agent"),
            Argument("name", "a new name"),
            Argument("is_active", "true or false; false ends its keys and tokens", "json"),
            Argument("action_approval_policy", "its written rules, as JSON or @file", "json"),
            Argument("approval_id", "the approved request that allows a widening"),
            CONFIRM,
        ),
    ),
    Command("agent", "rotate-key", "POST", "/v1/agents/{agent_id}/rotate-key", "end an agent's keys and print a new one", (_path("agent_id", "the agent"),)),
    Command("agent", "delete", "DELETE", "/v1/agents/{agent_id}", "delete an agent with its keys and observer entries", (_path("agent_id", "the agent"),)),
    Command(
        "peer", "list", "GET", "/v1/peers", "list peers", (_query("status", "active or archived"), LIMIT, OFFSET),
        rows="peers", columns=("id", "peer_type", "status", "observer_count", "created_at"),
    ),
    Command(
        "peer", "create", "POST", "/v1/peers", "create a peer, or add observers to it",
        (
            Argument("peer_type", "what it is about", required=True, choices=("user", "platform_connection", "external")),
            Argument("peer_ref", "who it is about: a user id, a connection id, or your own reference", required=True),
            Argument("display_name", "a name for people"),
            Argument("observer_agent_ids", "agents that may read and write it", many=True),
        ),
    ),
    Command("peer", "show", "GET", "/v1/peers/{peer_id}", "show a peer with its facts", (PEER,)),
    Command("peer", "context", "GET", "/v1/peers/{peer_id}/context", "print what an agent is told of a person", (PEER, _query("budget", "characters", kind=int))),
    Command(
        "peer", "event", "POST", "/v1/peers/{peer_id}/events", "record what happened",
        (
            PEER,
            Argument("event_type", "what kind", required=True, choices=("message", "approval", "action", "observation")),
            Argument("content", "what, as a JSON object or @file", "json", required=True),
            Argument("event_id", "your own id, so that twice counts once"),
        ),
    ),
    Command(
        "peer", "predict", "POST", "/v1/peers/{peer_id}/predict-approval", "how likely is a yes, and may it be automatic",
        (
            PEER,
            Argument("action_type", "such as refund.create", required=True),
            Argument("effective_risk_tier", "1 to 3", required=True, kind=int),
            Argument("payload", "the payload, as a JSON object or @file", "json"),
            Argument("agent_id", "for humans: the agent whose rules to ask"),
        ),
    ),
    Command("peer", "observers", "GET", "/v1/peers/{peer_id}/observers", "who observes a peer", (PEER,), rows="observers", columns=("agent_id", "agent_name", "added_by", "added_at", "observer_expires_at")),
    Command("peer", "set-observers", "PUT", "/v1/peers/{peer_id}/observers", "replace the observer list whole; [] is nobody", (PEER, Argument("observers", "a JSON list of {agent_id, observer_expires_at?}", "json", required=True))),
    Command("peer", "why", "GET", "/v1/peers/{peer_id}/facts/{key}", "why a fact is believed, and what would change it", (PEER, _path("key", "the fact key"))),
    Command(
        "peer", "correct", "PATCH", "/v1/peers/{peer_id}/facts", "correct a fact; derivation never overwrites it",
        (PEER, Argument("fact_key", "the fact key", required=True), Argument("fact_value", "what is true, as a JSON object", "json", required=True)),
    ),
    Command("peer", "forget", "DELETE", "/v1/peers/{peer_id}/facts/{key}", "delete a fact", (PEER, _path("key", "the fact key"), _query("suppress", "true: do not learn this again"))),
    Command("peer", "pause", "PUT", "/v1/peers/{peer_id}/pause", "pause reading and learning", (PEER, Argument("reading", "true or false", "json", required=True), Argument("learning", "true or false", "json", required=True), Argument("until", "an RFC 3339 time"))),
    Command("peer", "preview", "GET", "/v1/peers/{peer_id}/preview", "exactly what an agent would be told now", (PEER, _query("agent_id", "the agent", required=True), _query("budget", "characters", kind=int))),
    Command("peer", "export", "GET", "/v1/peers/{peer_id}/export", "everything that is held about a person", (PEER, CONFIRM)),
    Command("peer", "erase", "DELETE", "/v1/peers/{peer_id}/data", "delete everything that is held about a person", (PEER, CONFIRM)),
    Command("peer", "readers", "GET", "/v1/me/readers", "who observes me", rows="readers", columns=("peer_id", "agent_id", "agent_name", "reads", "denials", "last_read_at")),
    Command("peer", "reads", "GET", "/v1/me/reads", "each read of me", (_query("agent_id", "only this agent"), LIMIT, OFFSET), rows="reads", columns=("at", "agent_name", "kind", "decision", "deny_kind", "facts_served")),
    Command(
        "approval", "list", "GET", "/v1/approvals", "list approvals",
        (_query("status", "pending, approved, rejected, expired or cancelled"), _query("scope", "own or org"), LIMIT, OFFSET),
        rows="approvals", columns=("id", "status", "risk_tier", "action", "agent_id", "human_summary", "created_at"),
    ),
    Command("approval", "show", "GET", "/v1/approvals/{approval_id}", "show one approval", (_path("approval_id", "the approval"),)),
    Command(
        "approval", "decide", "POST", "/v1/approvals/{approval_id}/decide", "approve or reject",
        (
            _path("approval_id", "the approval"),
            Argument("decision", "your answer", required=True, choices=("approve", "reject")),
            Argument("reason", "why"),
            CONFIRM,
        ),
    ),
    Command("approval", "cancel", "POST", "/v1/approvals/{approval_id}/cancel", "withdraw a pending approval", (_path("approval_id", "the approval"), Argument("reason", "why"))),
    Command(
        "decisions", "list", "GET", "/v1/decisions", "list decisions, newest first",
        (
            _query("principal", "who asked, by id"),
            _query("action", "such as peer.read_context"),
            _query("resource", "on what, by id"),
            _query("decision", "allow or deny"),
            _query("deny_kind", "such as forbidden"),
            _query("policy", "a determining policy's id"),
            _query("from", "from this time"),
            _query("to", "before this time"),
            LIMIT,
            OFFSET,
        ),
        rows="decisions", columns=("at", "id", "principal.type", "action", "decision", "deny_kind", "policies"),
    ),
    Command("decisions", "show", "GET", "/v1/decisions/{decision_id}", "show one decision with its explanation", (_path("decision_id", "the decision"),)),
    Command("audit", "list", "GET", "/v1/audit/events", "list audit events", (_query("action", "such as peer.created"), LIMIT, OFFSET), rows="events", columns=("created_at", "action", "actor_type", "actor_id", "resource_type", "resource_id")),
    Command("member", "list", "GET", "/v1/org/members", "list members", rows="members", columns=("id", "email", "role", "created_at")),
    Command("member", "add", "POST", "/v1/org/members", "add a member and print their first password, once", (Argument("email", "their address", required=True), Argument("role", "their role", required=True, choices=("owner", "admin", "security", "auditor", "member")), Argument("display_name", "a name for people"))),
    Command("member", "role", "PATCH", "/v1/org/members/{member_id}", "change a role; ends their keys and tokens", (_path("member_id", "the member"), Argument("role", "their role", required=True, choices=("owner", "admin", "security", "auditor", "member")))),
    Command("member", "remove", "DELETE", "/v1/org/members/{member_id}", "remove a member", (_path("member_id", "the member"),)),
    Command("setting", "list", "GET", "/v1/org/settings", "show the organisation's settings"),
    Command("setting", "set", "PATCH", "/v1/org/settings", "change a setting", (Argument("key", "which", required=True), Argument("value", "to what", required=True), CONFIRM)),
    Command("key", "list", "GET", "/v1/auth/api-keys", "list your own keys", rows="keys", columns=("id", "name", "created_at", "expires_at")),
    Command("key", "create", "POST", "/v1/auth/api-keys", "make a key of your own and print it, once", (Argument("name", "what it is for", required=True), Argument("expires_at", "an RFC 3339 time"))),
    Command("key", "revoke", "DELETE", "/v1/auth/api-keys/{key_id}", "end one of your keys", (_path("key_id", "the key"),)),
    Command("totp", "enrol", "POST", "/v1/auth/totp", "start to enrol a second factor", (CONFIRM,)),
    Command("totp", "confirm", "POST", "/v1/auth/totp", "confirm it with a code", (Argument("code", "six digits", required=True),)),
    Command("totp", "remove", "DELETE", "/v1/auth/totp", "remove the second factor", (CONFIRM,)),
    Command("connection", "list", "GET", "/v1/platform/connected-apps", "list platforms connected to you", rows="connected_apps", columns=("connection_id", "app_name", "status")),
    Command("connection", "end", "DELETE", "/v1/platform/connected-apps/{connection_id}", "disconnect a platform; archives its peer", (_path("connection_id", "the connection"),)),
)  # fmt: skip
