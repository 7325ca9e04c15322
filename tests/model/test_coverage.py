"""Coverage: the first thing that keeps a row from a connection."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gateway.model.coverage import CLAUSES, Clause, failed_clause
from gateway.model.memory import Memory, MemoryGrant, RemoteConnection
from tests.remote import a_memory, a_memory_grant, a_remote_connection, over
from tests.world import NOW

CONNECTION = a_remote_connection()
LATER = NOW + timedelta(seconds=1)


def clause(row: Memory, *grants: MemoryGrant, connection: RemoteConnection = CONNECTION) -> Clause | None:
    return failed_clause(connection, grants, row, "read", NOW)


@pytest.mark.parametrize("provenance", ["any", "owner_only"])
def test_a_row_that_a_grant_covers_fails_nothing(provenance: str) -> None:
    assert clause(a_memory(), a_memory_grant(provenance=provenance)) is None


@pytest.mark.parametrize(
    ("row", "grant", "expected"),
    [
        (a_memory(), a_memory_grant(actions=("search",)), "grant"),
        (a_memory(), a_memory_grant(revoked_at=NOW), "grant"),
        (a_memory(), a_memory_grant(expires_at=NOW), "grant"),
        (a_memory(), a_memory_grant(expires_at=LATER), None),
        (a_memory(project_id=None), a_memory_grant(), "project"),
        (a_memory(project_id="alpha2"), a_memory_grant(), "project"),
        (a_memory(classification="pii"), a_memory_grant(), "classification"),
        (a_memory(tags=("a",)), a_memory_grant(tags=("a", "b")), None),
        (a_memory(tags=("c",)), a_memory_grant(tags=("a", "b")), "tags"),
        (a_memory(tags=("a",)), a_memory_grant(tags=("a", "b"), tags_match="all"), "tags"),
        (a_memory(tags=("a", "b", "c")), a_memory_grant(tags=("a", "b"), tags_match="all"), None),
        (a_memory(tags=("ab",)), a_memory_grant(tags=("a",)), "tags"),
        (a_memory(provenance=over("partner")), a_memory_grant(provenance="owner_only"), "provenance"),
        (a_memory(), a_memory_grant(provenance="own_connection"), "provenance"),
        (a_memory(provenance=over("partner", "third")), a_memory_grant(provenance="own_connection"), "provenance"),
        (a_memory(provenance=over("partner")), a_memory_grant(provenance="own_connection"), None),
        (a_memory(retracted_at=NOW), a_memory_grant(), "retracted"),
        (a_memory(superseded_by="newer"), a_memory_grant(), "superseded"),
        (a_memory(expires_at=NOW), a_memory_grant(), "expired"),
        (a_memory(expires_at=LATER), a_memory_grant(), None),
    ],
)
def test_the_clause_that_fails_is_named(row: Memory, grant: MemoryGrant, expected: Clause | None) -> None:
    assert clause(row, grant) == expected


def test_a_connection_without_a_grant_lacks_a_grant() -> None:
    assert clause(a_memory()) == "grant"


@pytest.mark.parametrize("status", ["suspended", "revoked"])
def test_a_connection_that_is_not_active_comes_first(status: str) -> None:
    assert clause(a_memory(project_id=None), connection=a_remote_connection(status=status)) == "connection"


def test_the_row_of_another_agent_or_organisation_is_not_the_connections() -> None:
    assert clause(a_memory(agent="another"), a_memory_grant()) == "connection"
    assert clause(a_memory(org_id="elsewhere"), a_memory_grant()) == "connection"


def test_of_several_failures_the_first_is_named() -> None:
    row = a_memory(classification="pii", tags=(), retracted_at=NOW, superseded_by="newer", expires_at=NOW)
    assert clause(row, a_memory_grant(tags=("a",))) == "classification"


def test_of_several_grants_the_one_that_gets_furthest_counts() -> None:
    grants = [a_memory_grant("one", project_id="beta"), a_memory_grant("two", tags=("a",)), a_memory_grant("three")]
    row = a_memory(expires_at=NOW)
    assert [clause(row, *some) for some in (grants[:1], grants[:2], grants, grants[::-1])] == [
        "project",
        "tags",
        "expired",
        "expired",
    ]
    assert clause(a_memory(), *grants) is None


def test_the_clauses_are_looked_at_in_the_order_they_are_named_in() -> None:
    assert CLAUSES == (
        "connection",
        "grant",
        "project",
        "classification",
        "tags",
        "provenance",
        "retracted",
        "superseded",
        "expired",
    )
