"""A store to ask in, as a foreign one: people in teams, documents in folders, and what they are asked about."""

from __future__ import annotations

import json
from pathlib import Path

SCHEMA = """entity Team in [Team];
entity User in [Team] = { level: Long, guest: Bool };
entity Folder in [Folder];
entity Document in [Folder] = { owner: User, readers: Team, level: Long, draft: Bool, size?: Long };
action "read", "comment", "edit", "delete"
  appliesTo { principal: [User], resource: [Document], context: { mfa?: Bool } };
"""
POLICIES = """@id("owner") permit (principal is User, action, resource is Document) when { resource.owner == principal };
@id("readers") permit (principal is User, action in [Action::"read", Action::"comment"], resource is Document)
when { principal in resource.readers && !resource.draft };
@id("shared") permit (principal is User, action == Action::"read", resource is Document)
when { resource in Folder::"shared" && !principal.guest };
@id("level") forbid (principal is User, action, resource is Document) when { resource.level > principal.level };
@id("mfa") forbid (principal is User, action == Action::"delete", resource is Document)
unless { context has mfa && context.mfa };
"""
ALIASES = 'user = "User"\ndocument = "Document"\n'
TEAMS, FOLDERS = 10, 20
DESCRIPTION = "4 actions, 5 policies; a question names a user, an action and a document"


def write_store(directory: Path, *, users: int, documents: int) -> Path:
    """Make a store directory with so many people and documents, and return it."""
    (directory / "policies").mkdir(parents=True)
    (directory / "schema.cedarschema").write_text(SCHEMA, "utf-8")
    (directory / "policies" / "documents.cedar").write_text(POLICIES, "utf-8")
    (directory / "authzen.toml").write_text(ALIASES, "utf-8")
    (directory / "entities.json").write_text(json.dumps(_entities(users, documents)), "utf-8")
    return directory


def question(number: int, *, users: int, documents: int, properties: bool = False) -> dict[str, object]:
    """One question of many, always the same for the same number; about half are answered yes."""
    resource: dict[str, object] = {"type": "document", "id": f"document-{number * 7 % documents}"}
    if properties:
        resource["properties"] = {"size": number, "draft": number % 3 == 0}
    return {
        "subject": {"type": "user", "id": f"user-{number % users}"},
        "action": {"name": ("read", "comment", "read", "edit")[number % 4]},
        "resource": resource,
    }


def _entities(users: int, documents: int) -> list[dict[str, object]]:
    made = [_entity("Team", "everyone", None), _entity("Folder", "shared", None)]
    made += [_entity("Team", f"team-{n}", "everyone") for n in range(TEAMS)]
    made += [_entity("Folder", f"folder-{n}", "shared" if n % 4 == 0 else None) for n in range(FOLDERS)]
    made += [_entity("User", f"user-{n}", f"team-{n % TEAMS}", level=n % 4, guest=n % 5 == 0, up="Team") for n in range(users)]
    made += [
        _entity(
            "Document",
            f"document-{n}",
            f"folder-{n % FOLDERS}",
            owner=_named("User", f"user-{n % users}"),
            readers=_named("Team", "everyone" if n % 2 else f"team-{n % TEAMS}"),
            level=n % 3,
            draft=n % 7 == 0,
            up="Folder",
        )
        for n in range(documents)
    ]
    return made


def _entity(type_: str, id_: str, parent: str | None, *, up: str | None = None, **attrs: object) -> dict[str, object]:
    parents = [] if parent is None else [{"type": up or type_, "id": parent}]
    return {"uid": {"type": type_, "id": id_}, "attrs": attrs, "parents": parents}


def _named(type_: str, id_: str) -> dict[str, object]:
    return {"__entity": {"type": type_, "id": id_}}
