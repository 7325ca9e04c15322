from __future__ import annotations

from pathlib import Path

import cedarpy
import pytest

from gateway.model.decision import DenyKind
from gateway.policy import partition
from gateway.policy.bundle import Bundle
from gateway.policy.finding import Finding, PolicyError
from gateway.policy.guard import MAX_POLICIES
from gateway.policy.source import PolicyInfo
from tests.policy import builders as b

READ = b.policy("read", 'permit (principal, action == Action::"read", resource) when { resource.owner == principal };')
STOP = b.policy("guardrails/stop", "forbid (principal, action, resource) unless { principal.active };")
FILES = {"read.cedar": READ, "guardrails/stop.cedar": STOP}


def findings(files: dict[str, str], *, schema: str = b.SCHEMA, house_rules: bool = True) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        Bundle.from_text(schema, files, house_rules=house_rules)
    assert str(caught.value) == "\n".join(map(str, caught.value.findings))
    return [str(finding) for finding in caught.value.findings]


def written(directory: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    return directory


def test_a_directory_loads_as_its_texts_do(tmp_path: Path) -> None:
    (tmp_path / "schema.cedarschema").write_text(b.SCHEMA)
    loaded = Bundle.load(tmp_path / "schema.cedarschema", written(tmp_path / "policies", FILES))
    assert loaded == Bundle.from_text(b.SCHEMA, FILES)
    assert loaded.actions == {"read", "edit", "drop", "list"}


def test_a_policy_is_described_by_its_annotations_and_its_place() -> None:
    notes = '@id("a/b") @reason("No.") @reason_code("no") @precedence("7") @owner("sec")'
    text = f"// why\n\n{notes}\nforbid (principal, action, resource);\n"
    [info] = Bundle.from_text(b.SCHEMA, {"a/b.cedar": text}, house_rules=False).policies.values()
    assert info == PolicyInfo(
        id="a/b",
        effect="forbid",
        reason="No.",
        reason_code="no",
        precedence=7,
        file="a/b.cedar",
        line=3,
        text=text.strip()[8:],
        annotations={"id": "a/b", "owner": "sec", "precedence": "7", "reason": "No.", "reason_code": "no"},
    )


def test_the_hash_is_of_the_schema_and_of_each_policy_and_not_of_their_order() -> None:
    bundle = Bundle.from_text(b.SCHEMA, FILES)
    assert Bundle.from_text(b.SCHEMA, dict(reversed(FILES.items()))).hash == bundle.hash
    assert Bundle.from_text(b.SCHEMA, {"all.cedar": STOP + READ}, house_rules=False).hash == bundle.hash
    assert Bundle.from_text(b.SCHEMA + "entity More;", FILES).hash != bundle.hash
    changed = FILES | {"read.cedar": READ.replace("owner ==", "owner !=")}
    assert Bundle.from_text(b.SCHEMA, changed).hash != bundle.hash
    assert len(bundle.hash) == 64


def test_cedars_own_ids_are_ours_so_that_positions_say_nothing() -> None:
    positional = cedarpy.PolicySet.from_str(READ + STOP)
    assert set(positional.to_pst().static_policies) == {"policy0", "policy1"}

    bundle = Bundle.from_text(b.SCHEMA, FILES)
    whole = partition.whole(bundle.trees, bundle.members["read"])
    assert set(whole.to_pst().static_policies) == {"read", "guardrails/stop"}


def test_an_id_that_stands_twice_is_refused_though_cedarpy_takes_it() -> None:
    assert len(cedarpy.PolicySet.from_str(READ + READ)) == 2

    assert findings({"read.cedar": READ + "\n" + READ}) == ["read.cedar:10: `read`: is also the id of read.cedar:1"]


def test_a_policy_is_in_the_partition_of_every_action_it_could_match() -> None:
    scopes = {
        "any": "action",
        "one": 'action == Action::"edit"',
        "listed": 'action in [Action::"read", Action::"edit"]',
        "group": 'action in Action::"write"',
        "other": 'action in Action::"manage"',
    }
    store = "\n".join(f'@id("{id_}") forbid (principal, {scope}, resource);' for id_, scope in scopes.items())
    bundle = Bundle.from_text(b.SCHEMA, {"s.cedar": store}, house_rules=False)
    parts = {name: set(ids) for name, ids in bundle.members.items()}
    assert parts["read"] == {"any", "listed"}
    assert parts["edit"] == {"any", "one", "listed", "group"}
    assert parts["drop"] == {"any", "group", "other"}
    assert parts["list"] == {"any"}


def test_groups_of_groups_and_of_other_namespaces_reach_their_actions() -> None:
    schema = """
    namespace N { entity U; action "q" in [G::Action::"z"] appliesTo { principal: [U], resource: [U] }; }
    namespace G { action "z" in ["y"]; action "y"; }
    """
    store = '@id("x") permit (principal, action in G::Action::"y", resource);'
    bundle = Bundle.from_text(schema, {"s.cedar": store}, house_rules=False)
    assert (bundle.actions, bundle.members["q"]) == ({"q"}, ("x",))


def test_two_actions_of_one_name_are_refused() -> None:
    schema = 'namespace N { action "q"; } namespace G { action "q"; }'
    assert findings({"s.cedar": b.PERMIT}, schema=schema, house_rules=False) == [
        "s.cedar:1: `all`: unable to find an applicable action given the policy scope constraints"
    ]
    schema = "entity U; " + " ".join(
        f'namespace {n} {{ action "q" appliesTo {{ principal: [U], resource: [U] }}; }}' for n in ("N", "G")
    )
    assert findings({"s.cedar": b.PERMIT}, schema=schema, house_rules=False) == [
        "schema.cedarschema:0: two actions are called `q`"
    ]


def test_a_schema_that_cannot_be_read_or_parsed_is_refused(tmp_path: Path) -> None:
    assert "error parsing schema" in findings(FILES, schema="entity")[0]
    assert findings(FILES, schema="entity A = { x: " + "Set<" * 60) == ["schema.cedarschema:0: nested deeper than 50"]
    (tmp_path / "bad").write_bytes(b"\xff")
    for name, problem in (("none", "FileNotFoundError"), ("bad", "UnicodeDecodeError")):
        with pytest.raises(PolicyError, match=f"cannot be read: {problem}"):
            Bundle.load(tmp_path / name, tmp_path)


def test_everything_that_is_wrong_is_said_at_once_with_its_place() -> None:
    files = FILES | {"edit.cedar": "permit (principal, action, resource);\npermit (", "list.cedar": ""}
    found = findings(files)
    assert found[0].startswith("edit.cedar:2: unexpected")
    assert found[1:] == ["list.cedar:0: holds no policy"]


def test_an_ill_typed_policy_is_refused_at_its_line() -> None:
    wrong = b.policy("read/more", 'permit (principal, action == Action::"read", resource) when { resource.gone };')
    [finding] = findings(FILES | {"read.cedar": READ + "\n" + wrong})
    assert finding == "read.cedar:10: `read/more`: attribute `gone` on entity type `Doc` not found"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('@id("a`b") permit (principal, action, resource);', "`@id` has a backtick"),
        ('@id("a") @precedence("first") permit (principal, action, resource);', "`@precedence` is not a whole number"),
        ("permit (principal == ?principal, action, resource);", "a template"),
        ("x" * (2 * 1024 * 1024 + 1), "longer than 2097152 bytes"),
    ],
)
def test_what_would_spoil_an_answer_is_refused_in_any_store(text: str, message: str) -> None:
    assert message in findings({"s.cedar": text}, house_rules=False)[0]


