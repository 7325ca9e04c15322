"""Conditions as SQL: the one module that puts SQL together.

Values are always bound parameters. The text is made of what DuckDB and PostgreSQL have in common, and is the same for
conditions that differ in their values alone, however many values a list has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal, assert_never

from gateway.model.condition import (
    And,
    Compare,
    Condition,
    Empty,
    Equals,
    Has,
    HeldBy,
    HoldsAll,
    HoldsAny,
    Known,
    Like,
    Not,
    OneOf,
    Or,
    Same,
    Scalar,
    weight,
)

Kind = Literal["text", "number", "set", "given", "past"]


@dataclass(frozen=True, slots=True)
class Column:
    """Where an attribute is kept.

    A `set` is a VARCHAR[], never NULL. `given` and `past` are booleans made of a column: that it is not NULL, and that it
    holds a time which has come. Only with `optional` may a text or a number be NULL. A `Memory` has no number yet; policies
    may compare Longs.
    """

    name: str
    kind: Kind
    optional: bool = False


#: The attributes of a `Memory`.
MEMORY: Mapping[str, Column] = {
    "id": Column("id", "text"),
    "org": Column("org_id", "text"),
    "agent": Column("agent_id", "text"),
    "layer": Column("layer", "text"),
    "project": Column("project_id", "text", optional=True),
    "tags": Column("tags", "set"),
    "classification": Column("classification", "text"),
    "sources": Column("sources", "set"),
    "retracted": Column("retracted_at", "given"),
    "superseded": Column("superseded_by", "given"),
    "expired": Column("expires_at", "past"),
}
#: What a condition may weigh: a plan of policies, and what every row has to be whatever they say.
MAX_WEIGHT = 8_000
_CASTS: Mapping[Kind, str] = {
    "text": "VARCHAR",
    "set": "VARCHAR",
    "number": "DECIMAL(38, 4)",
    "given": "BOOLEAN",
    "past": "BOOLEAN",
}


def render(condition: Condition, columns: Mapping[str, Column], now: datetime, first: int = 1) -> tuple[str, tuple[object, ...]]:
    """The condition as an SQL expression that is never NULL, and its parameters, of which the first is `$first`.

    Raises:
        ValueError: it names an attribute that there is not, or asks something of one that its type does not have; or it weighs
            over `MAX_WEIGHT`.
    """
    if weight(condition) > MAX_WEIGHT:  # which nothing goes through first
        raise ValueError(f"more than {MAX_WEIGHT} conditions in one query")
    made = _Rendering(columns, now, first)
    text = made.text(condition)
    return text, tuple(made.params)


def filled(
    sql: str, condition: Condition, columns: Mapping[str, Column], now: datetime, *params: object
) -> tuple[str, tuple[object, ...]]:
    """A statement with the condition in place of its `{where}`; its own `$1 ... $n` are `params`."""
    text, more = render(condition, columns, now, len(params) + 1)
    return placed(sql, text), (*params, *more)


def placed(sql: str, text: str, place: str = "where") -> str:
    """A statement with a part of SQL in its place: the condition in that of `{where}`, or another constant in its own."""
    return sql.replace(f"{{{place}}}", text)


class _Rendering:
    """One condition being rendered; `params` grows with it."""

    def __init__(self, columns: Mapping[str, Column], now: datetime, first: int) -> None:
        self.params: list[object] = []
        self._columns = columns
        self._now = now
        self._first = first
        self._now_at: str | None = None

    def text(self, condition: Condition) -> str:
        match condition:
            case Known(value=value):
                return "TRUE" if value else "FALSE"
            case And():
                return self._joined(condition, "AND", "TRUE")
            case Or():
                return self._joined(condition, "OR", "FALSE")
            case Not(term=term):
                return f"NOT {self.text(term)}"
            case Has(attribute=name):
                column = self._column(name)
                return f"({column.name} IS NOT NULL)" if column.optional else "TRUE"
            case Equals(attribute=name, value=value):
                column = self._column(name, "text", "number", "given", "past")
                return self._present(f"{self._value(column)} = {self._bound(column, value)}", column)
            case Same(attribute=name, other=other):
                return self._same(self._column(name), self._column(other))
            case Compare(attribute=name, order=order, value=value):
                if order not in ("<", "<=", ">", ">="):
                    raise ValueError(f"`{order}` is no order")
                column = self._column(name, "number")
                return self._present(f"{column.name} {order} {self._bound(column, value)}", column)
            case OneOf(attribute=name, values=values):
                column = self._column(name, "text", "number", "given", "past")
                return self._present(f"{self._value(column)} = ANY({self._list(column, values)})", column)
            case Like(attribute=name, pieces=pieces):
                column = self._column(name, "text")
                pattern = self._bound(column, "%".join([_literal(piece) for piece in pieces]))
                return self._present(rf"{column.name} LIKE {pattern} ESCAPE '\'", column)
            case HoldsAny(attribute=name, values=values):
                return self._held(name, "&&", values)
            case HoldsAll(attribute=name, values=values):
                return self._held(name, "@>", values)
            case HeldBy(attribute=name, values=values):
                return self._held(name, "<@", values)
            case Empty(attribute=name):
                return f"(coalesce(array_length({self._column(name, 'set').name}, 1), 0) = 0)"
            case _:
                assert_never(condition)

    def _joined(self, condition: And | Or, word: str, of_none: str) -> str:
        # Chains are flattened: a policy may have hundreds of operators in a row, and both parsers bound the nesting.
        terms: list[str] = []
        waiting = list(reversed(condition.terms))
        while waiting:
            term = waiting.pop()
            if isinstance(term, type(condition)):
                waiting.extend(reversed(term.terms))
            else:
                terms.append(self.text(term))
        return f"({f' {word} '.join(terms)})" if terms else of_none

    def _column(self, attribute: str, *kinds: Kind) -> Column:
        column = self._columns.get(attribute)
        if column is None:
            raise ValueError(f"there is no attribute `{attribute}`")
        if kinds and column.kind not in kinds:
            raise ValueError(f"`{attribute}` is a {column.kind}: this cannot be asked of it")
        return column

    def _value(self, column: Column) -> str:
        match column.kind:
            case "given":
                return f"({column.name} IS NOT NULL)"
            case "past":
                return f"({column.name} IS NOT NULL AND {column.name} <= {self._moment()})"
            case _:
                return column.name

    def _present(self, test: str, column: Column) -> str:
        return f"({column.name} IS NOT NULL AND {test})" if column.optional else f"({test})"

    def _same(self, left: Column, right: Column) -> str:
        if _CASTS[left.kind] != _CASTS[right.kind] or (left.kind == "set") != (right.kind == "set"):
            raise ValueError(f"a {left.kind} cannot be compared with a {right.kind}")
        if left.kind == "set":
            return f"({left.name} @> {right.name} AND {left.name} <@ {right.name})"
        absent = [f"{column.name} IS NOT NULL AND " for column in (left, right) if column.optional]
        return f"({''.join(absent)}{self._value(left)} = {self._value(right)})"

    def _held(self, attribute: str, operator: str, values: Sequence[Scalar]) -> str:
        column = self._column(attribute, "set")
        return f"({column.name} {operator} {self._list(column, values)})"

    def _moment(self) -> str:
        if self._now_at is None:
            self._now_at = self._parameter(self._now, "TIMESTAMP")
        return self._now_at

    def _bound(self, column: Column, value: Scalar) -> str:
        _check(column, value)
        return self._parameter(value, _CASTS[column.kind])

    def _list(self, column: Column, values: Sequence[Scalar]) -> str:
        for value in values:
            _check(column, value)
        return self._parameter(list(values), f"{_CASTS[column.kind]}[]")

    def _parameter(self, value: object, kind: str) -> str:
        self.params.append(value)
        return f"${self._first + len(self.params) - 1}::{kind}"


def _check(column: Column, value: Scalar) -> None:
    # INVARIANT: a value is of its column's type, or nothing is rendered: a cast would make one thing equal another.
    match column.kind:
        case "text" | "set":
            fits = isinstance(value, str)
        case "given" | "past":
            fits = isinstance(value, bool)
        case "number":
            fits = isinstance(value, int | Decimal) and not isinstance(value, bool)
    if not fits:
        raise ValueError(f"`{column.name}` is a {column.kind}: a {type(value).__name__} cannot be compared with it")


def _literal(piece: str) -> str:
    """The piece as a pattern that matches it alone."""
    return piece.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
