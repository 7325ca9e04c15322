"""`peergate policy`: each command on a small folder, with its exit code, its lines and its JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import Command
from tests.policy.folders import CASES, CAST, SECRET, a_case, a_folder, written
from tests.world import ROOT

READ_FILE = "policies/doc/read.cedar"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that commands are run in."""
    made = a_folder(tmp_path / "folder")
    monkeypatch.chdir(made)
    return made


def test_a_folder_that_is_well_is_valid_without_a_word(folder: Path, command: Command) -> None:
    ended = command("policy", "validate", "--dir", ".")
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    assert command("policy", "validate", "--dir", ".", "--json").json == {"findings": []}


def test_a_finding_is_one_line_with_its_place_id_and_message(folder: Path, command: Command) -> None:
    text = (folder / READ_FILE).read_text()
    written(folder, "doc/read.cedar", text.replace("principal.active", "principal.gone").replace("@reason", "@why"))
    ended = command("policy", "validate", "--dir", ".")
    assert (ended.code, ended.out) == (1, f"{READ_FILE}:1 doc/read/active has no `@reason`\n")
    ended = command("policy", "validate", "--dir", ".", "--no-house-rules")
    assert ended.code == 1
    assert ended.out.startswith(f"{READ_FILE}:1 doc/read/active ")
    assert "`gone`" in ended.out


def test_a_policy_that_changes_nothing_is_a_finding(folder: Path, command: Command) -> None:
    text = (folder / READ_FILE).read_text()
    written(folder, "doc/read.cedar", text + "\n" + text.replace("doc/read/active", "doc/read/again"))
    message = "changes nothing: `doc/read/active` applies wherever it does"
    ended = command("policy", "validate", "--dir", ".", "--json")
    assert (ended.code, ended.json) == (
        1,
        {"findings": [{"file": READ_FILE, "line": 10, "id": "doc/read/again", "message": message}]},
    )


def test_what_is_wrong_with_the_schema_or_a_file_of_cases_is_a_finding(folder: Path, command: Command) -> None:
    written(folder, "doc/read_test.json", "[]")
    ended = command("policy", "validate", "--dir", ".")
    assert (ended.code, ended.out) == (1, "policies/doc/read_test.json:1 is not a list of cases\n")
    (folder / "schema.cedarschema").write_text("entity")
    assert command("policy", "validate", "--dir", ".").out.startswith("schema.cedarschema:1 ")


@pytest.mark.parametrize("verb", ["validate", "test", "fmt", "index", "matrix", "mutate"])
def test_a_directory_that_is_no_folder_is_bad_usage(verb: str, tmp_path: Path, command: Command) -> None:
    missing = command("policy", verb, "--dir", tmp_path / "gone")
    bare = command("policy", verb, "--dir", tmp_path)
    assert (missing.code, bare.code) == (2, 2)
    assert missing.err.endswith("gone: is not a directory\n")
    assert "has no `schema.cedarschema`" in bare.err


def test_every_case_is_asked(folder: Path, command: Command) -> None:
    ended = command("policy", "test", "--dir", ".")
    assert (ended.code, ended.out) == (0, "4 of 4 cases hold\n")


def test_a_case_that_does_not_hold_says_where_it_stands(folder: Path, command: Command) -> None:
    first, second = CASES["doc/read_test.json"]
    written(folder, "doc/read_test.json", json.dumps([first, second | {"decision": "allow"}], indent=1))
    ended = command("policy", "test", "--dir", ".", "-k", "doc.read and another", "--json")
    assert (ended.code, ended.json["passed"], ended.json["failed"]) == (1, 0, 1)
    [case] = ended.json["cases"]
    assert case == {
        "name": "doc.read: another does not",
        "file": "doc/read_test.json",
        "number": 2,
        "control": None,
        "passed": False,
        "failures": ["is deny (not_permitted), not allow"],
        "decision": "deny",
        "deny_kind": "not_permitted",
        "policies": [],
        "errors": [],
    }
    line = next(n for n, text in enumerate((folder / "policies/doc/read_test.json").read_text().split("\n"), 1) if text == " },")
    assert command("policy", "test", "--dir", ".").out == (
        f"policies/doc/read_test.json:{line + 1} doc.read: another does not\n"
        "    is deny (not_permitted), not allow\n3 of 4 cases hold\n"
    )


