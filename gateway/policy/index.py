"""The index of a policy set: for each action what decides it and where that stands; and the words it is written in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gateway.model.entity import EntityUid
from gateway.policy.bundle import Bundle
from gateway.policy.cases import Case
from gateway.policy.source import PolicyInfo
from gateway.policy.vocabulary import Kind


@dataclass(frozen=True, slots=True)
class Entry:
    """One action: the policies that could match it, sorted by id, and how many cases ask it.

    `files` are those of the permits and of the forbids that are its own; `guardrails` are the forbids that other actions share.
    """

    action: str
    principals: tuple[str, ...]
    resources: tuple[str, ...]
    groups: tuple[str, ...]
    files: tuple[str, ...]
    policies: tuple[PolicyInfo, ...]
    guardrails: tuple[PolicyInfo, ...]
    cases: int


def index(bundle: Bundle, cases: Iterable[Case] = ()) -> list[Entry]:
    """Returns an entry for each action that the schema lets anybody ask, sorted."""
    asked = Counter(case.action for case in cases)
    above = bundle.types.groups
    return [_entry(bundle, action, asked[action], above) for action in sorted(bundle.actions)]


def _entry(bundle: Bundle, action: str, cases: int, above: Mapping[EntityUid, frozenset[EntityUid]]) -> Entry:
    matching = [bundle.policies[id_] for id_ in bundle.members[action]]
    own = [info for info in matching if info.effect == "permit" or not info.file.startswith("guardrails/")]
    uid = bundle.action_uids[action]
    return Entry(
        action=action,
        principals=tuple(sorted(bundle.vocabulary.principals.get(action, ()))),
        resources=tuple(sorted(bundle.vocabulary.resources.get(action, ()))),
        groups=tuple(sorted(group.id for group in above[uid] if group != uid)),
        files=tuple(sorted({info.file for info in own})),
        policies=tuple(own),
        guardrails=tuple(info for info in matching if info not in own),
        cases=cases,
    )


def as_markdown(entries: Iterable[Entry]) -> str:
    """Returns the index as a table."""
    rows = [
        (
            f"`{entry.action}`",
            _code(entry.files),
            _code(info.id for info in entry.policies),
            str(entry.cases),
            _code(info.id.removeprefix("guardrails/") for info in entry.guardrails),
        )
        for entry in entries
    ]
    return _table(("action", "files", "policies", "cases", "guardrails that could match"), rows)


def vocabulary_markdown(bundle: Bundle) -> str:
    """Returns what the schema names, as two tables: entity types with their attributes, and actions."""
    types = [
        (
            f"`{name}`",
            _code(shape.parents),
            ", ".join(f"`{attribute}` {_kind(kind)}" for attribute, kind in shape.attributes.items()),
        )
        for name, shape in sorted(bundle.vocabulary.entities.items())
    ]
    actions = [(f"`{e.action}`", _code(e.principals), _code(e.resources), _code(e.groups)) for e in index(bundle)]
    tables = (
        _table(("entity type", "in", "attributes"), types),
        _table(("action", "principal", "resource", "in the groups"), actions),
    )
    return "\n".join(tables)


def _kind(kind: Kind) -> str:
    name = kind.name or "record, time or other"
    return f"{'set of ' if kind.many else ''}{name}{' (optional)' if kind.optional else ''}"


def _code(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _table(heading: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    return "\n".join(_lines(heading, rows)) + "\n"


def _lines(heading: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    for row in (heading, ("---",) * len(heading), *rows):
        yield "| " + " | ".join(cell or "-" for cell in row) + " |"
