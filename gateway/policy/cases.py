"""Cases: what a policy set must answer, in the format of the Cedar CLI's `run-tests`, run through the engine."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

from gateway.model.decision import DenyKind, Query, Verdict
from gateway.model.entity import EntityUid
from gateway.model.memory import NO_LIMITS, TEMPLATE_VERSION, MemoryGrant
from gateway.policy import files
from gateway.policy.bundle import Bundle
from gateway.policy.context import Context
from gateway.policy.engine import PolicyEngine
from gateway.policy.slice import Slice
from gateway.policy.value import canonical, each_key_once

SUFFIX = "_test.json"
UID = re.compile(r'((?:[A-Za-z_]\w*::)*[A-Za-z_]\w*)::"([^"\\]*)"', re.ASCII)
KEYS = frozenset(
    "name request entities decision reason num_errors "  # the Cedar CLI's
    "description reason_exact deny_kind control entities_from grants".split()
)
GRANT_KEYS = frozenset("id actions project_id tags tags_match classifications provenance".split())
#: The shared entities of a name, or none without one.
Cast = Callable[[str | None], list[Mapping[str, Any]]]


class CaseError(ValueError):
    """A file of cases cannot be read, or a case in it is not one; the message says where."""


@dataclass(frozen=True, slots=True)
class Case:
    """One request and the answer it must get; `raw` is the case as written, `cast` the shared entities it asks for.

    `grants` are what the principal, a remote agent, is granted: policies beside those of the files. Of one id, one grant.

    `reason` is a subset of the determining policies, or all of them with `reason_exact`. Without a `deny_kind` a deny must
    be the policies' own: a request that is not valid fails the case.
    """

    file: str
    number: int
    name: str
    request: Mapping[str, Any]
    entities: tuple[Mapping[str, Any], ...]
    decision: str
    reason: frozenset[str]
    num_errors: int
    reason_exact: bool
    deny_kind: DenyKind | None
    control: str
    raw: Mapping[str, Any]
    grants: tuple[MemoryGrant, ...] = ()

    @property
    def action(self) -> str:
        """The id of the action that is asked for."""
        return _uid(self.request["action"]).id

    @property
    def principal(self) -> EntityUid:
        """Who asks."""
        return _uid(self.request["principal"])

    @property
    def resource(self) -> EntityUid:
        """What is asked about."""
        return _uid(self.request["resource"])


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What became of a case: the verdict, and in words where it is not the one expected."""

    case: Case
    verdict: Verdict
    failures: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether the verdict is the expected one."""
        return not self.failures


def load_cases(policies: Path) -> list[Case]:
    """Returns every case of the `*_test.json` files under a directory, in the order of the files; raises `CaseError`."""
    try:
        files.check_total(policies.rglob("*.json"))
    except (OSError, files.FileRefused) as error:
        raise CaseError(str(error)) from error
    return read_cases(policies, *sorted(policies.rglob(f"*{SUFFIX}")))


def read_cases(policies: Path, *paths: Path) -> list[Case]:
    """Returns the cases of some files, which need not be under the directory that their casts are in; raises `CaseError`.

    Each cast is read once, and cases share its entities.
    """
    cast = cache(partial(_cast, policies))
    return [case for path in paths for case in _read(policies, path, cast)]


def from_json(raw: Mapping[str, Any]) -> Case:
    """Returns a case that no file holds, as one of a file is read; raises `CaseError`, and `KeyError` for what it lacks."""
    return _case("", 0, raw, partial(_cast, Path()))


def expand(case: Case) -> dict[str, Any]:
    """Returns the case as a file for the Cedar CLI holds it: with the shared entities written out."""
    plain = {key: value for key, value in case.raw.items() if key != "entities_from"}
    return plain | {"entities": list(case.entities)}


def prepare(engine: PolicyEngine, cases: Iterable[Case]) -> list[tuple[Case, Query, Slice]]:
    """Returns what each case asks and over what; raises `SliceError` for entities that break the schema.

    Cases with the same entities share a slice.
    """
    slices: dict[str, Slice] = {}
    asked = []
    for case in cases:
        entities = canonical(case.entities)
        if entities not in slices:
            slices[entities] = engine.slice_json(case.entities)
        query = Query(
            principal=_uid(case.request["principal"]),
            action=case.action,
            resource=_uid(case.request["resource"]),
            context=Context.from_json(case.request["context"]),
        )
        asked.append((case, query, slices[entities]))
    return asked


def run_cases(bundle: Bundle, cases: Iterable[Case]) -> list[CaseResult]:
    """Returns what becomes of each case under a bundle; raises `SliceError`."""
    engine = PolicyEngine(bundle, salt=b"")
    results = []
    for case, query, slice in prepare(engine, cases):
        verdict = engine.decide(query, slice, case.grants)
        results.append(CaseResult(case, verdict, tuple(judge(case, verdict))))
    return results


def run_case(bundle: Bundle, case: Case) -> CaseResult:
    """Returns what becomes of one case under a bundle; raises `SliceError`."""
    [result] = run_cases(bundle, [case])
    return result


def judge(case: Case, verdict: Verdict) -> Iterator[str]:
    """Yields each way in which a verdict is not what the case expects."""
    decision = "allow" if verdict.allowed else "deny"
    if decision != case.decision:
        yield f"is {decision} ({verdict.deny_kind or 'by ' + ', '.join(verdict.policies)}), not {case.decision}"
    if missing := sorted(case.reason.difference(verdict.policies)):
        yield f"is not decided by {', '.join(missing)}"
    if case.reason_exact and (extra := sorted(set(verdict.policies) - case.reason)):
        yield f"is decided by {', '.join(extra)} too"
    if len(verdict.errors) != case.num_errors:
        yield f"has {len(verdict.errors)} errors, not {case.num_errors}"
    if case.deny_kind is not None and verdict.deny_kind != case.deny_kind:
        yield f"is denied as {verdict.deny_kind}, not {case.deny_kind}"
    if case.deny_kind is None and verdict.deny_kind is DenyKind.INVALID_REQUEST:
        yield "is not a valid request, or over entities that are not all there"


def _read(policies: Path, path: Path, cast: Cast) -> Iterator[Case]:
    file = path.relative_to(policies).as_posix() if path.is_relative_to(policies) else path.name
    cases = _json(path, file)
    if not isinstance(cases, list) or not cases:
        raise CaseError(f"{file}: is not a list of cases")
    for number, raw in enumerate(cases, start=1):
        try:
            yield _case(file, number, raw, cast)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise CaseError(f"{file}: case {number}: {type(error).__name__}: {error}") from error


def _case(file: str, number: int, raw: Mapping[str, Any], cast: Cast) -> Case:
    if unknown := sorted(raw.keys() - KEYS):
        raise CaseError(f"unknown keys {unknown}")
    if raw["decision"] not in ("allow", "deny"):
        raise CaseError("`decision` is `allow` or `deny`")
    request = {key: raw["request"][key] for key in ("principal", "action", "resource", "context")}
    for key in ("principal", "action", "resource"):
        _uid(request[key])
    return Case(
        file=file,
        number=number,
        name=raw.get("name", f"{file} {number}"),
        request=request,
        entities=(*raw["entities"], *cast(raw.get("entities_from"))),
        decision=raw["decision"],
        reason=frozenset(raw["reason"]),
        num_errors=raw["num_errors"],
        reason_exact=raw.get("reason_exact", False),
        deny_kind=DenyKind(raw["deny_kind"]) if "deny_kind" in raw else None,
        control=raw.get("control", ""),
        raw=raw,
        grants=tuple(_grant(_uid(request["principal"]), grant) for grant in raw.get("grants", ())),
    )


def _grant(connection: EntityUid, raw: Mapping[str, Any]) -> MemoryGrant:
    """What a grant does not say is what it is by default; who made it, and when, decides nothing."""
    if unknown := sorted(raw.keys() - GRANT_KEYS):
        raise CaseError(f"unknown keys {unknown} of a grant")
    return MemoryGrant(
        id=raw["id"],
        org_id="",
        connection_id=connection.id,
        actions=tuple(raw["actions"]),
        project_id=raw["project_id"],
        tags=tuple(raw.get("tags", ())),
        tags_match=raw.get("tags_match", "any"),
        classifications=tuple(raw.get("classifications", ("public", "internal"))),
        provenance=raw.get("provenance", "any"),
        expires_at=None,
        limits=NO_LIMITS,
        template_version=TEMPLATE_VERSION,
        created_by="",
        created_at=datetime.min.replace(tzinfo=UTC),
    )


def _cast(policies: Path, name: str | None) -> list[Mapping[str, Any]]:
    if name is None:
        return []
    path = policies / name
    if not path.resolve().is_relative_to(policies.resolve()):
        raise CaseError(f"`{name}` is outside the directory")
    entities: list[Mapping[str, Any]] = _json(path, name)
    return entities


def _json(path: Path, file: str) -> Any:
    try:
        return json.loads(files.read(path), object_pairs_hook=each_key_once)
    except (OSError, ValueError) as error:
        raise CaseError(f"{file}: {error}") from error


def _uid(text: str) -> EntityUid:
    if not (match := UID.fullmatch(text)):
        raise CaseError(f'`{text}` is not an entity, as in `Agent::"a1"`')
    return EntityUid(match[1], match[2])
