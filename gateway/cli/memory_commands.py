"""The client commands about memory, remote agents and what they are granted, as a table."""

from __future__ import annotations

from dataclasses import replace

from gateway.cli import memory_answers as answers
from gateway.cli.command import Argument, Command, command
from gateway.model.memory import DEPTHS, LAYERS, MEMORY_ACTIONS, PROVENANCES, TIERS
from gateway.operations.wire.memory import MATCHES, MODES

AGENT = Argument("agent_id", "for people: the agent whose memory it is", flagged="--agent")
SHOWN_AGENT = replace(AGENT, place="query")
LIMIT = Argument("limit", "rows at most", kind=int)
SHOWN_LIMIT = replace(LIMIT, place="query")
CURSOR = Argument("cursor", "go on where an answer ended: its `next_cursor`")
SHOWN_CURSOR = replace(CURSOR, place="query")
PROJECT = Argument("project_id", "the project, in lower case; capitals are folded", flagged="--project")
TAG = Argument("tags", "a tag, its case counts; again for another", repeated=True, flagged="--tag")
TAGS_MATCH = Argument("tags_match", "any of the tags, or all (any)", words=MATCHES, flagged="--tags-match")
TIER = Argument("classification", "what it would mean if a stranger read it (internal)", words=TIERS)
ONLY_LAYERS = Argument("layers", "only this layer; again for another", repeated=True, words=LAYERS, flagged="--layer")
ONLY_TIERS = Argument(
    "classifications", "only this tier; again for another", repeated=True, words=TIERS, flagged="--classification"
)
MODE = Argument("mode", "by words, by meaning or by both (keyword)", words=MODES)
QUERY = Argument("query", "what to look for", positional=True)
OF_CONNECTION = Argument("connection_id", "the remote connection", "path", required=True, flagged="--connection")
LIMITS = (
    """limits of answers, as JSON or @file, such as '{"max_results": 20, "requests_per_minute": 60}'; """
    "max_chars, max_tokens and max_per_day are the others"
)

MEMORY: tuple[Command, ...] = (
    command(
        "remember",
        "POST /v1/memories",
        "remember something, tagged or for nobody else",
        Argument("text", "what", positional=True),
        PROJECT,
        TAG,
        TIER,
        Argument("layer", "what kind of memory (fact)", words=LAYERS),
        Argument("expires_at", "ends at this RFC 3339 time"),
        Argument("supersedes", "the row that this one is written anew for; it inherits no labels: give them again"),
        Argument("derived_from", "a row that it follows from, whose labels it inherits; again for another", repeated=True),
        Argument("title", "timeline: its title"),
        Argument("occurred_at", "timeline: when, as an RFC 3339 time"),
        Argument("channel", "session: its channel"),
        Argument("started_at", "session: since when"),
        Argument("ended_at", "session: until when"),
        AGENT,
        shows=answers.show_remembered,
    ),
    command(
        "memory list",
        "GET /v1/memories",
        "list rows, newest first",
        replace(PROJECT, place="query"),
        Argument("tag", "a tag; again for another", "query", repeated=True),
        replace(TAGS_MATCH, place="query"),
        Argument("layer", "only this layer; again for another", "query", repeated=True, words=LAYERS),
        Argument("classification", "only this tier; again for another", "query", repeated=True, words=TIERS),
        Argument("state", "all: those too that no longer count (live)", "query", words=("live", "all")),
        SHOWN_LIMIT,
        SHOWN_CURSOR,
        SHOWN_AGENT,
        shows=answers.show_rows,
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
        shows=answers.show_rows,
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
        shows=answers.show_passages,
    ),
    command("memory show", "GET /v1/memories/{memory_id}", "show one row"),
    command(
        "memory untagged",
        "GET /v1/memories/untagged",
        "list rows without a project, which no grant can reach",
        SHOWN_LIMIT,
        SHOWN_CURSOR,
        SHOWN_AGENT,
        shows=answers.show_rows,
    ),
    command(
        "memory visible",
        "GET /v1/connections/{connection_id}/visible",
        "what a remote connection sees; with --id whether it sees one row, by which policy or why not",
        OF_CONNECTION,
        Argument("memory_id", "one row, by the id that `memory list` shows", "path", flagged="--id"),
        Argument("action", "as for this action (search; with --id read)", "query", words=MEMORY_ACTIONS),
        SHOWN_LIMIT,
        SHOWN_CURSOR,
        shows=answers.show_visible,
    ),
    command(
        "memory retag",
        "POST /v1/memories/{memory_id}/retag",
        "change a row's labels, and those of what was derived from it",
        PROJECT,
        Argument("project_id", "out of its project: no grant reaches it any more", "json", always="null", flagged="--no-project"),
        replace(TAG, help="replaces all tags of the row; again for another"),
        Argument("tags", "without tags", "json", always="[]", flagged="--no-tags"),
        replace(TIER, help="a new tier"),
        shows=answers.show_retagged,
    ),
    command(
        "memory retract",
        "POST /v1/memories/{memory_id}/retract",
        "hide a row from everybody but its owner, as `forget --id ID --depth hide` does",
        shows=answers.show_retracted,
    ),
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
        Argument("connection_id", "what came over this remote connection, which is barred for good", flagged="--connection"),
        Argument("source_did", "what this remote agent said; its connections are barred for good", flagged="--did"),
        replace(PROJECT, help="what is in this project"),
        Argument("id", "one row, by the id that `memory list` shows"),
        Argument("depth", "erase takes the bytes off the disk too (delete)", words=DEPTHS),
        Argument("dry_run", "count only, change nothing", "json", always="true"),
        AGENT,
        shows=answers.show_receipt,
        notes=answers.note_nothing_matched,
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
        shows=answers.show_credential,
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
    command(
        "remote credential",
        "POST /v1/connections/{connection_id}/credential",
        "end its credential and print a new one",
        shows=answers.show_credential,
    ),
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
        Argument("actions", "what is allowed; again for another", repeated=True, words=MEMORY_ACTIONS, flagged="--action"),
        Argument("scope", "instead of actions: the network's {id, params}, as JSON or @file", "json"),
        replace(TAG, help="only rows with this tag; again for another"),
        TAGS_MATCH,
        replace(ONLY_TIERS, help="only this tier; again for another (public and internal)"),
        Argument("provenance", "only rows from there: your own, or its own (any)", words=PROVENANCES),
        Argument("expires_at", "ends at this RFC 3339 time"),
        Argument("limits", LIMITS, "json"),
        shows=answers.show_grant,
        notes=answers.note_unused_project,
    ),
    command(
        "grant list",
        "GET /v1/connections/{connection_id}/grants",
        "list the grants of a remote connection, ended ones too",
        shows=answers.show_grants,
    ),
    command("grant revoke", "DELETE /v1/connections/{connection_id}/grants/{grant_id}", "end a grant now"),
)

BRIDGE: tuple[Command, ...] = (
    command("agent bridge-token", "POST /v1/agents/{agent_id}/bridge-token", "print a new token for the bridge of a network"),
)

MEMORY_COMMANDS: tuple[Command, ...] = (*MEMORY, *REMOTE, *GRANTS, *BRIDGE)
