from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from gateway.model.entity import Entity, EntityUid
from gateway.policy.slice import SliceError
from tests.policy import builders as b

ENGINE = b.an_engine(
    '@id("x") permit (principal, action, resource) when { resource.hasTag("reader") && resource.getTag("reader") == principal };'
)


def test_a_slice_has_its_text_its_salted_hash_and_its_entities() -> None:
    slice = ENGINE.slice(b.a_user(), b.an_org())
    assert json.loads(slice.text)[0] == {"uid": {"type": "Org", "id": "o"}, "attrs": {}, "parents": [], "tags": {}}
    assert slice.hash == hashlib.sha256(b"salt" + slice.text.encode()).hexdigest()
    assert (slice.hashes, slice.uids, slice.missing) == ((slice.hash,), {b.ORG, b.ANN}, frozenset())


def test_the_order_of_entities_and_parents_is_not_in_the_text() -> None:
    ann = b.a_user(groups=("a", "b"))
    turned = Entity(ann.uid, ann.attrs, tuple(reversed(ann.parents)))
    assert ENGINE.slice(b.an_org(), ann).text == ENGINE.slice(turned, b.an_org()).text


def test_an_entity_given_twice_counts_once_and_two_of_one_name_are_refused() -> None:
    assert ENGINE.slice(b.an_org(), b.an_org()) == ENGINE.slice(b.an_org())
    with pytest.raises(SliceError, match='two different entities are `User::"ann"`'):
        ENGINE.slice(b.a_user(level=1), b.a_user(level=2))


def test_every_place_that_names_an_entity_counts_for_completeness() -> None:
    eve = EntityUid("User", "eve")
    doc = b.a_doc()
    for torn in (
        Entity(doc.uid, {**doc.attrs, "owner": eve}, doc.parents),
        Entity(doc.uid, {**doc.attrs, "seen_by": (eve,)}, doc.parents),
        Entity(doc.uid, doc.attrs, doc.parents, {"reader": eve}),
    ):
        assert ENGINE.slice(b.an_org(), b.a_user(), torn).missing == {eve}
    assert ENGINE.slice(b.a_user()).missing == {b.ORG}


def test_decimals_times_and_tags_reach_cedar_as_what_they_are() -> None:
    engine = b.an_engine(
        '@id("x") permit (principal, action, resource) when { resource has price && resource.price == decimal("1.5") && '
        'resource has due && resource.due == datetime("2026-03-04T10:00:00.000Z") && '
        'resource.hasTag("reader") && resource.getTag("reader") == principal };'
    )
    doc = b.a_doc(price=Decimal("1.50"), due=datetime(2026, 3, 4, 10, tzinfo=UTC))
    slice = engine.slice(b.an_org(), b.a_user(), Entity(doc.uid, doc.attrs, doc.parents, {"reader": b.ANN}))
    assert engine.decide(b.a_query(), slice).allowed


def test_entities_that_break_the_schema_are_refused() -> None:
    with pytest.raises(SliceError, match="does not conform to the schema"):
        ENGINE.slice(Entity(b.ANN, {}))
    with pytest.raises(SliceError, match=r'`User::"ann"`: a `float` is not a Cedar value'):
        ENGINE.slice(Entity(b.ANN, {"level": 1.5}))  # type: ignore[dict-item]
    with pytest.raises(SliceError):
        ENGINE.slice(Entity(EntityUid("User", "\ud800")))


def test_an_extended_slice_decides_as_the_whole_one_does() -> None:
    base = ENGINE.slice(b.an_org(), b.a_doc())
    assert base.missing == {b.ANN}
    extended = ENGINE.extend(base, b.a_user())
    whole = ENGINE.slice(b.an_org(), b.a_doc(), b.a_user())
    assert (extended.uids, extended.missing) == (whole.uids, whole.missing) == ({b.ORG, b.DOC, b.ANN}, frozenset())
    by_id = {json.dumps(row["uid"]): row for row in json.loads(str(extended.handle))}
    assert by_id == {json.dumps(row["uid"]): row for row in json.loads(str(whole.handle))}
    assert ENGINE.decide(b.a_query(), extended) == ENGINE.decide(b.a_query(), whole)


def test_an_extended_slice_is_hashed_by_what_was_added() -> None:
    base = ENGINE.slice(b.an_org())
    extended = ENGINE.extend(base, b.a_user())
    alone = ENGINE.slice(b.a_user())
    assert (extended.text, extended.hash, extended.hashes) == (alone.text, alone.hash, (base.hash, alone.hash))


def test_an_extension_cannot_change_an_entity_of_its_base() -> None:
    base = ENGINE.slice(b.an_org(), b.a_user(level=1))
    with pytest.raises(SliceError, match="duplicate entity"):
        ENGINE.extend(base, b.a_user(level=2))


def test_entities_in_json_are_as_complete_as_cedar_reads_them() -> None:
    rows = [
        b.a_row("Org", "o"),
        b.a_row("Doc", "d", b.uid("Org", "o"), org=b.uid("Org", "o"), owner=b.uid("User", "eve"), level=1),
    ]
    slice = ENGINE.slice_json(rows)
    assert (slice.uids, slice.missing) == ({b.ORG, b.DOC}, {EntityUid("User", "eve")})


def test_json_that_is_not_entities_is_refused() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    for rows in ([1], [{"uid": "x"}], [float("nan")], deep):
        with pytest.raises(SliceError):
            ENGINE.slice_json(rows)


def test_an_extension_does_not_mend_a_base_that_it_does_not_complete() -> None:
    base = ENGINE.slice(b.an_org(), b.a_doc(owner="eve"))
    extended = ENGINE.extend(base, b.a_user())
    assert extended.missing == {EntityUid("User", "eve")}
    assert not ENGINE.decide(b.a_query(), extended).allowed


def test_an_action_is_never_missing() -> None:
    engine = b.an_engine(b.PERMIT, schema=b.SCHEMA + "entity Log = { did: Action };")
    row = Entity(EntityUid("Log", "l"), {"did": EntityUid("Action", "read")})
    written = engine.slice_json([b.a_row("Log", "l", did={"__entity": b.uid("Action", "read")})])
    assert [slice.missing for slice in (engine.slice(row), written)] == [frozenset(), frozenset()]
