"""Evidence: what an auditor takes away, and can check without a line of this program."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from gateway.errors import Conflict
from gateway.model.grant import Grant
from gateway.operations.call import Services
from gateway.operations.fields import stamp
from gateway.operations.operator import as_operator, put_down
from gateway.operations.replay import bundle_of
from gateway.policy.evidence import Cases, Policies
from gateway.store import evidence_export, replaying
from gateway.store.entities import Installation
from gateway.store.log import Head

PAGE = 1_000
#: Cases a file: each holds all its entities, some kilobytes.
CASES_A_FILE = 5_000
VERIFIER = "verify_evidence.py"
Steps = Callable[[str], None]
COMMAND = "cedar run-tests --policies {folder}/policies.cedar --tests {folder}/{file}"
README = """# Evidence

Taken {taken_at}: {rows} rows of the log, {cases} decisions as cases.

- `chain.jsonl`: the rows of the log, one a line. The hash of a row is SHA-256 over the hash before it, a line feed and the
  line. `head.json` has the hash before the first line (`after`) and the one of the last (`head`).
- `head.sig`: an Ed25519 signature of `head.json` by the gateway's signing key; `signer.pem` is its public half. Compare the
  key with one that you got another way.
- `decisions/`: one directory a set of policies, named by its hash: the schema, the policies, and the decisions that were taken
  by them as cases, each with every entity that Cedar was given. The name of a case is the id of the decision. `bundle.json` is
  what was hashed.
- Left out: {left_out}.

Check the chain, that the cases ask and expect what it says, and that the policies are those that it names (Python's standard
library, nothing else):

    python verify.py

What it cannot check: the entities of a case, and the grants of a remote agent. The chain binds the entities by hashes that the
gateway has salted, so that they betray nothing; who holds the salt can check them, nobody else.

Check the signature:

    openssl pkeyutl -verify -pubin -inkey signer.pem -rawin -in head.json -sigfile head.sig

Decide every case again with the Cedar CLI (4.4 or later):

{commands}

