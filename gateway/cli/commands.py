"""The client commands as a table."""

from __future__ import annotations

from dataclasses import replace

from gateway.cli.administration_commands import ADMINISTRATION
from gateway.cli.agent_answers import DELETED_AGENT, show_agent, show_deleted_agent
from gateway.cli.command import Argument, Command, command
from gateway.cli.explanation import show_decision
from gateway.cli.memory_commands import MEMORY_COMMANDS
from gateway.cli.own_policy_commands import OWN_POLICIES
from gateway.cli.policy_replay import SIMULATE

LIMIT = Argument("limit", "rows at most", "query", kind=int)
OFFSET = Argument("offset", "rows to skip", "query", kind=int)
SINCE = Argument("from", "from this RFC 3339 time", "query")
UNTIL = Argument("to", "before this RFC 3339 time", "query")
BUDGET = Argument("budget", "characters at most (2000)", "query", kind=int)
CONFIRM = Argument("confirm", "a rat_ token; a password is asked for, or taken from PEERGATE_CONFIRM", "confirm")
PASSWORD = replace(CONFIRM, help="a rat_ token for totp.enrol; the account password is asked for, or taken from PEERGATE_CONFIRM")
RULES = Argument("action_approval_policy", "its written rules, as JSON or @file", "json", flagged="--rules")
PAYLOAD = Argument("payload", "the payload, as a JSON object or @file", "json")
REASON = Argument("reason", "why")
NAME = Argument("name", "what people call it", required=True)
DISPLAY_NAME = Argument("display_name", "a name for people")
EXPIRES_AT = Argument("expires_at", "ends at this RFC 3339 time")
ROLE = Argument("role", "their role", required=True, choices=("owner", "admin", "security", "auditor", "member"))
PEER_TYPE = Argument("peer_type", "what it is about", required=True, choices=("user", "platform_connection", "external"))
PEER_REF = Argument("peer_ref", "who it is about: a user id, a connection id, or your own reference", required=True)
OBSERVERS = Argument("observers", "a JSON list of {agent_id, observer_expires_at?}, or @file", "json", required=True)
OBSERVER_IDS = Argument("observer_agent_ids", "agents that may read and write it", many=True, flagged="--observers")
EVENT_TYPE = Argument("event_type", "what kind", required=True, choices=("message", "approval", "action", "observation"))
CONTENT = Argument("content", "what, as a JSON object or @file", "json", required=True)
EVENT_ID = Argument("event_id", "your own id, so that twice counts once")
ACTION_TYPE = Argument("action_type", "such as refund.create", required=True)
TIER = Argument("effective_risk_tier", "1, 2 or 3 (1)", kind=int, default=1, flagged="--risk-tier")
ASKED_AGENT = Argument("agent_id", "for people: the agent whose rules are asked", flagged="--agent")
SHOWN_AGENT = Argument("agent_id", "the agent", "query", required=True, flagged="--agent")
ONLY_AGENT = Argument("agent_id", "only this agent", "query", flagged="--agent")
NAMED_AGENT = Argument("agent_id", "the agent that is to ask", required=True, flagged="--agent")
FACT_VALUE = Argument("fact_value", "what is true, as a JSON object or @file", "json", required=True)
SUPPRESS = Argument("suppress", "true: do not learn this again", "query", choices=("true", "false"))
DECISION = Argument("decision", "your answer", required=True, choices=("approve", "reject"))
CODE = Argument("code", "six digits of the authenticator app")
PURPOSES = ("peer.export", "peer.erase", "approval.decide", "policy.update")

AGENTS: tuple[Command, ...] = (
    command("agent list", "GET /v1/agents", "list agents", rows="agents", columns="id name is_active created_at"),
    command("agent show", "GET /v1/agents/{agent_id}", "show one agent"),
    command("agent me", "GET /v1/agents/me", "show the agent whose key this is"),
    command(
        "agent create",
        "POST /v1/agents",
        "register an agent and print its key, once",
        NAME,
        Argument("description", "what it does"),
        RULES,
        shows=show_agent,
    ),
    command(
        "agent update",
        "PATCH /v1/agents/{agent_id}",
        "change an agent or its written rules",
        Argument("name", "a new name"),
        Argument("is_active", "true or false; false ends its keys and tokens", "json"),
        RULES,
        Argument("approval_id", "the approved request that allows a widening"),
        CONFIRM,
    ),
    command("agent rotate-key", "POST /v1/agents/{agent_id}/rotate-key", "end an agent's keys and print a new one"),
    command("agent delete", "DELETE /v1/agents/{agent_id}", DELETED_AGENT, shows=show_deleted_agent),
    command(
        "agent children",
        "GET /v1/agents/{agent_id}/children",
        "list the children of an agent",
        rows="agents",
        columns="id name is_active created_at",
    ),
    command("agent add-child", "POST /v1/agents/{agent_id}/children", "register a child of an agent", NAME, RULES, EXPIRES_AT),
    command("agent context", "GET /v1/agents/{agent_id}/peer-context", "print what this agent is told of its person", BUDGET),
)

