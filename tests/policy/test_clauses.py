from __future__ import annotations

import pytest
from cedarpy import pst

from gateway.policy.clauses import Clause, clauses, conjuncts, expression
from gateway.policy.source import PolicyInfo, read


def info(text: str) -> PolicyInfo:
    [policy], [] = read("s.cedar", text)
    return policy.info


def of(condition: str) -> tuple[str, ...]:
    return conjuncts(Clause("p", 1, "when", 1, condition))


def test_each_clause_is_read_with_its_line() -> None:
    text = """
@id("p") @reason("Not when { nor unless {")
permit (principal, action, resource)
when { principal.active && // a word
  { a: 1 }.a == 1 }
unless
{
  context.n > 2
};"""
    assert clauses(info(text)) == (
        Clause("p", 1, "when", 4, "principal.active && { a : 1 }.a == 1"),
        Clause("p", 2, "unless", 6, "context.n > 2"),
    )


def test_a_policy_without_clauses_has_none() -> None:
    assert clauses(info('@id("p") permit (principal, action, resource);')) == ()


def test_a_clause_is_shown_as_it_is_written() -> None:
    [clause] = clauses(info('@id("p") permit (principal, action, resource) unless { principal  in\n Group::"g" };'))
    assert str(clause) == 'unless { principal in Group::"g" }'


@pytest.mark.parametrize(
    ("condition", "terms"),
    [
        ("principal.active", ("principal.active",)),
        ("a.b && a.c && !a.d", ("a.b", "a.c", "!a.d")),
        ("((a.b) && (a.c && a.d))", ("a.b", "a.c", "a.d")),
        ("(a.b || a.c) && a.d", ("a.b || a.c", "a.d")),
        ("a.b && a.c || a.d", ("a.b && a.c || a.d",)),
        ("if a.b && a.c then a.d else a.e && a.f", ("if a.b && a.c then a.d else a.e && a.f",)),
        ("(a.b) == (a.c)", ("(a.b) == (a.c)",)),
        ("!(a.b && a.c)", ("!(a.b && a.c)",)),
        ('[ "x", "y" ] . contains ( a.b ) && a.t["k"] in [ A::"&&" ]', ('["x", "y"].contains(a.b)', 'a.t["k"] in [A::"&&"]')),
    ],
)
def test_a_chain_is_split_into_what_it_joins(condition: str, terms: tuple[str, ...]) -> None:
    assert of(condition) == terms


def test_an_unless_is_one_negation() -> None:
    assert conjuncts(Clause("p", 1, "unless", 1, "a.b && a.c")) == ("!(a.b && a.c)",)


def test_a_text_is_read_as_an_expression() -> None:
    assert expression("principal.active") == pst.GetAttr(pst.Var("principal"), "active")
