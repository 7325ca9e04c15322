"""Every limit of the gateway, by name. Over one of them: 400 or 413 naming it, and nothing half done."""

from __future__ import annotations

from datetime import timedelta

BODY_BYTES = 256 * 1024
#: For a body that may name as many agents as `OBSERVERS_PER_CALL`, or hold a text of which each byte is an escape of six.
LARGE_BODY_BYTES = 2 * 1024 * 1024
BODY_NESTING = 50
#: Questions of one AuthZEN request, and results of one search.
EVALUATIONS = 1_000
#: Characters of the questions of one request in all, with what each takes from the body.
EVALUATIONS_CHARACTERS = 16 * 1024 * 1024
SEARCH_PAGE = 1_000
EVENT_CONTENT_BYTES = 16 * 1024
PAGE = 200
AUDIT_PAGE = 1_000
AUDIT_VERIFY = 10_000
OBSERVERS_PER_CALL = 10_000
CHILDREN_PER_AGENT = 50
CONTEXT_BUDGET = 2_000
CONTEXT_BUDGET_CAP = 8_000
NAME_CHARACTERS = 100
TEXT_CHARACTERS = 500
REF_CHARACTERS = 256
PASSWORD_CHARACTERS = (12, 256)

APPROVAL_LIFETIME = timedelta(days=7)
CLAIM_SECONDS = 600
REAUTH_SECONDS = 300
TOKEN_SECONDS_HUMAN = 900
TOKEN_SECONDS_AGENT = 3_600
TOKEN_SECONDS_RANGE = (120, 86_400)
GUESSES_PER_MINUTE = 10

#: Requests under way at once; one more is told to come back, before anything of it is read.
CONCURRENT_REQUESTS = 512
#: From so many on, what is under way is shared out.
CROWDED_REQUESTS = 256
#: The share then of one credential, or of one address without one, for requests whose bodies are still arriving.
BODIES_ARRIVING = 32
#: A request that has waited for its turn this long is told to come back: whoever comes after it waits less for that.
TURN_SECONDS = 0.5
#: While there are fewer connections than this, new ones are taken as they come; from there on, one a turn of the loop.
TAKEN_AT_ONCE = 64
#: Connections at once; one more is told to come back and closed.
CONNECTIONS = 4_096
#: Connections beside them that are being told so; one more waits in the system's queue, which holds `BACKLOG`.
TURNED_AWAY = 512
BACKLOG = 4_096
#: Connections that are told to come back in one turn of the loop while the queue has not ended for `TURN_SECONDS`.
TOLD_AT_ONCE = 16
#: Of the files that the process may open, those that no connection takes.
FILES_KEPT = 128
#: What may wait for the writer, and for the two readers; more is told to come back.
WRITER_QUEUE = 4_096
READER_QUEUE = 4_096
#: Lines of the request log that may wait for whoever reads them; more are dropped and counted.
LOG_LINES = 10_000

MEMORY_TEXT_BYTES = 64 * 1024
MEMORY_TAGS = 32
TAG_CHARACTERS = 64
MEMORY_QUERY_CHARACTERS = 2_000
MEMORY_SOURCES = 64
MEMORIES_LISTED_DEFAULT = 50
MEMORIES_FOUND_DEFAULT = 10
#: Rows to a request that makes them findable by meaning: it is asked again until none remain.
MEMORIES_INDEXED = 100
#: Longer than any cursor of ours.
CURSOR_CHARACTERS = 512
MEMORY_TOKENS = (100, 50_000)
#: Rows whose texts one answer joins.
MEMORY_PASSAGES = 1_000
MEMORY_TOKENS_DEFAULT = 8_000
CHARACTERS_PER_TOKEN = 4
TOKEN_CHARACTERS = 64
GRANTS_PER_CONNECTION = 50
#: A limit of a grant stays within what every reader of JSON holds exactly.
GRANT_LIMIT = 2**53 - 1
SCOPE_ROWS_PER_DAY = (1, 1_000)
SCOPE_ROWS_PER_DAY_DEFAULT = 100
ARP_LIMIT = 50
ARP_LIMIT_DEFAULT = 10
REPLAY_DECISIONS = 10_000
SIMULATED_APPROVALS = 1_000