def test_nothing_to_test_is_not_a_success(folder: Path, command: Command) -> None:
    ended = command("policy", "test", "--dir", ".", "-k", "nonsense")
    assert (ended.code, ended.err) == (1, "peergate: no case matches `-k`: nothing was tested\n")
    assert command("policy", "test", "--dir", ".", "-k", "and").code == 2


@pytest.mark.parametrize("verb", ["test", "mutate", "matrix"])
def test_without_any_case_there_is_nothing_to_ask(verb: str, folder: Path, command: Command) -> None:
    for file in folder.rglob("*_test.json"):
        file.unlink()
    ended = command("policy", verb, "--dir", ".")
    assert (ended.code, ended.out, ended.err) == (1, "", "peergate: no case is there: nothing was tested\n")


def test_results_are_written_as_junit(folder: Path, command: Command) -> None:
    assert command("policy", "test", "--dir", ".", "--junit", "out.xml").code == 0
    root = ElementTree.fromstring((folder / "out.xml").read_text())
    assert root.attrib == {"name": "policies", "tests": "4", "failures": "0", "errors": "0"}
    assert [case.get("name") for case in root.iter("testcase")] == [c["name"] for cases in CASES.values() for c in cases]


def test_coverage_is_shown_and_can_be_too_little(folder: Path, command: Command) -> None:
    ended = command("policy", "test", "--dir", ".", "--coverage")
    assert ended.code == 0
    assert ended.out.splitlines()[1:3] == ["  fired         3 of 3", "  decisive      3 of 3"]
    assert "policies/doc/write.cedar:8 doc/write/active its `when` is never seen false" in ended.out
    short = command("policy", "test", "--dir", ".", "--fail-under", "100", "--json")
    assert (short.code, short.json["coverage"]["clauses"]["covered"]) == (1, 5)
    assert command("policy", "test", "--dir", ".", "--fail-under", "50").code == 0
    assert command("policy", "test", "--dir", ".", "--fail-under", "101").code == 2


def test_mistakes_that_no_case_notices_are_printed(folder: Path, command: Command) -> None:
    ended = command("policy", "mutate", "--dir", ".")
    asked = command("policy", "mutate", "--dir", ".", "--fail-under", "100", "--json")
    assert (ended.code, asked.code) == (0, 1)
    assert asked.json["noticed"] + len(asked.json["survivors"]) == asked.json["total"]
    assert f"{READ_FILE}:1 doc/read/active~" in ended.out
    assert ended.out.endswith(
        f"{asked.json['noticed']} of {asked.json['total']} mistakes are noticed: {asked.json['percent']} %\n"
    )
    assert command("policy", "mutate", "--dir", ".", "--sample", "3", "--json").json["total"] <= 3
    assert command("policy", "mutate", "--dir", ".", "--sample", "0").code == 2


def test_the_table_is_kept_and_compared(folder: Path, command: Command) -> None:
    made = command("policy", "matrix", "--dir", ".")
    (folder / "matrix.txt").write_text(made.out)
    same = command("policy", "matrix", "--dir", ".", "--check", "matrix.txt")
    assert (made.code, same.code, same.out) == (0, 0, "")
    assert "doc.read\n  User -> Doc\n       1 allow         doc/read/active\n" in made.out
    written(folder, "guardrails/secret.cedar", SECRET.replace("action,", 'action == Action::"doc.write",'))
    changed = command("policy", "matrix", "--dir", ".", "--check", "matrix.txt")
    assert changed.code == 3
    assert "-       2 forbidden     guardrails/secret" in changed.out
    assert command("policy", "matrix", "--dir", ".", "--check", "gone.txt").code == 1


def test_files_are_formatted_in_place(folder: Path, command: Command) -> None:
    before = (folder / READ_FILE).read_text()
    written(folder, "doc/read.cedar", before.replace("\n  ", " "))
    checked = command("policy", "fmt", "--dir", ".", "--check")
    assert (checked.code, checked.out) == (1, f"{READ_FILE}:1 is not formatted\n")
    assert command("policy", "fmt", "--dir", ".", "--json").json == {"changed": ["doc/read.cedar"], "written": True}
    assert (folder / READ_FILE).read_text() == before
    assert command("policy", "fmt", "--dir", ".", "--check").code == 0


@pytest.mark.parametrize("words", ["fmt", "new peer.read", "new peer.read --forbid night"])
def test_what_writes_never_writes_into_the_shipped_policies(words: str, command: Command) -> None:
    before = {path: path.read_bytes() for path in (ROOT / "policies").rglob("*.cedar")}
    ended = command("policy", *words.split())
    assert (ended.code, ended.out, "name a folder of yours with `--dir`" in ended.err) == (2, "", True)
    assert {path: path.read_bytes() for path in (ROOT / "policies").rglob("*.cedar")} == before


