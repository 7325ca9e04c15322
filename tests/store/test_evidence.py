"""Reading the log below the API: whole rows as they were written, and the walk along the whole chain."""

from __future__ import annotations

from dataclasses import fields, replace

from gateway.model.caller import OPERATOR
from gateway.model.grant import Session
from gateway.store import evidence, log
from gateway.store.entities import Installation
from gateway.store.evidence import DecisionFilter, EventFilter
from gateway.store.logged import Logged
from gateway.store.writer import record
from tests.builders import START, Gateway
from tests.operations.evidence_rows import ROW, craft, org_of, tamper
from tests.world import caller


def test_a_row_is_read_as_it_was_written(gateway: Gateway) -> None:
    written = replace(
        ROW,
        id="é'\"",
        org_id=org_of(gateway),
        at=START.replace(microsecond=1),
        outcome="deny",
        deny_kind="forbidden",
        policies=("a", 'b"c', "é"),
        slices=("0" * 64, "1" * 64),
        details={"served": 2, "ids": ["x", None], "nested": {"é": True}},
    )
    gateway.services.database.write(record(written)).result()
    grant = gateway.services.access.authorize(_session(gateway), "decision.list", gateway.services.state.orgs[org_of(gateway)])
    which = DecisionFilter(principal="crafted")
    [read], total = gateway.services.database.read_sync(lambda rows: evidence.decisions(rows, grant, which, limit=5, offset=0))
    expected = {
        field.name: getattr(written, field.name) for field in fields(Logged) if field.name not in ("seq", "hash", "readable")
    }
    assert read == Logged(
        seq=read.seq, hash=read.hash, **{**expected, "policies": list(written.policies), "slices": list(written.slices)}
    )
    assert total == 1


def test_an_event_is_no_decision_and_a_decision_no_event(gateway: Gateway) -> None:
    [decision] = craft(gateway, 1)
    [event] = craft(gateway, 1, first=2, kind="audit", outcome=None)
    org = gateway.services.state.orgs[org_of(gateway)]
    grant = gateway.services.access.authorize(_session(gateway), "decision.list", org)
    read = gateway.services.database.read_sync
    found, _ = read(lambda rows: evidence.decisions(rows, grant, DecisionFilter(principal="crafted"), limit=5, offset=0))
    events, _ = read(
        lambda rows: evidence.audit_events(rows, grant, EventFilter(actor="crafted"), only_actor=None, limit=5, offset=0)
    )
    assert ([row.id for row in found], [row.id for row in events]) == ([decision], [event])
    assert read(lambda rows: [evidence.decision_org(rows, row_id) for row_id in (decision, event)]) == [org.id, None]


def test_the_whole_chain_is_walked_whoever_its_rows_belong_to(gateway: Gateway) -> None:
    ids = [*craft(gateway, 2), *craft(gateway, 2, first=3, other=True)]
    read = gateway.services.database.read_sync
    grant = gateway.services.access.authorize(Session(OPERATOR, "request", START), "admin.verify", Installation())
    whole = read(lambda rows: evidence.verify_on(rows, grant, None, 1_000))
    assert (whole.valid, whole.broken_at_id, whole.checked) == (
        True,
        None,
        read(lambda rows: rows.value("SELECT count(*) FROM log")),
    )
    tamper(gateway, ids[2])
    broken = read(lambda rows: evidence.verify_on(rows, grant, None, 1_000))
    assert (broken.valid, broken.broken_at_id) == (False, ids[2])


def test_a_walk_in_pages_counts_all_of_them_and_trusts_no_stored_hash_in_between(gateway: Gateway) -> None:
    ids = craft(gateway, 6)
    read = gateway.services.database.read_sync
    grant = gateway.services.access.authorize(Session(OPERATOR, "request", START), "admin.verify", Installation())
    end = read(lambda rows: evidence.chain_end(rows, grant))
    first = read(lambda rows: evidence.verify_on(rows, grant, None, end - 3))
    assert read(lambda rows: evidence.verify_on(rows, grant, first, 3)) == read(
        lambda rows: evidence.verify_on(rows, grant, None, end)
    )
    # Everything up to here is written anew, and the row after it is linked to that: only the head of the page before tells.
    forged = "0" * 64
    tamper(gateway, ids[2], f"hash = '{forged}'")
    [(*stored, _)] = read(lambda rows: rows.all(f"SELECT {log.SELECTED}, hash FROM log WHERE id = $1", ids[3]))
    tamper(gateway, ids[3], f"hash = '{log.link(forged, log.line(tuple(stored)))}'")
    broken = read(lambda rows: evidence.verify_on(rows, grant, first, 1))
    assert (broken.valid, broken.broken_at_id, broken.verified) == (False, ids[3], first.verified)


def _session(gateway: Gateway) -> Session:
    return Session(caller(gateway.owner.id, org_id=org_of(gateway)), "request", START)
