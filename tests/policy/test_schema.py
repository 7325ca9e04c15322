from __future__ import annotations

import json
from collections.abc import Iterator

import cedarpy
import pytest

from gateway.model.entity import EntityUid
from gateway.policy import partition, schema, vocabulary
from gateway.policy.bundle import Bundle
from gateway.policy.finding import PolicyError
from gateway.policy.schema import (
    DEEPEST,
    NOTHING,
    ActionOf,
    ActionShape,
    EntityShape,
    Field,
    Primitive,
    Question,
    RecordOf,
    Reference,
    Schema,
    SetOf,
    Type,
    questions,
)
from gateway.policy.text import tokens
from gateway.policy.vocabulary import Kind
from gateway.policy.words import SchemaRefused
from tests.policy import builders as b

LONG, STRING = Primitive("Long"), Primitive("String")
#: One of everything that Cedar writes.
WHOLE = """
type Name = { first: String };
@doc("an organisation; of \\"us\\"")
entity Org;
entity Colour enum ["red", "gr\\"een"];
entity User in [Org, App::Team] = { name: Name, seen?: datetime, "odd name": Bool, nums?: Set<Long> } tags Set<String>;
action "all";
action "read", "list" in ["all", App::Action::"some"] appliesTo { principal: [User], resource: [Org, App::Team] };
@shop
namespace App {
  type Price = decimal;
  entity Team = { @in("cents") price: Price, of: User, did: Set<Action> };
  action "some";
  action "buy" appliesTo { principal: Team, resource: Team, context: { from?: __cedar::ipaddr, for: { days: duration } } };
}
"""


def said(text: str) -> Schema:
    return schema.read(cedarpy.Schema.from_str(text))


def test_everything_of_a_schema_is_read() -> None:
    read = said(WHOLE)
    assert read.entities == {
        "Org": EntityShape((), NOTHING, None),
        "Colour": EntityShape((), NOTHING, None, ("red", 'gr"een')),
        "User": EntityShape(
            ("Org", "App::Team"),
            RecordOf(
                {
                    "name": Field(RecordOf({"first": Field(STRING, False)}), False),
                    "seen": Field(Primitive("datetime"), True),
                    "odd name": Field(Primitive("Bool"), False),
                    "nums": Field(SetOf(LONG), True),
                }
            ),
            SetOf(STRING),
        ),
        "App::Team": EntityShape(
            (),
            RecordOf(
                {
                    "price": Field(Primitive("decimal"), False),
                    "of": Field(Reference("User"), False),
                    "did": Field(SetOf(ActionOf("App::Action")), False),
                }
            ),
            None,
        ),
    }
    context = RecordOf(
        {
            "from": Field(Primitive("ipaddr"), True),
            "for": Field(RecordOf({"days": Field(Primitive("duration"), False)}), False),
        }
    )
    about = ActionShape(("User",), ("Org", "App::Team"), NOTHING)
    assert read.actions == {"read": about, "list": about, "buy": ActionShape(("App::Team",), ("App::Team",), context)}
    every, some, buy = EntityUid("Action", "all"), EntityUid("App::Action", "some"), EntityUid("App::Action", "buy")
    asked = [EntityUid("Action", id_) for id_ in ("read", "list")]
    assert read.groups == {**{uid: {uid, every, some} for uid in asked}, every: {every}, some: {some}, buy: {buy}}
    assert read.above("User") == {"Org", "App::Team"}
    assert read.above("Action") == frozenset()
    assert read.enumerated
    assert list(questions(read))[:2] == [Question("buy", "App::Team", "App::Team"), Question("list", "User", "Org")]


def test_groups_of_groups_are_all_that_an_action_is_in() -> None:
    read = said('action "a" in ["b"]; action "b" in ["c"]; action "c";')
    a, b_, c = (EntityUid("Action", id_) for id_ in "abc")
    assert read.actions == {}
    assert read.groups == {a: {a, b_, c}, b_: {b_, c}, c: {c}}


def test_what_only_looks_like_an_enumerated_type_is_none() -> None:
    assert not said('@doc("entity A enum [") entity enum = { enum: Set<enum> };').enumerated
    assert said('namespace N { entity A enum ["a"]; }').enumerated