def test_all_that_could_match_an_action_is_shown(folder: Path, command: Command) -> None:
    shown = command("policy", "show", "doc.read", "--dir", ".")
    assert shown.code == 0
    assert shown.out.startswith("doc.read: User on Doc\nin the groups: none; cases: 3\n\nguardrails")
    assert "// policies/guardrails/secret.cedar:1\n@id" in shown.out
    assert "doc/write/active" not in shown.out
    found = command("policy", "show", "doc.read", "--dir", ".", "--json").json
    assert ([p["id"] for p in found["guardrails"]], [p["id"] for p in found["policies"]]) == (
        ["guardrails/secret"],
        ["doc/read/active"],
    )
    unknown = command("policy", "show", "doc.open", "--dir", ".")
    assert (unknown.code, unknown.err) == (
        2,
        "peergate: `doc.open` is no action of the schema; near it are doc.read, doc.write\n",
    )


ASKED = ("--action", "doc.read", "--resource", 'Doc::"plain"')


def test_an_allowed_request_is_explained(folder: Path, command: Command) -> None:
    ended = command("policy", "explain", "--dir", ".", "--principal", 'User::"ann"', *ASKED)
    assert (ended.code, ended.out) == (
        0,
        'User::"ann" doc.read Doc::"plain"\nallowed\n'
        f"  permit doc/read/active  {READ_FILE}:1\n      A user who is active reads.\n",
    )


def test_a_denied_request_is_explained_by_the_nearest_permit(folder: Path, command: Command) -> None:
    ended = command("policy", "explain", "--dir", ".", "--principal", 'User::"bob"', *ASKED)
    assert (ended.code, ended.out) == (
        1,
        'User::"bob" doc.read Doc::"plain"\ndenied: not_permitted\n'
        f"nearest permit: doc/read/active  {READ_FILE}:1\n      A user who is active reads.\n"
        "  it lacks: principal.active  (line 8)\n      principal.active is false\n",
    )
    found = command("policy", "explain", "--dir", ".", "--principal", 'User::"bob"', *ASKED, "--json").json
    assert (found["decision"], found["deny_kind"], found["nearest"]["unmet"]["text"]) == (
        "deny",
        "not_permitted",
        "principal.active",
    )


def test_a_case_is_explained_by_part_of_its_name(folder: Path, command: Command) -> None:
    ended = command("policy", "explain", "--dir", ".", "--case", "nobody")
    assert ended.code == 1
    assert "forbid guardrails/secret  policies/guardrails/secret.cedar:1" in ended.out
    several = command("policy", "explain", "--dir", ".", "--case", "active user")
    assert (several.code, several.err.partition(";")[0]) == (2, "peergate: `active user` is in the names of 2 cases")
    assert command("policy", "explain", "--dir", ".", "--case", "gone").code == 2


def test_entities_and_context_of_a_request_are_taken_from_files_and_flags(folder: Path, command: Command) -> None:
    (folder / "who.json").write_text(json.dumps([row | {"parents": []} for row in CAST]))
    ask = ("policy", "explain", "--dir", ".", "--principal", 'User::"ann"', *ASKED)
    ended = command(*ask, "--entities", "who.json", "--context", "{}")
    assert (ended.code, "it lacks: resource in principal.org" in ended.out) == (1, True)
    assert "invalid_request" in command(*ask, "--context", '{"more": 1}').out
    assert [command(*ask, *wrong).code for wrong in (("--context", "["), ("--context", "1"), ("--entities", "gone"))] == [2, 2, 2]


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--principal", "ann", *ASKED),
        ("--principal", 'User::"nobody"', *ASKED),
        ("--principal", 'User::"ann"', "--action", "doc.read"),
    ],
)
def test_half_a_request_is_bad_usage(folder: Path, command: Command, words: tuple[str, ...]) -> None:
    assert command("policy", "explain", "--dir", ".", *words).code == 2