def test_too_many_policies_are_refused() -> None:
    assert ":0: more than 5000 policies" in findings(
        {"s.cedar": "permit (principal, action, resource);" * (MAX_POLICIES + 1)}, house_rules=False
    )


def test_without_house_rules_a_policy_needs_no_id_and_is_called_by_its_file() -> None:
    store = "permit (principal, action, resource);\nforbid (principal, action, resource);"
    assert set(Bundle.from_text(b.SCHEMA, {"a/s.cedar": store}, house_rules=False).policies) == {"a/s#1", "a/s#2"}


@pytest.mark.parametrize(
    ("file", "text", "finding"),
    [
        ("read.cedar", READ.replace("\n", " ", 1), "read.cedar:1: is not formatted: `peergate policy fmt --dir` does it"),
        ("read.cedar", READ.replace('@id("read")\n', ""), "read.cedar:1: `read#1`: has no `@id`"),
        (
            "read.cedar",
            READ.replace("read", "reader"),
            "read.cedar:1: `reader`: `@id` is not `read` and does not start with `read/`",
        ),
        ("read.cedar", READ.replace("Because.", " "), "read.cedar:1: `read`: has no `@reason`"),
        (
            "guardrails/stop.cedar",
            STOP.replace("forbid", "permit"),
            "guardrails/stop.cedar:1: `guardrails/stop`: a guardrail only forbids",
        ),
        (
            "read.cedar",
            b.policy("read", 'permit (principal, action in [Action::"read"], resource);'),
            'read.cedar:1: `read`: is not of `action == Action::"read"`, which its file is for',
        ),
        (
            "read.cedar",
            READ + "\n" + b.policy("read/2", 'permit (principal, action == Action::"edit", resource);'),
            'read.cedar:10: `read/2`: is not of `action == Action::"read"`, which its file is for',
        ),
        (
            "doc/extra.cedar",
            b.policy("doc/extra", 'permit (principal, action == Action::"drop", resource);'),
            'doc/extra.cedar:1: `doc/extra`: is not of `action == Action::"doc.extra"`, which its file is for',
        ),
    ],
)
def test_a_house_rule_that_is_broken_is_a_finding(file: str, text: str, finding: str) -> None:
    assert finding in findings(FILES | {file: text})