PEERS: tuple[Command, ...] = (
    command(
        "peer list",
        "GET /v1/peers",
        "list peers",
        Argument("status", "active or archived", "query"),
        LIMIT,
        OFFSET,
        rows="peers",
        columns="id peer_type status observer_count created_at",
    ),
    command(
        "peer create",
        "POST /v1/peers",
        "create a peer, or add observers to it",
        PEER_TYPE,
        PEER_REF,
        DISPLAY_NAME,
        OBSERVER_IDS,
    ),
    command("peer show", "GET /v1/peers/{peer_id}", "show a peer with its facts"),
    command("peer of-connection", "GET /v1/peers/by-connection/{connection_id}", "show the peer of a connection"),
    command("peer context", "GET /v1/peers/{peer_id}/context", "print what an agent is told of a person", BUDGET),
    command("peer event", "POST /v1/peers/{peer_id}/events", "record what happened", EVENT_TYPE, CONTENT, EVENT_ID),
    command("peer forget-event", "DELETE /v1/peers/{peer_id}/events/{event_id}", "delete what was recorded"),
    command(
        "peer predict",
        "POST /v1/peers/{peer_id}/predict-approval",
        "how likely is a yes, and may it be automatic",
        ACTION_TYPE,
        TIER,
        PAYLOAD,
        ASKED_AGENT,
    ),
    command(
        "peer observers",
        "GET /v1/peers/{peer_id}/observers",
        "who observes a peer",
        rows="observers",
        columns="agent_id agent_name added_by added_at observer_expires_at",
    ),
    command(
        "peer set-observers", "PUT /v1/peers/{peer_id}/observers", "replace the observer list whole; [] is nobody", OBSERVERS
    ),
    command("peer why", "GET /v1/peers/{peer_id}/facts/{fact_key}", "why a fact is believed, and what would change it"),
    command(
        "peer correct",
        "PATCH /v1/peers/{peer_id}/facts",
        "correct a fact; derivation never overwrites it",
        Argument("fact_key", "the fact's key", positional=True),
        FACT_VALUE,
    ),
    command(
        "peer dispute", "POST /v1/peers/{peer_id}/facts/{fact_key}/dispute", "leave a fact out until that is withdrawn", REASON
    ),
    command("peer undispute", "DELETE /v1/peers/{peer_id}/facts/{fact_key}/dispute", "withdraw a dispute"),
    command("peer ask-me", "POST /v1/peers/{peer_id}/facts/{fact_key}/ask-me", "have an agent ask every time", NAMED_AGENT),
    command("peer forget", "DELETE /v1/peers/{peer_id}/facts/{fact_key}", "delete a fact", SUPPRESS),
    command(
        "peer suppressions",
        "GET /v1/peers/{peer_id}/suppressions",
        "what is not to be learned again",
        rows="suppressions",
        columns="fact_key at by",
    ),
    command("peer allow-learning", "DELETE /v1/peers/{peer_id}/suppressions/{fact_key}", "lift one of them"),
    command(
        "peer pause",
        "PUT /v1/peers/{peer_id}/pause",
        "pause reading and learning",
        Argument("reading", "true or false", "json", required=True),
        Argument("learning", "true or false", "json", required=True),
        Argument("until", "an RFC 3339 time (default: until it is lifted)"),
    ),
    command("peer show-pause", "GET /v1/peers/{peer_id}/pause", "whether reading and learning are paused"),
    command("peer preview", "GET /v1/peers/{peer_id}/preview", "exactly what an agent would be told now", SHOWN_AGENT, BUDGET),
    command("peer export", "GET /v1/peers/{peer_id}/export", "everything that is held about a person", CONFIRM),
    command("peer erase", "DELETE /v1/peers/{peer_id}/data", "delete everything that is held about a person", CONFIRM),
    command(
        "peer readers",
        "GET /v1/me/readers",
        "who observes me",
        rows="readers",
        columns="peer_id agent_id agent_name reads denials last_read_at",
    ),
    command(
        "peer reads",
        "GET /v1/me/reads",
        "each read of me",
        SINCE,
        UNTIL,
        ONLY_AGENT,
        LIMIT,
        OFFSET,
        rows="reads",
        columns="at agent_name kind decision deny_kind facts_served",
    ),
)