def test_a_listing_is_planned_as_sql(command: Command) -> None:
    ended = command("policy", "plan", "memory.search", 'Agent::"agent"')
    assert (ended.code, ended.out) == (
        0,
        "some rows could be listed\npolicies left to decide: memory/search/owning_agent\n\n"
        "WHERE ((org_id = $1::VARCHAR) AND (agent_id = $2::VARCHAR))\n  $1 = 'home'\n  $2 = 'agent'\n",
    )
    denied = command("policy", "plan", "memory.search", 'Human::"member"', "--json")
    assert (denied.code, denied.json) == (
        1,
        {"deny_kind": "forbidden", "policies": ["guardrails/memory/humans"], "condition": "Known(value=False)"}
        | {"sql": "FALSE", "params": []},
    )


def test_what_a_connection_lists_takes_a_case_that_says_its_grants(command: Command) -> None:
    case = "what a grant covers"
    name = next(c["name"] for c in _cases("memory/search") if c["request"]["principal"] == 'Connection::"partner"')
    ended = command("policy", "plan", "memory.search", 'Connection::"partner"', "--case", name, "--json")
    assert (ended.code, ended.json["policies"]) == (0, ["grant/g-alpha"])
    assert "project_id" in ended.json["sql"]
    assert command("policy", "plan", "memory.search", 'Connection::"tagged"', "--case", name).code == 2
    assert command("policy", "plan", "peer.read", 'Agent::"listed"', "--case", case).code == 2


