"""The client commands about memory, remote agents and what they are granted, as a table."""

from __future__ import annotations

from dataclasses import replace

from gateway.cli.command import Argument, Command, command

TIERS = "public, internal, confidential or pii"
AGENT = Argument("agent_id", "for people: the agent whose memory it is", flagged="--agent")
SHOWN_AGENT = replace(AGENT, place="query")
LIMIT = Argument("limit", "rows at most", kind=int)
SHOWN_LIMIT = replace(LIMIT, place="query")
CURSOR = Argument("cursor", "go on where an answer ended: its `next_cursor`")
SHOWN_CURSOR = replace(CURSOR, place="query")
PROJECT = Argument("project_id", "the project", flagged="--project")
TAG = Argument("tags", "a tag; again for another", repeated=True, flagged="--tag")
TAGS_MATCH = Argument("tags_match", "any of the tags, or all", flagged="--tags-match")
TIER = Argument("classification", f"{TIERS} (internal)")
ONLY_LAYERS = Argument("layers", "fact, timeline, session or chunk; again for another", repeated=True, flagged="--layer")
ONLY_TIERS = Argument("classifications", f"{TIERS}; again for another", repeated=True, flagged="--classification")
MODE = Argument("mode", "keyword, semantic or hybrid (keyword)")
QUERY = Argument("query", "what to look for", positional=True)
OF_CONNECTION = Argument("connection_id", "the remote connection", "path", required=True, flagged="--connection")
SHOWN = "id layer project_id classification tags text"

MEMORY: tuple[Command, ...] = (
    command(
        "remember",
        "POST /v1/memories",
        "remember something, tagged or for nobody else",
        Argument("text", "what", positional=True),
        PROJECT,
        TAG,
        TIER,
        Argument("layer", "fact, timeline, session or chunk (fact)"),
        Argument("expires_at", "ends at this RFC 3339 time"),
        Argument("supersedes", "the row that this one is written anew for"),
        Argument("derived_from", "a row that it follows from; again for another", repeated=True),
        Argument("title", "timeline: its title"),
        Argument("occurred_at", "timeline: when, as an RFC 3339 time"),
        Argument("channel", "session: its channel"),
        Argument("started_at", "session: since when"),
        Argument("ended_at", "session: until when"),
        AGENT,
    ),
    command(
        "memory list",
        "GET /v1/memories",
        "list rows, newest first",
        replace(PROJECT, place="query"),
        Argument("tag", "a tag; again for another", "query", repeated=True),
        replace(TAGS_MATCH, place="query"),
        Argument("layer", "only this layer; again for another", "query", repeated=True),
        Argument("classification", "only this tier; again for another", "query", repeated=True),
        Argument("state", "live, or all for those too that no longer count", "query"),
        SHOWN_LIMIT,
        SHOWN_CURSOR,
        SHOWN_AGENT,
        rows="items",
        columns=SHOWN,
    ),
    command(
        "memory search",
        "POST /v1/memories/search",
        "find rows, best first",
        QUERY,
        MODE,
        PROJECT,
        TAG,
        TAGS_MATCH,
        ONLY_LAYERS,
        ONLY_TIERS,
        LIMIT,
        CURSOR,
        AGENT,
        rows="items",
        columns=f"score {SHOWN}",
    ),
    command(
        "memory query",
        "POST /v1/memories/query",
        "print the texts that fit best, within a number of tokens",
        QUERY,
        replace(PROJECT, required=True),
        MODE,
        TAG,
        TAGS_MATCH,
        ONLY_LAYERS,
        ONLY_TIERS,
        Argument("max_tokens", "tokens at most, four characters each (8000)", kind=int),
        AGENT,
    ),
    command("memory show", "GET /v1/memories/{memory_id}", "show one row"),
    command(
        "memory untagged",
        "GET /v1/memories/untagged",
        "list rows without a project, which no grant can reach",
        SHOWN_LIMIT,
        SHOWN_CURSOR,
        SHOWN_AGENT,
        rows="items",
        columns=SHOWN,
    ),
    command(
        "memory visible",
        "GET /v1/connections/{connection_id}/visible",
        "what a remote connection sees; with --id whether it sees one row, by which policy or why not",
        OF_CONNECTION,
        Argument("memory_id", "one row", "path", flagged="--id"),
        Argument("action", "search, read, query or remember (search; read with --id)", "query"),
        SHOWN_LIMIT,
        SHOWN_CURSOR,
        rows="items",
        columns="id grant_id policy layer project_id classification text",
    ),
    command(
        "memory retag",
        "POST /v1/memories/{memory_id}/retag",
        "change a row's tags, and those of what was derived from it",
        PROJECT,
        Argument("project_id", "out of its project: no grant reaches it any more", "json", always="null", flagged="--no-project"),
        TAG,
        Argument("tags", "without tags", "json", always="[]", flagged="--no-tags"),
        replace(TIER, help=TIERS),
    ),
    command("memory retract", "POST /v1/memories/{memory_id}/retract", "say that a row no longer counts"),
    command("memory delete", "DELETE /v1/memories/{memory_id}", "delete a row and what was derived from it"),
    command(
        "memory index",
        "POST /v1/memories/index",
        "make rows findable by meaning that were written without the model",
        AGENT,
        until="remaining",
    ),
    command(
        "forget",
        "POST /v1/memories/forget",
        "forget everything of a connection, a remote agent or a project, or one row",
        Argument("connection_id", "what came over this remote connection, and nothing of it ever again", flagged="--connection"),
        Argument("source_did", "what this remote agent said", flagged="--did"),
        replace(PROJECT, help="what is in this project"),
        Argument("id", "one row"),
        Argument("depth", "hide, delete or erase (delete); erase takes the bytes off the disk"),
        Argument("dry_run", "count only, change nothing", "json", always="true"),
        AGENT,
    ),
)

