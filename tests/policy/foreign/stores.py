"""Foreign stores for tests, from texts and at random."""

from __future__ import annotations

import json
import random
from pathlib import Path

from gateway.model.asked import Asked, Named
from gateway.policy.foreign.loading import load
from gateway.policy.foreign.store import ForeignStore

SCHEMA = """
entity Team in [Team];
entity User in [Team] = { level: Long, tags: Set<String>, boss?: User };
entity Folder in [Folder] = { owner?: User };
entity Doc in [Folder] = {
  owner: User, team: Team, level: Long, open: Bool, kind?: String, labels: Set<String>, price?: decimal
};
action "see", "edit" appliesTo { principal: [User], resource: [Doc], context: { late?: Bool, floor?: Long } };
action "list" appliesTo { principal: [User], resource: [Folder], context: {} };
"""
CLAUSES = (
    "resource.owner == principal", "principal in resource.team", "resource.level <= principal.level", "resource.open",
    'resource in Folder::"f0"', 'resource has kind && resource.kind == "plan"', 'resource.labels.contains("red")',
    "resource.labels.containsAny(principal.tags)", "principal.tags.containsAll(resource.labels)", 'resource.kind like "p*"',
    'resource has price && resource.price.lessThan(decimal("2.5"))', "context has late && context.late",
    "context has floor && context.floor < resource.level", 'principal in Team::"t0"', 'resource.owner in Team::"t1"',
    "principal has boss && resource.owner == principal.boss", "resource.owner has boss && resource.owner.boss == principal",
    'resource == Doc::"d1"', 'Team::"t2" in resource.team', 'resource.owner in [Team::"t0", Team::"t3"]',
    'resource.team == Team::"t1"',
    "if resource.open then principal.level > 1 else resource.level < 2",
)  # fmt: skip


def written(directory: Path, schema: str, policies: str, entities: object = (), aliases: str | None = None) -> ForeignStore:
    """The store of these texts."""
    (directory / "policies").mkdir(parents=True)
    (directory / "schema.cedarschema").write_text(schema, "utf-8")
    (directory / "policies" / "all.cedar").write_text(policies, "utf-8")
    (directory / "entities.json").write_text(entities if isinstance(entities, str) else json.dumps(entities), "utf-8")
    if aliases is not None:
        (directory / "authzen.toml").write_text(aliases, "utf-8")
    return load(directory)


def entity(type_: str, id_: str, *parents: tuple[str, str], **attrs: object) -> dict[str, object]:
    above = [{"type": kind, "id": parent} for kind, parent in parents]
    return {"uid": {"type": type_, "id": id_}, "attrs": attrs, "parents": above}


def ref(type_: str, id_: str) -> dict[str, object]:
    return {"__entity": {"type": type_, "id": id_}}


def asked(
    subject: str, action: str, resource: str, *, resource_type: str = "Doc", context: dict[str, object] | None = None
) -> Asked:
    return Asked(Named("User", subject), action, Named(resource_type, resource), None, context)


def a_store(directory: Path, seed: int) -> ForeignStore:
    """A random store: teams and folders in one another, people, documents, and some policies over them."""
    chance = random.Random(seed)
    entities = [entity("Team", f"t{n}", *([("Team", f"t{n - 1}")] if n and chance.random() < 0.6 else [])) for n in range(4)]
    entities += [entity("Folder", f"f{n}", *([("Folder", f"f{n - 1}")] if n and chance.random() < 0.6 else [])) for n in range(3)]
    for n in range(5):
        boss = {"boss": ref("User", f"u{chance.randrange(5)}")} if chance.random() < 0.5 else {}
        tags = chance.sample(["red", "blue", "green"], chance.randrange(4))
        entities.append(
            entity("User", f"u{n}", ("Team", f"t{chance.randrange(4)}"), level=chance.randrange(4), tags=tags, **boss)
        )
    for n in range(12):
        more: dict[str, object] = {"kind": chance.choice(["plan", "note"])} if chance.random() < 0.6 else {}
        if chance.random() < 0.5:
            more["price"] = {"__extn": {"fn": "decimal", "arg": f"{chance.randrange(5)}.5"}}
        entities.append(
            entity(
                "Doc",
                f"d{n}",
                *([("Folder", f"f{chance.randrange(3)}")] if chance.random() < 0.8 else []),
                owner=ref("User", f"u{chance.randrange(6)}"),
                team=ref("Team", f"t{chance.randrange(4)}"),
                level=chance.randrange(4),
                open=chance.random() < 0.5,
                labels=chance.sample(["red", "blue", "green"], chance.randrange(3)),
                **more,
            )
        )
    return written(directory, SCHEMA, "\n".join(_policy(chance, n) for n in range(chance.randrange(1, 7))), entities)


def _policy(chance: random.Random, number: int) -> str:
    effect = "permit" if number == 0 or chance.random() < 0.65 else "forbid"
    action = chance.choice(["action", 'action == Action::"see"', 'action in [Action::"see", Action::"edit"]'])
    term = chance.choice([" && ", " || "]).join(f"({clause})" for clause in chance.sample(CLAUSES, chance.randrange(1, 4)))
    when = chance.choice(["when", "when", "unless"])
    # A bare `like` of what may be absent errs, which is a case of its own.
    return f'@id("p{number}") {effect} (principal is User, {action}, resource is Doc) {when} {{ {term} }};'.replace(
        'resource.kind like "p*"', 'resource has kind && resource.kind like "p*"'
    )