def _cases(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((ROOT / f"policies/{name}_test.json").read_text())
    return found


def test_the_index_is_a_table_of_actions(folder: Path, command: Command) -> None:
    ended = command("policy", "index", "--dir", ".")
    assert ended.out.splitlines()[2] == "| `doc.read` | `doc/read.cedar` | `doc/read/active` | 3 | `secret` |"
    found = command("policy", "index", "--dir", ".", "--json").json
    assert [(entry["action"], entry["cases"]) for entry in found] == [("doc.read", 3), ("doc.write", 1)]
    words = command("policy", "index", "--dir", ".", "--vocabulary").out
    assert "| `Doc` | `Org` | `org` Org, `price` decimal (optional), `secret` Bool |" in words


def test_an_export_is_three_files_and_never_over_others(folder: Path, command: Command) -> None:
    ended = command("policy", "export", "out", "--dir", ".", "--json")
    assert (ended.code, ended.json["files"]) == (0, ["bundle.cedar", "schema.cedarschema", "tests.json"])
    assert sorted(path.name for path in (folder / "out").iterdir()) == sorted(ended.json["files"])
    assert command("policy", "export", "out", "--dir", ".").code == 1


def test_a_new_action_begins_closed_with_a_case_that_asks_for_more(folder: Path, command: Command) -> None:
    for name in ("doc/write.cedar", "doc/write_test.json"):
        (folder / "policies" / name).unlink()
    assert command("policy", "new", "doc.write", "--dir", ".").code == 0
    assert command("policy", "validate", "--dir", ".").out == (
        "policies/doc/write.cedar:1 doc/write/example never applies: its conditions cannot all be true\n"
    )
    failing = command("policy", "test", "--dir", ".", "--json").json["cases"]
    assert [case["name"] for case in failing if not case["passed"]] == ["doc.write: say who does"]
    again = command("policy", "new", "doc.write", "--dir", ".")
    assert (again.code, again.err.startswith("peergate: there is already policies/doc/write.cedar:1")) == (1, True)
    assert command("policy", "new", "doc.open", "--dir", ".").code == 2


def test_a_new_forbid_refuses_nothing_yet_and_stands_beside_what_there_is(folder: Path, command: Command) -> None:
    before, cases = ((folder / f"policies/doc/read{end}").read_text() for end in (".cedar", "_test.json"))
    made = command("policy", "new", "doc.read", "--forbid", "night", "--dir", ".", "--json").json
    assert made["made"] == "doc/read/night"
    assert (folder / READ_FILE).read_text().startswith(f'{before}\n@id("doc/read/night")\n')
    assert (folder / READ_FILE).read_text().splitlines()[int(made["at"].rpartition(":")[2]) - 1] == '@id("doc/read/night")'
    assert (folder / "policies/doc/read_test.json").read_text().startswith(cases.rstrip().removesuffix("]").rstrip())
    assert command("policy", "validate", "--dir", ".").out == (
        f"{made['at']} doc/read/night never applies: its conditions cannot all be true\n"
    )
    failing = command("policy", "test", "--dir", ".", "--json").json["cases"]
    assert [case["name"] for case in failing if not case["passed"]] == made["cases"][:1]
    written(folder, "doc/read.cedar", (folder / READ_FILE).read_text().replace("unless { true }", "unless { false }"))
    assert made["cases"][0] in {
        case["name"] for case in command("policy", "test", "--dir", ".", "--json").json["cases"] if case["passed"]
    }
    assert command("policy", "new", "doc.read", "--forbid", "night", "--dir", ".").code == 1
    assert command("policy", "new", "doc.read", "--forbid", "Night/../x", "--dir", ".").code == 2


def test_a_new_forbid_of_an_action_without_files_begins_one(folder: Path, command: Command) -> None:
    for name in ("doc/write.cedar", "doc/write_test.json"):
        (folder / "policies" / name).unlink()
    made = command("policy", "new", "doc.write", "--forbid", "night", "--dir", ".", "--json").json
    assert (made["at"], made["cases"]) == ("policies/doc/write.cedar:1", [])
    assert not (folder / "policies/doc/write_test.json").exists()


def test_a_copy_has_all_that_decides_and_is_never_written_over_another(folder: Path, command: Command) -> None:
    (folder / "policies/notes.txt").write_text("not copied")
    ended = command("policy", "copy", "mine", "--dir", ".")
    assert (ended.code, ended.out) == (0, "copied 7 files of policies and cases, and the schema, to mine\n")
    assert command("policy", "diff", ".", "mine").out == "0 changes, 0 of which could allow more than before\n"
    assert command("policy", "test", "--dir", "mine").out == command("policy", "test", "--dir", ".").out
    assert not (folder / "mine/policies/notes.txt").exists()
    assert command("policy", "copy", "mine", "--dir", ".").code == 1


def test_one_policy_is_shown_alone_by_its_id(folder: Path, command: Command) -> None:
    assert command("policy", "show", "doc/read/active", "--dir", ".").out == (folder / READ_FILE).read_text()
    assert command("policy", "show", "doc/read/active", "--dir", ".", "--json").json["file"] == "doc/read.cedar"


def test_what_was_exported_is_asked_again_where_it_lies(folder: Path, command: Command) -> None:
    command("policy", "export", "out", "--dir", ".")
    assert command("policy", "test", "--dir", "out").out == command("policy", "test", "--dir", ".").out
    (folder / "out/bundle.cedar").write_text((folder / "out/bundle.cedar").read_text().replace("resource.secret", "false"))
    assert command("policy", "test", "--dir", "out").code == 1


def test_a_permit_that_is_added_is_a_difference_that_opens(folder: Path, tmp_path: Path, command: Command) -> None:
    old = a_folder(tmp_path / "old", doc__write=None)
    opened, closed = command("policy", "diff", old, folder), command("policy", "diff", folder, old)
    assert (opened.code, closed.code) == (3, 0)
    assert opened.out.startswith("! added permit doc/write/active  policies/doc/write.cedar:1\n")
    assert opened.out.endswith("1 change, 1 of which could allow more than before\n")
    assert command("policy", "diff", old, old, "--json").json == {"opens": False, "changes": []}


def test_a_folder_alone_is_compared_with_the_shipped_policies(command: Command, tmp_path: Path) -> None:
    assert command("policy", "copy", tmp_path / "mine").code == 0
    (tmp_path / "mine/policies/peer/read.cedar").unlink()
    ended = command("policy", "diff", tmp_path / "mine")
    assert (ended.code, "  removed permit peer/read/observer" in ended.out) == (0, True)


def test_a_case_beside_the_policies_is_a_case_too(folder: Path, command: Command) -> None:
    beside = a_case("beside", "ann", "doc.read", "plain", "doc/read/active", decision="deny")
    (folder / "more_test.json").write_text(json.dumps([beside]))
    ended = command("policy", "test", "--dir", ".", "-k", "beside")
    assert (ended.code, ended.out.splitlines()[0]) == (1, "more_test.json:1 beside")


def test_without_a_directory_it_is_the_shipped_policies(command: Command) -> None:
    assert command("policy", "validate").code == 0
    assert command("policy", "test", "-k", "observers").code == 0
    assert command("policy", "fmt", "--check").code == 0


@pytest.mark.parametrize("verb", "validate fmt new copy test mutate matrix show explain plan index diff export".split())
def test_help_teaches_with_an_example_and_names_the_exit_codes(verb: str, command: Command) -> None:
    ended = command("policy", verb, "--help")
    assert f"examples:\n  peergate policy {verb}" in ended.out
    assert "exit codes: 0 " in ended.out