REMOTE: tuple[Command, ...] = (
    command(
        "remote create",
        "POST /v1/connections",
        "connect a remote agent to one of yours and print its credential, once",
        replace(AGENT, help="your agent", required=True),
        Argument("peer_did", "the remote agent's DID", required=True, flagged="--did"),
        Argument("id", "the id that the network gave it (default: a new one)"),
        Argument("name", "what people call it"),
        Argument("replaces", "the older connection with the same two agents, which ends"),
    ),
    command(
        "remote list",
        "GET /v1/connections",
        "list the remote agents that are connected to one of yours",
        SHOWN_AGENT,
        rows="connections",
        columns="id name peer_did status created_at",
    ),
    command("remote show", "GET /v1/connections/{connection_id}", "show one remote connection"),
    command("remote suspend", "POST /v1/connections/{connection_id}/suspend", "let it see nothing until it is resumed"),
    command("remote resume", "POST /v1/connections/{connection_id}/resume", "let it see again what it is granted"),
    command("remote revoke", "POST /v1/connections/{connection_id}/revoke", "end it for good"),
    command("remote credential", "POST /v1/connections/{connection_id}/credential", "end its credential and print a new one"),
    command(
        "remote converse",
        "POST /v1/connections/{connection_id}/conversations",
        "print a token with which your agent sees no more than the remote agent may",
        Argument("ttl_seconds", "seconds that it is good for (3600)", kind=int),
    ),
)

GRANTS: tuple[Command, ...] = (
    command(
        "grant create",
        "POST /v1/connections/{connection_id}/grants",
        "let a remote connection see a project, or write to it",
        PROJECT,
        Argument("actions", "search, read, query or remember; again for another", repeated=True, flagged="--action"),
        Argument("scope", "instead of actions: the network's {id, params}, as JSON or @file", "json"),
        replace(TAG, help="only rows with this tag; again for another"),
        TAGS_MATCH,
        replace(ONLY_TIERS, help=f"{TIERS}; again for another (public, internal)"),
        Argument("provenance", "any, owner_only or own_connection (any)"),
        Argument("expires_at", "ends at this RFC 3339 time"),
        Argument("limits", "{max_results, max_chars, requests_per_minute, max_tokens, max_per_day}, as JSON or @file", "json"),
    ),
    command(
        "grant list",
        "GET /v1/connections/{connection_id}/grants",
        "list the grants of a remote connection, ended ones too",
        rows="grants",
        columns="id project_id actions classifications tags expires_at revoked_at",
    ),
    command("grant revoke", "DELETE /v1/connections/{connection_id}/grants/{grant_id}", "end a grant now"),
)

BRIDGE: tuple[Command, ...] = (
    command("agent bridge-token", "POST /v1/agents/{agent_id}/bridge-token", "print a new token for the bridge of a network"),
)

MEMORY_COMMANDS: tuple[Command, ...] = (*MEMORY, *REMOTE, *GRANTS, *BRIDGE)