def test_a_file_may_hold_several_policies_of_its_action() -> None:
    more = b.policy("read/more", 'forbid (principal, action == Action::"read", resource) when { resource.level > 5 };')
    assert set(Bundle.from_text(b.SCHEMA, {"read.cedar": READ + "\n" + more}).policies) == {"read", "read/more"}


def test_a_bundle_without_one_policy_is_the_rest() -> None:
    bundle = Bundle.from_text(b.SCHEMA, FILES)
    assert bundle.without("guardrails/stop") == Bundle.from_text(b.SCHEMA, {"read.cedar": READ})
    assert bundle.without("read", "guardrails/stop").policies == {}
    assert bundle.without() == bundle
    with pytest.raises(KeyError):
        bundle.without("gone")


def test_a_bundle_without_policies_knows_which_of_the_rest_read_the_context() -> None:
    one, two = (b.policy(name, "permit (principal, action, resource) when { context has n };") for name in ("one", "two"))
    bundle = Bundle.from_text(b.SCHEMA, {"read.cedar": READ, "one.cedar": one, "two.cedar": two}, house_rules=False)
    assert [set(bundle.without(*ids).contextual) for ids in ((), ("one",), ("one", "two"), ("read",))] == [
        {"one", "two"}, {"two"}, set(), {"one", "two"},
    ]  # fmt: skip


def test_a_bundle_without_its_last_policy_permits_nothing() -> None:
    engine = b.an_engine(b.PERMIT)
    empty = type(engine)(engine.bundle.without("all"), salt=b"")
    assert empty.decide(b.a_query(), empty.slice(b.an_org(), b.a_user(), b.a_doc())).deny_kind is DenyKind.NOT_PERMITTED


def test_findings_read_as_one_line_each() -> None:
    assert str(Finding("a.cedar", 3, "a", "is wrong")) == "a.cedar:3: `a`: is wrong"
