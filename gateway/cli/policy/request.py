"""The request that a command asks about: from a case, or from flags."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gateway.cli.exits import USAGE, CommandError
from gateway.model.decision import Query
from gateway.model.entity import EntityUid
from gateway.model.memory import MemoryGrant
from gateway.policy.cases import UID, Case, prepare
from gateway.policy.context import Context
from gateway.policy.engine import PolicyEngine
from gateway.policy.folder import Folder
from gateway.policy.slice import Slice


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, the entities it is asked over, and what the principal was granted."""

    query: Query
    slice: Slice
    grants: Sequence[MemoryGrant]


def of_case(engine: PolicyEngine, case: Case) -> Asked:
    """What a case asks."""
    [(_, query, slice)] = prepare(engine, [case])
    return Asked(query, slice, case.grants)


def of_flags(engine: PolicyEngine, folder: Folder, given: argparse.Namespace, principal: EntityUid, resource: EntityUid) -> Asked:
    """What flags ask, over a file of entities, or over the first cast that knows both ends."""
    entities = _read(given.entities) if given.entities is not None else _cast(folder, {principal, resource})
    context = moment(folder, datetime.now(UTC)) if given.context is None else _parsed("--context", given.context)
    if not isinstance(context, dict):
        raise CommandError("`--context` is not a JSON object", USAGE)
    return Asked(Query(principal, given.action, resource, Context.from_json(context)), engine.slice_json(entities), ())


def uid_of(flag: str, text: str) -> EntityUid:
    """The entity that a flag names."""
    found = UID.fullmatch(text)
    if found is None:
        raise CommandError(f"""`{flag}` is an entity, as in 'Agent::"a1"', got `{text}`""", USAGE)
    return EntityUid(found[1], found[2])


def case_named(cases: Sequence[Case], name: str) -> Case:
    """The case of a name, or the only one whose name holds it."""
    found = [case for case in cases if case.name == name] or [case for case in cases if name in case.name]
    if len(found) == 1:
        return found[0]
    if not found:
        raise CommandError(f"no case is called `{name}`", USAGE)
    raise CommandError(f"`{name}` is in the names of {len(found)} cases; the first are {_listed(found[:3])}", USAGE)


def moment(folder: Folder, now: datetime) -> dict[str, Any]:
    """The context of a minute in UTC, where the schema's requests have a clock in theirs; else an empty one."""
    if "clock" not in folder.schema.read_text("utf-8"):
        return {}
    now = now.astimezone(UTC).replace(second=0, microsecond=0, tzinfo=None)
    clock = {"minute": now.hour * 60 + now.minute, "weekday": now.isoweekday(), "date": now.date().isoformat()}
    return {"now": {"__extn": {"fn": "datetime", "arg": now.isoformat() + "Z"}}, "clock": clock}


def _listed(cases: Sequence[Case]) -> str:
    return ", ".join(f"`{case.name}`" for case in cases)


def _cast(folder: Folder, named: set[EntityUid]) -> list[Any]:
    for entities in _casts(folder):
        if named <= {EntityUid(entity["uid"]["type"], entity["uid"]["id"]) for entity in entities}:
            return entities
    known = " and ".join(str(uid) for uid in sorted(named))
    raise CommandError(f"no cast of the cases knows {known}: give the entities with --entities FILE", USAGE)


def _casts(folder: Folder) -> Iterator[list[Any]]:
    for path in sorted({folder.policies / case.raw["entities_from"] for case in folder.cases() if "entities_from" in case.raw}):
        yield _read(path)


def _read(path: Path) -> list[Any]:
    try:
        entities = _parsed(str(path), path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as wrong:
        raise CommandError(f"cannot read {path}: {wrong}", USAGE) from wrong
    if not isinstance(entities, list):
        raise CommandError(f"{path}: is not a list of entities", USAGE)
    return entities


def _parsed(what: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as wrong:
        raise CommandError(f"`{what}` is not JSON: {wrong}", USAGE) from wrong