@pytest.mark.parametrize(
    ("text", "type_", "expected"),
    [
        ("entity Long; entity A = { a: Long };", "A", Reference("Long")),
        ("entity Long; entity A = { a: __cedar::Long };", "A", LONG),
        ("entity Bool; entity A = { a: Set<Bool> };", "A", SetOf(Reference("Bool"))),
        ("entity Set; entity A = { a: Set<Set> };", "A", SetOf(Reference("Set"))),
        ("entity Set; entity A = { a: Set };", "A", Reference("Set")),
        ("type decimal = String; entity A = { a: decimal };", "A", STRING),
        ("entity X; type X = Long; entity A = { a: X };", "A", LONG),
        ("type X = Y; entity Y; entity A = { a: X };", "A", Reference("Y")),
        ("namespace N { entity Long; entity A = { a: Long }; }", "N::A", Reference("N::Long")),
        ("namespace N { entity Long; } entity A = { a: Long };", "A", LONG),
        ("namespace N { entity A = { a: Long }; } entity Long;", "N::A", Reference("Long")),
        ("namespace N { entity A = { a: X }; } type X = Long;", "N::A", LONG),
        (
            "namespace N { type X = { y: Y }; entity Y; } entity A = { a: N::X };",
            "A",
            RecordOf({"y": Field(Reference("N::Y"), False)}),
        ),
        (
            "namespace N { entity A = { a: M::Y }; } namespace N::M { entity Y; } namespace M { entity Y; }",
            "N::A",
            Reference("M::Y"),
        ),
        ('namespace N { entity A = { a: Action }; action "z"; } action "y";', "N::A", ActionOf("N::Action")),
        ('namespace N { entity A = { a: Action }; } action "y";', "N::A", ActionOf("Action")),
        ("type Action = Long; entity A = { a: Action };", "A", LONG),
        ("entity type; entity A = { a: type };", "A", Reference("type")),
    ],
)
def test_a_name_means_what_it_means_to_cedar(text: str, type_: str, expected: Type) -> None:
    handle = cedarpy.Schema.from_str(text)
    assert schema.read(handle).entities[type_].attributes == RecordOf({"a": Field(expected, False)})
    assert takes(handle, type_, value_of(expected))
    assert not takes(handle, type_, value_of(Reference("Elsewhere")))


def value_of(type_: Type) -> object:
    """A value of a type, in Cedar's JSON; the actions of the schemas above are called by letters."""
    match type_:
        case Primitive("Long"):
            return 1
        case Primitive():
            return "a"
        case Reference(name):
            return {"__entity": {"type": name, "id": "e"}}
        case ActionOf(name):
            return {"__entity": {"type": name, "id": "z" if "::" in name else "y"}}
        case SetOf(item):
            return [value_of(item)]
        case RecordOf(fields):
            return {name: value_of(known.type) for name, known in fields.items()}


def takes(handle: cedarpy.Schema, type_: str, value: object) -> bool:
    try:
        cedarpy.Entities.from_json_str(
            json.dumps([{"uid": {"type": type_, "id": "x"}, "attrs": {"a": value}, "parents": []}]), handle
        )
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    "name", ["", "a b", 'a"b', "a\\b", "it's", "a\nb\tc\rd", "nul\0", "bell\7", "é", "e\u0301", "\u200b", "entity", "Set"]
)
def test_a_name_in_quotes_is_read_as_it_is_meant(name: str) -> None:
    quoted = json.dumps(name).replace("\\u0000", "\\0").replace("\\u0007", "\\u{7}").replace("\\u00e9", "é")
    quoted = quoted.replace("\\u0301", "\u0301").replace("\\u200b", "\u200b")
    text = f"entity A = {{ {quoted}?: Long }}; action {quoted} appliesTo {{ principal: A, resource: A }};"
    read = said(text)
    assert (list(read.entities["A"].attributes.fields), list(read.actions)) == ([name], [name])
    assert [uid.id for uid in read.groups] == [name]


def words_of(handle: cedarpy.Schema) -> list[str]:
    return [token[0] for token in tokens(str(handle))]


def test_a_word_that_is_not_known_is_refused_wherever_it_stands() -> None:
    handle = cedarpy.Schema.from_str(WHOLE)
    words, groups = words_of(handle), partition.groups(handle)
    assert schema.read_text(" ".join(words), groups) == said(WHOLE)
    for at in range(len(words)):
        for changed in ([*words[:at], "%", *words[at + 1 :]], [*words[:at], "%", *words[at:]]):
            with pytest.raises(SchemaRefused):
                schema.read_text(" ".join(changed), groups)