APPROVALS: tuple[Command, ...] = (
    command(
        "approval list",
        "GET /v1/approvals",
        "list approvals",
        Argument("status", "pending, approved, rejected, expired or cancelled", "query"),
        Argument("scope", "own or org", "query"),
        LIMIT,
        OFFSET,
        rows="approvals",
        columns="id status risk_tier action agent_id human_summary created_at",
    ),
    command("approval show", "GET /v1/approvals/{approval_id}", "show one approval"),
    command(
        "approval request",
        "POST /v1/approvals/request",
        "ask the agent's human, with the agent's key",
        Argument("action", "such as refund.create", required=True),
        Argument("target_type", "what it is about, such as order", required=True),
        Argument("target_id", "which one", required=True),
        Argument("summary", "one sentence for the human", required=True),
        PAYLOAD,
        REASON,
        Argument("declared_risk_tier", "1, 2 or 3; raises only", kind=int, flagged="--risk-tier"),
    ),
    command("approval decide", "POST /v1/approvals/{approval_id}/decide", "approve or reject", DECISION, REASON, CONFIRM),
    command("approval cancel", "POST /v1/approvals/{approval_id}/cancel", "withdraw a pending approval", REASON),
    *SIMULATE,
)

RECORDS: tuple[Command, ...] = (
    command(
        "decisions list",
        "GET /v1/decisions",
        "list decisions, newest first",
        Argument("principal", "who asked, by id", "query"),
        Argument("action", "such as peer.read_context", "query"),
        Argument("resource", "on what, by id", "query"),
        Argument("decision", "allow or deny", "query"),
        Argument("deny_kind", "such as forbidden", "query"),
        Argument("policy", "a determining policy's id", "query"),
        SINCE,
        UNTIL,
        LIMIT,
        OFFSET,
        rows="decisions",
        columns="at id principal.type action decision deny_kind policies",
    ),
    command(
        "decisions show",
        "GET /v1/decisions/{decision_id}",
        "show one decision: what decided it, where that stands, what was nearly met",
        shows=show_decision,
    ),
    command(
        "audit list",
        "GET /v1/audit/events",
        "list audit events, newest first",
        Argument("action", "such as peer.created", "query"),
        Argument("actor_id", "who did it", "query"),
        Argument("resource_id", "to what", "query"),
        SINCE,
        UNTIL,
        LIMIT,
        OFFSET,
        rows="events",
        columns="created_at action actor_type actor_id resource_type resource_id",
    ),
)

ORGANISATION: tuple[Command, ...] = (
    command("member list", "GET /v1/org/members", "list members", rows="members", columns="id email role created_at"),
    command(
        "member add",
        "POST /v1/org/members",
        "add a member and print their first password, once",
        Argument("email", "their address", required=True),
        ROLE,
        DISPLAY_NAME,
    ),
    command("member role", "PATCH /v1/org/members/{member_id}", "change a role; ends their keys and tokens", ROLE),
    command("member remove", "DELETE /v1/org/members/{member_id}", "remove a member"),
    command("setting list", "GET /v1/org/settings", "show the organisation's settings"),
    command(
        "setting set",
        "PATCH /v1/org/settings",
        "change a setting",
        Argument("key", "which", positional=True),
        Argument("value", "to what", positional=True),
    ),
    command("key list", "GET /v1/auth/api-keys", "list your own keys", rows="keys", columns="id name created_at expires_at"),
    command("key create", "POST /v1/auth/api-keys", "make a key of your own and print it, once", NAME, EXPIRES_AT),
    command("key revoke", "DELETE /v1/auth/api-keys/{key_id}", "end one of your keys"),
    command("totp enrol", "POST /v1/auth/totp", "begin a second factor; it counts once it is confirmed", PASSWORD),
    command("totp confirm", "POST /v1/auth/totp", "confirm it with a code", replace(CODE, required=True), PASSWORD),
    command(
        "totp prove",
        "POST /v1/auth/reauth/complete",
        "print a rat_ token that confirms one act",
        Argument("purpose", "the act", required=True, choices=PURPOSES),
        replace(CODE, required=True),
        method="totp",
    ),
    command("totp remove", "DELETE /v1/auth/totp", "remove the second factor, with a code of its own", CODE),
    command(
        "connection list",
        "GET /v1/platform/connected-apps",
        "list platforms connected to you",
        rows="connected_apps",
        columns="connection_id app_name status",
    ),
    command("connection end", "DELETE /v1/platform/connected-apps/{connection_id}", "disconnect a platform; archives its peer"),
)

COMMANDS: tuple[Command, ...] = (
    *AGENTS, *PEERS, *MEMORY_COMMANDS, *APPROVALS, *RECORDS, *ORGANISATION, *OWN_POLICIES, *ADMINISTRATION
)  # fmt: skip