The gateway's own program decides them too: `peergate policy test --dir` with one of the directories in `decisions/`.
"""


class _Written:
    """The files of cases, one set of policies a directory, written as they come: none waits for others in memory."""

    def __init__(self, target: Path, cases: Cases) -> None:
        self._target = target
        self._cases = cases
        self._counts: Counter[Policies] = Counter()
        self.commands: list[str] = []
        self.count = 0

    def add(self, made: Iterable[tuple[Policies, dict[str, object]]]) -> None:
        """Write the cases of a page."""
        alike: dict[Policies, list[str]] = {}
        for policies, case in made:
            alike.setdefault(policies, []).append(json.dumps(case))
        for policies, lines in alike.items():
            while lines:
                room = CASES_A_FILE - self._counts[policies] % CASES_A_FILE
                self._append(policies, lines[:room])
                lines = lines[room:]

    def end(self) -> None:
        """Close the files that could have taken more."""
        for policies, count in self._counts.items():
            if count % CASES_A_FILE:
                self._close(policies, count)

    def _append(self, policies: Policies, lines: list[str]) -> None:
        """Write cases for which there is room in the file that is begun, or begin one."""
        before = self._counts[policies]
        begun, path = before % CASES_A_FILE, self._path(policies, before)
        if not before:
            self._begin(path.parent, policies)
        if not begun:
            self.commands.append(COMMAND.format(folder=path.parent.relative_to(self._target), file=path.name))
        with path.open("a", encoding="utf-8") as file:
            file.write(",\n" if begun else "[\n")
            file.write(",\n".join(lines))
        self._counts[policies] += len(lines)
        self.count += len(lines)
        if not self._counts[policies] % CASES_A_FILE:
            self._close(policies, before)

    def _begin(self, folder: Path, policies: Policies) -> None:
        folder.mkdir(parents=True)
        (folder / "schema.cedarschema").write_text(self._cases.schema(policies), "utf-8")
        (folder / "policies.cedar").write_text(self._cases.text(policies), "utf-8")
        (folder / "bundle.json").write_text(self._cases.hashed(policies), "utf-8")

    def _close(self, policies: Policies, place: int) -> None:
        with self._path(policies, place).open("a", encoding="utf-8") as file:
            file.write("\n]\n")

    def _path(self, policies: Policies, place: int) -> Path:
        """The file in which the case at a place stands, counted from 0."""
        return self._target / "decisions" / _name(policies) / f"tests-{place // CASES_A_FILE + 1:04}.json"


async def take_evidence(
    services: Services, target: Path, *, since: datetime | None, progress: Steps = lambda _: None
) -> dict[str, Any]:
    """As the operator, write everything that was recorded since a time into a new directory.

    `chain_holds` in what is returned is what anybody finds who checks it.

    Raises:
        Conflict: the directory is there already.
    """
    async with as_operator(services) as session:
        grant = services.access.authorize(session, "admin.take_evidence", Installation())
        await put_down(services, session)
        made = await asyncio.to_thread(_take, services, grant, target, since, progress)
        await put_down(services, session, grant.audit("admin.evidence_taken", {"rows": made["rows"], "cases": made["cases"]}))
    return made


def _take(
    services: Services, grant: Grant[Installation], target: Path, since: datetime | None, progress: Steps
) -> dict[str, Any]:
    try:
        target.mkdir(mode=0o700, parents=True)
    except FileExistsError as there:
        raise Conflict(f"`{target}` is there already") from there
    verifier = files("gateway.operations").joinpath(VERIFIER).read_text("utf-8")
    (target / "verify.py").write_text(verifier, "utf-8")
    after, head = services.database.read_sync(lambda rows: evidence_export.stretch(rows, grant, since))
    holds = _write_chain(services, grant, target, after, head, progress)
    taken_at = stamp(grant.now)
    _write_head(services, target, {"after": after._asdict(), "head": head._asdict(), "taken_at": taken_at})
    cases = Cases(dict(services.state.memory_grants), partial(bundle_of, services, grant))
    written = _write_cases(services, grant, target, cases, after.seq, progress)
    left_out = {why.replace("_", " "): count for why, count in sorted(cases.left_out.items())}
    rows = head.seq - after.seq
    readme = README.format(
        taken_at=taken_at,
        rows=rows,
        cases=written.count,
        left_out=", ".join(f"{count} {why}" for why, count in left_out.items()) or "nothing",
        commands="\n".join(f"    {command}" for command in written.commands) or "    (there is none)",
    )
    (target / "README.md").write_text(readme, "utf-8")
    return {
        "evidence": str(target),
        "rows": rows,
        "cases": written.count,
        "left_out": left_out,
        "head": head._asdict(),
        "chain_holds": holds,
    }


def _write_chain(services: Services, grant: Grant[Installation], target: Path, after: Head, head: Head, progress: Steps) -> bool:
    """Write the rows between two places, and say whether they lead from the one to the other."""
    holds, (place, last) = True, after
    with (target / "chain.jsonl").open("w", encoding="utf-8", newline="\n") as file:
        while place < head.seq:
            read = partial(evidence_export.lines, grant=grant, after=place, until=head.seq)
            lines = services.database.read_sync(read)
            if not lines:
                return False
            holds = holds and all(evidence_export.linked(last, lines))
            file.writelines(f"{text}\n" for _, text, _ in lines)
            place, _, last = lines[-1]
            progress(f"{place - after.seq:,} rows")
    return holds


def _write_head(services: Services, target: Path, ends: dict[str, object]) -> None:
    text = json.dumps(ends, indent=1, sort_keys=True).encode() + b"\n"
    signature, public = services.authenticator.signer.seal(text)
    (target / "head.json").write_bytes(text)
    (target / "head.sig").write_bytes(signature)
    (target / "signer.pem").write_bytes(public)


def _write_cases(
    services: Services, grant: Grant[Installation], target: Path, cases: Cases, after: int, progress: Steps
) -> _Written:
    written, place = _Written(target, cases), after
    end: int | None = place
    while end is not None:
        place = end
        read = partial(replaying.recorded, grant=grant, after=place, since=None, limit=PAGE)
        page = services.database.read_sync(read)
        written.add(cases.of(page))
        progress(f"{written.count:,} decisions")
        end = page.last_seq
    written.end()
    return written


def _name(policies: Policies) -> str:
    """The hash of the bundle; for a connection, its id and a hash of its grants as well."""
    if policies.connection is None:
        return policies.bundle
    return f"{policies.bundle}-{policies.connection}-{sha256(' '.join(policies.grants).encode()).hexdigest()[:12]}"