def changes(words: list[str]) -> Iterator[str]:
    """Without each word, with each word twice, and up to each word."""
    for at in range(len(words)):
        yield " ".join((*words[:at], *words[at + 1 :]))
        yield " ".join((*words[:at], words[at], *words[at:]))
        yield " ".join(words[:at])


def test_what_cedar_does_not_take_is_refused_and_all_else_is_read_as_cedar_means_it() -> None:
    handle = cedarpy.Schema.from_str(WHOLE)
    groups, read = partition.groups(handle), 0
    for text in changes(words_of(handle)):
        try:
            found = schema.read_text(text, groups)
        except SchemaRefused:
            continue
        again = schema.read(cedarpy.Schema.from_str(text))
        assert (found.entities, found.actions) == (again.entities, again.actions), text
        read += 1
    assert read > 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("entity A = { a: Longer };", "entity `A`: a type that is known is expected after `a : Longer`, not `}`"),
        ("namespace N { entity A in [B]; }", "entity `N::A`: an entity type that is known is expected after `in [ B`, not `]`"),
        ("entity A extends B;", "entity `A`: `;` is expected after ``, not `extends`"),
        ("type T = { a: Set<Long };", "type `T`: `>` is expected after `Set < Long`, not `}`"),
        ('action "x" appliesTo { principal: [] };', "action `x`: a name is expected after `principal : [`, not `]`"),
        ('action "x" in ["y"];', 'action `x`: a name is expected after `in [`, not `"y"`'),
        (
            'type T = Long; entity A; action "x" appliesTo { principal: [A], resource: [A], context: T };',
            "action `x`: a record is expected after `context : T`, not `}`",
        ),
        ("instance A;", "schema: a declaration is expected after ``, not `instance`"),
        ("namespace N { namespace M { } }", "schema: a declaration is expected after `namespace N {`, not `namespace`"),
        ("namespace N { entity A;", "schema: `}` is expected after `entity A ;`, not ``"),
        ("entity A", "schema: `;` is expected after `entity A`, not ``"),
        ('@a("\\q") entity A;', 'schema: a character other than `\\q` is expected after `a ( "\\q"`, not `)`'),
    ],
)
def test_a_refusal_says_where(text: str, message: str) -> None:
    with pytest.raises(SchemaRefused) as refused:
        schema.read_text(text, {})
    assert str(refused.value) == message


def test_types_within_types_without_end_are_refused() -> None:
    chain = "".join(f"type T{n:04} = T{n + 1:04};" for n in range(2_000))
    with pytest.raises(SchemaRefused, match=f"at most {DEEPEST} types within types"):
        said(f"{chain} type T2000 = Long;")


def test_a_schema_that_cedar_does_not_write_is_refused_with_the_bundle() -> None:
    text = "namespace N { entity X; type X = Long; }"
    with pytest.raises(PolicyError) as refused:
        Bundle.from_text(f"{b.SCHEMA} {text}", {"store.cedar": b.PERMIT}, house_rules=False)
    [finding] = refused.value.findings
    assert str(finding).startswith("schema.cedarschema:0: schema: Cedar does not write it: ")
    assert "N::X" in finding.message


def test_a_bundle_says_what_its_schema_says() -> None:
    bundle = Bundle.from_text(b.SCHEMA, {"store.cedar": b.PERMIT}, house_rules=False)
    assert bundle.types == bundle.vocabulary.types == said(b.SCHEMA)


def test_the_vocabulary_is_what_a_query_can_hold() -> None:
    types = said(
        WHOLE + "entity Doc = { nick: Nick, by: User, team: App::Team, at: datetime, sets: Set<Set<Long>> }; type Nick = String;"
    )
    words = vocabulary.of(types)
    assert words.entities.keys() == {"Org", "Colour", "User", "Doc"}
    assert words.entities["Doc"].attributes == {
        "nick": Kind("String"),
        "by": Kind("User", entity=True),
        "team": Kind(""),
        "at": Kind(""),
        "sets": Kind("", many=True),
    }
    assert words.entities["User"].attributes["nums"] == Kind("Long", many=True, optional=True)
    assert words.principals == {"read": {"User"}, "list": {"User"}}
    assert words.resources["read"] == {"Org", "App::Team"}
