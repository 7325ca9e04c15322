"""The cases of an organisation's own policy, asked on this machine before its text is sent anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gateway import limits, wiring
from gateway.cli.exits import FINDING, CommandError
from gateway.cli.output import counted, note
from gateway.cli.policy.verb import folder_at, refusals
from gateway.operations.candidate import CANDIDATE, lay_over
from gateway.policy.bundle import Bundle
from gateway.policy.cases import SUFFIX, Case, read_cases, run_cases
from gateway.policy.finding import PolicyError
from gateway.policy.organisation import PREFIX

#: The gateway gives the text an id of its own.
NAMED = f"{PREFIX}{CANDIDATE}/"


def check_new(given: Mapping[str, Any], body: dict[str, object]) -> None:
    """As `check_own`; a policy without a name is called after its file."""
    check_own(given, body)
    body.setdefault("name", Path(given["cedar_text"]).stem[: limits.NAME_CHARACTERS])


def check_own(given: Mapping[str, Any], body: Mapping[str, object]) -> None:
    """Ask the cases beside a file as if its text were in force over the policies of a folder.

    Raises:
        CommandError: the text does not load, or a case does not hold.
    """
    path = Path(given["cedar_text"])
    folder = folder_at(Path(given["dir"]) if given["dir"] is not None else wiring.shipped())
    with refusals():
        base = folder.bundle()
        bundle = _with(base, path, str(body["cedar_text"]))
        beside = path.with_name(path.stem + SUFFIX) if given["cases"] is None else Path(given["cases"])
        if given["cases"] is None and not beside.exists():
            note(f"there is no {beside}: nothing says what this text must do")
            return
        cases = [_named(case, bundle) for case in read_cases(folder.policies, beside)]
        failed = [(r.case.name, why) for r in run_cases(bundle, cases) for why in r.failures]
    if not failed and not given["as_json"]:
        print(f"{counted(len(cases), 'case')} {'holds' if len(cases) == 1 else 'hold'}")
    if failed:
        lines = "\n".join(f"    {name}: {why.replace(NAMED, '')}" for name, why in failed)
        raise CommandError(f"nothing was sent: cases in {beside} do not hold\n{lines}", FINDING)


def _with(base: Bundle, path: Path, text: str) -> Bundle:
    try:
        return lay_over(base, text)
    except PolicyError as wrong:
        lines = "\n".join(f"    {path}:{max(found.line, 1)} {found.message}" for found in wrong.findings)
        raise CommandError(f"nothing was sent: the text does not load\n{lines}", FINDING) from wrong


def _named(case: Case, bundle: Bundle) -> Case:
    """A case names a policy of the text by its own `@id`."""
    return replace(case, reason=frozenset(NAMED + id_ if NAMED + id_ in bundle.policies else id_ for id_ in case.reason))
