"""A small policy folder on disk, for the tests of the workbench."""

from __future__ import annotations

import json
from pathlib import Path

import cedarpy

SCHEMA = """
entity Org;
entity User in [Org] = { org: Org, active: Bool };
entity Doc in [Org] = { org: Org, secret: Bool, price?: decimal };
action "written";
action "doc.read" appliesTo { principal: [User], resource: [Doc], context: {} };
action "doc.write" in ["written"] appliesTo { principal: [User], resource: [Doc], context: {} };
"""
READ = """
@id("doc/read/active")
@reason("A user who is active reads.")
permit (principal is User, action == Action::"doc.read", resource is Doc) when { principal.active && resource in principal.org };
"""
WRITE = """
@id("doc/write/active")
@reason("A user who is active writes.")
permit (principal is User, action == Action::"doc.write", resource is Doc) when { principal.active };
"""
SECRET = """
@id("guardrails/secret")
@reason("What is secret is for nobody.")
forbid (principal, action, resource is Doc) when { resource.secret };
"""
FILES = {"doc/read.cedar": READ, "doc/write.cedar": WRITE, "guardrails/secret.cedar": SECRET}
ORG = {"type": "Org", "id": "o"}


def a_row(type_: str, id_: str, **attrs: object) -> dict[str, object]:
    return {"uid": {"type": type_, "id": id_}, "attrs": {"org": {"__entity": ORG}, **attrs}, "parents": [ORG]}


CAST = [
    {"uid": ORG, "attrs": {}, "parents": []},
    a_row("User", "ann", active=True),
    a_row("User", "bob", active=False),
    a_row("Doc", "plain", secret=False),
    a_row("Doc", "hidden", secret=True),
]


def a_case(name: str, user: str, action: str, doc: str, *reason: str, **changes: object) -> dict[str, object]:
    """A case that allows where its reasons are permits."""
    request = {"principal": f'User::"{user}"', "action": f'Action::"{action}"', "resource": f'Doc::"{doc}"', "context": {}}
    decision = "deny" if not reason or "guardrails/secret" in reason else "allow"
    case = {"name": name, "request": request, "entities": [], "entities_from": "casts/all.json", "decision": decision}
    return case | {"reason": list(reason), "reason_exact": True, "num_errors": 0} | changes


CASES = {
    "doc/read_test.json": [
        a_case("doc.read: an active user does", "ann", "doc.read", "plain", "doc/read/active", control="C1"),
        a_case("doc.read: another does not", "bob", "doc.read", "plain"),
    ],
    "doc/write_test.json": [a_case("doc.write: an active user does", "ann", "doc.write", "plain", "doc/write/active")],
    "guardrails/secret_test.json": [a_case("secret: nobody reads", "bob", "doc.read", "hidden", "guardrails/secret")],
}


def a_folder(at: Path, *, schema: str = SCHEMA, **changes: str | None) -> Path:
    """Writes the folder; `changes` are policy files by their path with `__` for `/`, None for one that is left out."""
    texts = FILES | {f"{name.replace('__', '/')}.cedar": text for name, text in changes.items()}
    (at / "policies" / "casts").mkdir(parents=True)
    (at / "schema.cedarschema").write_text(schema)
    (at / "policies" / "casts" / "all.json").write_text(json.dumps(CAST))
    for name, text in texts.items():
        if text is not None:
            written(at, name, cedarpy.format_policies(text))
    for name, cases in CASES.items():
        written(at, name, json.dumps(cases, indent=1))
    return at


def written(at: Path, name: str, text: str) -> None:
    path = at / "policies" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
