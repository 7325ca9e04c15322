"""What the commands about memory print for people: short lines and narrow tables. Scripts ask for the JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from gateway.cli.command import Asked
from gateway.cli.output import note, print_fields, print_page, print_prose
from gateway.model.memory import LAYERS

Row = Mapping[str, Any]

NOT_INDEXED = "some rows are not indexed for search by meaning: peergate memory index"
NO_PROJECT = "no project (no grant reaches it)"
#: Why a row is not seen, by the clause that fails.
CLAUSES = {
    "connection": "the connection is suspended or revoked, or belongs to another agent",
    "grant": "no grant that holds now allows this action",
    "project": "no grant is for its project, or it has none",
    "classification": "no grant for its project opens its classification",
    "tags": "it lacks the tags that the grant asks for",
    "provenance": "the grant leaves out memories from where it came from",
    "retracted": "it was taken back",
    "superseded": "it was written anew, and this is the old one",
    "expired": "it has ended",
}
#: Why a connection sees nothing, by its status.
NOTHING = {
    "active": "it sees nothing now: no grant that holds covers any row",
    "suspended": "it sees nothing: the connection is suspended, until it is resumed",
    "revoked": "it sees nothing: the connection is revoked, for good",
}
#: What forgetting has done to the rows that it counts.
DONE = {"hide": "hidden", "delete": "deleted", "erase": "erased"}


def show_rows(answer: Any, asked: Asked) -> None:
    """A page of rows; with whom each came from for their owner, and whether it counts where that differs."""
    given, rows = asked.given, answer["items"]
    columns = [
        *(["score"] if "query" in given else []),
        *("id", "layer"),
        *(["state"] if given.get("state") == "all" else []),
        *("project_id", "classification", "tags"),
        *(["source"] if all("provenance" in row for row in rows) else []),
        "text",
    ]
    print_page(answer, [_shown(row) for row in rows], columns)
    _note_unindexed(answer)


def show_passages(answer: Any, _: Asked) -> None:
    print_prose(answer["answer"] or "nothing that you may query fits")
    _note_unindexed(answer)


def show_remembered(answer: Any, _: Asked) -> None:
    row = answer["memory"]
    print_prose(f"remembered {row['id']}: {_labels(row)}")


def show_retagged(answer: Any, _: Asked) -> None:
    print(f"tagged {answer['memory']['id']} anew")
    print_fields({name: _labels(answer[name]) for name in ("before", "after")})


def show_retracted(answer: Any, _: Asked) -> None:
    print(f"hidden {answer['memory']['id']}: its owner still lists it with --state all")


def show_visible(answer: Any, asked: Asked) -> None:
    """What a connection sees, and why it is nothing; or of one row, whether and why not."""
    if "visible" in answer:
        print_prose(_why(answer))
    elif answer["items"]:
        print_page(answer, answer["items"], ("id", "grant_id", "layer", "project_id", "classification", "text"))
    else:
        found = asked.get(f"/v1/connections/{quote(asked.given['connection'], safe='')}")
        print(NOTHING[found["connection"]["status"] if found is not None else "active"])


def show_receipt(answer: Any, _: Asked) -> None:
    """What was forgotten or would be, a layer at a time, and the connections that are barred by it."""
    counts: dict[str, object] = {layer: answer["counts"][layer] for layer in LAYERS}
    print_fields({**counts, "total": answer["total"]})
    connections = ", ".join(answer["connections"])
    if answer["dry_run"]:
        if connections:
            print(f"this bars {connections} for good")
        return
    print(f"{answer['total']} {'row' if answer['total'] == 1 else 'rows'} {DONE[answer['depth']]}")
    if connections:
        print(f"barred for good: {connections}")


def note_nothing_matched(answer: Any, _: Asked) -> None:
    if answer["total"] == 0 and not answer["connections"]:
        note("nothing matched: check the id, the DID or the project, and the agent")


def show_credential(answer: Any, _: Asked) -> None:
    """A connection, and the credential that is shown once."""
    made = answer["connection"]
    print_prose(f"{made['id']} connects {made['peer_did']} to the agent {made['agent_id']}; its credential, shown once:")
    print(answer["credential"])


def show_grant(answer: Any, _: Asked) -> None:
    made = answer["grant"]
    print_prose(f"granted {made['id']}: {made['connection_id']} may {', '.join(made['actions'])} in {made['project_id']}")
    shown = _granted(made)
    said = {name: shown[name] for name in ("classifications", "tags", "provenance", "limits", "expires_at")}
    print_fields({name: value for name, value in said.items() if value is not None})


def note_unused_project(answer: Any, asked: Asked) -> None:
    """Say that nothing is in the project that was granted: it may be a slip of the pen."""
    made = answer["grant"]
    connection = asked.get(f"/v1/connections/{quote(made['connection_id'], safe='')}")
    if connection is None:
        return
    agent = connection["connection"]["agent_id"]
    listed = asked.get("/v1/memories", agent_id=agent, project_id=made["project_id"], limit=1)
    if listed is not None and listed["total"] == 0:
        note(f"no memory of this agent is in `{made['project_id']}` yet")


def show_grants(answer: Any, _: Asked) -> None:
    """The grants of a connection; a column in which none of them says anything is left out."""
    rows = [_granted(made) for made in answer["grants"]]
    columns = ("id", "project_id", "actions", "classifications", "tags", "provenance", "limits", "expires_at", "revoked_at")
    optional = {"tags", "provenance", "limits"}
    kept = [column for column in columns if column not in optional or any(row[column] is not None for row in rows)]
    print_page(answer, rows, kept)


def _granted(made: Row) -> dict[str, object]:
    """A grant whose cells are words, None where it says nothing of its own."""
    limits = [f"{name} {most}" for name, most in made["limits"].items() if most is not None]
    match = "all of " if made["tags_match"] == "all" and len(made["tags"]) > 1 else ""
    return {
        **made,
        "actions": ", ".join(made["actions"]),
        "classifications": ", ".join(made["classifications"]),
        "tags": match + ", ".join(made["tags"]) if made["tags"] else None,
        "provenance": made["provenance"] if made["provenance"] != "any" else None,
        "limits": ", ".join(limits) or None,
    }


def _shown(row: Row) -> dict[str, object]:
    score = {"score": f"{row['score']:.3f}"} if "score" in row else {}
    said = {"state": _state(row), "source": _source(row.get("provenance", ())), "tags": ", ".join(row["tags"]) or None}
    return {**row, **score, **said}


def _state(row: Row) -> str:
    if row.get("retracted_at") is not None:
        return "retracted"
    if row.get("superseded_by") is not None:
        return "superseded"
    ends = row.get("expires_at")
    return "expired" if ends is not None and datetime.fromisoformat(ends) <= datetime.now(UTC) else "live"


def _source(provenance: Sequence[Row]) -> str | None:
    """The connections that a row came over; where there was none, who said it."""
    return ", ".join(sorted({each["connection_id"] or each["source_did"] for each in provenance})) or None


def _labels(row: Row) -> str:
    project = f"project {row['project_id']}" if row["project_id"] is not None else NO_PROJECT
    tags = f", tags {', '.join(row['tags'])}" if row["tags"] else ""
    return f"{project}, {row['classification']}{tags}"


def _why(answer: Row) -> str:
    if answer["visible"]:
        return f"seen, by the grant {answer['grant_id']}"
    clause = answer["failed_clause"]
    if clause is not None:
        return f"not seen: {CLAUSES[clause]}"
    return f"not seen: the policy {answer['policy']} keeps it back" if answer["policy"] is not None else "not seen"


def _note_unindexed(answer: Row) -> None:
    if answer["incomplete"]:
        note(NOT_INDEXED)
