from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from gateway.model.entity import Entity, EntityUid, Value
from gateway.policy.clauses import expression
from gateway.policy.context import Context
from gateway.policy.operands import operands
from tests.policy import builders as b

SCHEMA = b.SCHEMA.replace("name: String", 'name: String, "odd key": String')
ENGINE = b.an_engine(b.PERMIT, schema=SCHEMA)
BOB = EntityUid("User", "bob")


def read(text: str, **context: Value) -> dict[str, str | None]:
    doc = b.a_doc(price=Decimal("1.5"), seen_by=(BOB, b.ANN), box={"name": "x", "odd key": "y"})
    tagged = Entity(doc.uid, doc.attrs, doc.parents, {"reader": BOB})
    ann = b.a_user(groups=("inner",))
    slice = ENGINE.slice(b.an_org(), ann, b.a_user("bob", level=7), tagged, b.a_group("outer"), b.a_group("inner", "outer"))
    return operands(expression(text), b.a_query(**context), slice)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1 == 1", {}),
        ("principal == resource.owner", {"principal": 'User::"ann"', "resource.owner": 'User::"ann"'}),
        ("resource.owner.level < 3", {"resource.owner.level": "1"}),
        ('action == Action::"read"', {"action": 'Action::"read"'}),
        ("principal has nick", {"principal.nick": None}),
        ("resource has box.name", {"resource.box": '{"name":"x","odd key":"y"}', "resource.box.name": '"x"'}),
        ('resource.box["odd key"] == "y"', {'resource.box["odd key"]': '"y"'}),
        ("principal.nick.length", {"principal.nick.length": None}),
        ('resource.price.lessThan(decimal("2.0"))', {"resource.price": "1.5000"}),
        ("resource.seen_by.contains(principal)", {"resource.seen_by": '[User::"ann", User::"bob"]', "principal": 'User::"ann"'}),
        (
            'principal in Group::"outer"',
            {"principal": 'User::"ann"', "ancestors(principal)": 'Group::"inner", Group::"outer", Org::"o"'},
        ),
        (
            "context.friend is User in resource.org",
            {"context.friend": None, "resource.org": 'Org::"o"', "ancestors(context.friend)": None},
        ),
        ('resource.hasTag("reader")', {'resource.getTag("reader")': 'User::"bob"'}),
        ('resource.getTag("reader").level == 7', {'resource.getTag("reader").level': "7"}),
        ('resource.getTag("writer") == principal', {'resource.getTag("writer")': None, "principal": 'User::"ann"'}),
        (
            "resource.getTag(principal.nick).active",
            {"principal.nick": None, "resource.getTag(principal.nick).active": None},
        ),
        (
            'resource.getTag(if principal.active then "reader" else "x") == principal',
            {"principal.active": "true", "resource.getTag(...)": None, "principal": 'User::"ann"'},
        ),
        ("{ a: principal.level }.a == 1", {"principal.level": "1"}),
    ],
)
def test_an_expression_reads_paths_and_finds_what_stands_there(text: str, found: dict[str, str | None]) -> None:
    assert read(text) == found


def test_the_context_is_read_too() -> None:
    now = datetime(2026, 3, 4, 10, tzinfo=UTC)
    assert read("context.n == 1 && context.now > context.now", n=1, now=now) == {
        "context.n": "1",
        "context.now": "2026-03-04T10:00:00.000Z",
    }
    assert read("context.friend.level == 7", friend=BOB) == {"context.friend.level": "7"}


def test_a_context_of_a_file_is_read_as_well() -> None:
    slice = ENGINE.slice(b.an_org(), b.a_user(), b.a_doc())
    query = b.a_query()
    prepared = type(query)(query.principal, query.action, query.resource, Context.from_json({"n": 2}))
    assert operands(expression("context.n == 1"), prepared, slice) == {"context.n": "2"}
