from __future__ import annotations

import signal

import cedarpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.policy import guard
from gateway.policy.guard import GuardError, check, check_schema, parse
from tests.policy import builders as b

HEAD = "permit (principal, action, resource) when { "
CRASHES = {
    "brackets": 'HEAD + "(" * 3000 + "true" + ")" * 3000 + " };"',
    "sets": 'HEAD + "[" * 3000 + "true" + "]" * 3000 + " == 1 };"',
    "branches": 'HEAD + "if true then true else " * 3000 + "true };"',
    "a chain": 'HEAD + "true && " * 6000 + "true };"',
    "brackets in a string that ends": r'''HEAD + '"\\"" == ' + "(" * 3000 + "true" + ")" * 3000 + " };"''',
    "brackets after a comment": 'HEAD + "// ( \\r" + "(" * 3000 + "true" + ")" * 3000 + " };"',
}

GUARDED = """
from gateway.policy import guard
HEAD = {head!r}
try:
    guard.parse({text})
except guard.GuardError as error:
    print(error)
"""


@pytest.mark.parametrize("text", CRASHES.values(), ids=CRASHES.keys())
def test_a_text_that_kills_the_parser_is_refused_before_it(text: str) -> None:
    bare = b.in_a_process(f"import cedarpy\nHEAD = {HEAD!r}\ncedarpy.policies_to_pst({text})")
    assert bare.returncode == -signal.SIGSEGV

    done = b.in_a_process(GUARDED.format(head=HEAD, text=text))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout in {"nested deeper than 50\n", "more than 600 operators\n"}


@pytest.mark.parametrize(
    "text",
    [
        "(" * 51,
        "[" * 30 + "{" * 21,
        "!" * 51,
        "-" * 51,
        "(" * 40 + "!" * 11,
        "if a then b else " * 51,
        "(if a then " * 26,
        ")" * 100 + "(" * 51,
    ],
)
def test_nesting_past_the_limit_is_refused(text: str) -> None:
    with pytest.raises(GuardError, match="nested deeper than 50"):
        check(text)


@pytest.mark.parametrize(
    "text", ["(" * 50, "()" * 100, "!" * 50, "(if a then b else c)" * 100, '"' + "(" * 100 + '"', "//" + "(" * 100]
)
def test_nesting_within_the_limit_passes(text: str) -> None:
    check(text)


@pytest.mark.parametrize("operator", sorted(guard.OPERATORS - {"[", "!", "-", "if"}))
def test_operators_are_counted(operator: str) -> None:
    check(f" a {operator}" * 600)
    with pytest.raises(GuardError, match="more than 600 operators"):
        check(f" a {operator}" * 601)


def test_a_text_over_the_size_or_outside_unicode_is_refused() -> None:
    check("a" * guard.MAX_BYTES)
    with pytest.raises(GuardError, match="longer than 2097152 bytes"):
        check("é" * (guard.MAX_BYTES // 2) + "a")
    with pytest.raises(GuardError, match="not unicode text"):
        check("\ud800")


def test_a_string_past_the_limit_is_refused() -> None:
    check(HEAD + f'"{"a" * 1024}" == context.text }};')
    with pytest.raises(GuardError, match="a string longer than 1024 characters"):
        check(HEAD + f'"{"a" * 1025}" == context.text }};')


@pytest.mark.parametrize("star", ["*", r"\x2a", r"\x2A", r"\u{2a}", r"\u{00_2A}"])
def test_wildcards_are_counted_however_they_are_written(star: str) -> None:
    matching = cedarpy.PolicySet.from_str(HEAD + f'"abc" like "a{star}" }};')
    asked = {"principal": 'A::"a"', "action": 'A::"a"', "resource": 'A::"a"', "context": {}}
    assert cedarpy.is_authorized(asked, matching, []).allowed

    check(HEAD + f'context.text like "{star * 8}" }};')
    with pytest.raises(GuardError, match="a pattern with more than 8 wildcards"):
        check(HEAD + f'context.text like // "\n "{star * 9}" }};')


def test_stars_that_stand_for_themselves_are_not_counted() -> None:
    check(HEAD + r'context.text like "' + r"\*\\" * 20 + '" && "' + "*" * 20 + '" == context.text };')


@pytest.mark.parametrize("lists", [1, 4])
def test_the_elements_of_all_lists_of_a_policy_are_counted(lists: int) -> None:
    def text(commas: int) -> str:
        one = f"[{'1,' * (commas // lists)}1].contains(context.number)"
        return HEAD + " && ".join([one] * lists) + " };"

    check(text(996))
    with pytest.raises(GuardError, match="more than 1000 elements in lists"):
        check(text(1000))
    check(HEAD + f"f({'1,' * 2000}1) && {{{'a: 1,' * 2000}}} }};")


def test_a_schema_that_nests_too_deep_is_refused() -> None:
    check_schema("entity A = { x: " + "Set<" * 49 + "Long" + ">" * 49 + " };")
    with pytest.raises(GuardError, match="nested deeper than 50"):
        check_schema("entity A = { x: " + "Set<" * 50 + "Long" + ">" * 50 + " };")


def test_the_gate_lets_one_static_policy_in_and_nothing_else() -> None:
    assert parse("permit (principal, action, resource);").effect == "permit"
    with pytest.raises(GuardError, match="a template"):
        parse("permit (principal == ?principal, action, resource);")
    with pytest.raises(ValueError, match="Unknown"):
        parse('permit (principal, action, resource) when { unknown("x") };')
    with pytest.raises(ValueError, match="unexpected"):
        parse("permit (")


PARTS = st.sampled_from(
    ['"', "\\", "\n", "\r", "//", "(", ")", "{", "}", "[", "!", "-", "if ", "then ", "else ", "a", "&&", "||", ";", ".", "é"]
)


@settings(deadline=None)
@given(st.lists(st.tuples(PARTS, st.integers(1, 40)), max_size=40))
def test_whatever_passes_the_guard_can_be_parsed(parts: list[tuple[str, int]]) -> None:
    text = HEAD + "".join(part * times for part, times in parts)
    try:
        check(text)
    except GuardError:
        return
    try:
        cedarpy.policies_to_pst(text)  # alive, whatever it answers
    except ValueError:
        pass
