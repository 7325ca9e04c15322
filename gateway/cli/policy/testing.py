"""Testing policies: every case, how deep the cases go, and what they would notice."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gateway.cli.exits import DIFFERENCE, DONE, FINDING, USAGE, CommandError
from gateway.cli.output import bold, print_json, print_prose, progress
from gateway.cli.policy.verb import add_folder, add_verb, finding_json, folder_of, place
from gateway.policy.cases import Case, CaseResult, run_cases
from gateway.policy.coverage import Level, Levels, levels
from gateway.policy.folder import Folder
from gateway.policy.junit import as_junit
from gateway.policy.lines import case_lines
from gateway.policy.matrix import Row, matrix, table
from gateway.policy.mutate import Score, Survivor, mutate
from gateway.policy.selection import selection


def add_verbs(verbs: Any) -> None:
    """Put `test`, `mutate` and `matrix` into the parser of `policy`."""
    test = add_verb(
        verbs,
        "test",
        _test,
        "ask every case and compare the answer",
        about="Cases are `*_test.json` files among the policies or beside them, in the format of the Cedar CLI's `run-tests`.",
        examples=(
            "test",
            "test -k 'peer.read_context and not owner'",
            "test --dir my --coverage --fail-under 95",
        ),
        exits="0 every answer is as written, 1 one is not, or less is covered than --fail-under says",
    )
    add_folder(test)
    test.add_argument("-k", dest="only", metavar="EXPR", default="", help="only cases that match: words with and, or, not, ( )")
    test.add_argument("--junit", type=Path, metavar="FILE", help="also write the results as JUnit XML")
    test.add_argument("--coverage", action="store_true", help="also say how deep the cases go, and what they leave out")
    test.add_argument("--fail-under", type=int, metavar="PERCENT", help="how much must be covered, from 0 to 100")
    mistakes = add_verb(
        verbs,
        "mutate",
        _mutate,
        "make small mistakes in the policies and see whether the cases notice",
        about="Each policy is dropped, each comparison and boolean turned, each scope widened. What no case notices is printed.",
        examples=("mutate --fail-under 100", "mutate --dir my --sample 200"),
        exits="0 done, whatever no case notices; 1 there is no case, or less is noticed than --fail-under says",
    )
    add_folder(mistakes)
    mistakes.add_argument("--fail-under", type=int, metavar="PERCENT", help="how much must be noticed, from 0 to 100")
    mistakes.add_argument("--sample", type=int, metavar="N", help="only N of the mistakes, always the same ones")
    golden = add_verb(
        verbs,
        "matrix",
        _matrix,
        "print who is answered what on what, over the entities of the cases",
        about="Keep the table beside the policies, and a change to them is reviewed as the change to the table.",
        examples=("matrix > matrix.txt", "matrix --check matrix.txt"),
        exits="0 done, 1 there is no case, 3 the table is not the one in FILE",
    )
    add_folder(golden)
    golden.add_argument("--check", type=Path, metavar="FILE", help="compare with a table kept before, and print what differs")


def percent(given: argparse.Namespace) -> int:
    """What `--fail-under` asks for."""
    asked: int = 0 if given.fail_under is None else given.fail_under
    if not 0 <= asked <= 100:
        raise CommandError(f"`--fail-under` must be from 0 to 100, got `{asked}`", USAGE)
    return asked


def _cases(folder: Folder) -> list[Case]:
    """The cases of a folder, of which one without any has nothing to ask."""
    cases = folder.cases()
    if not cases:
        raise CommandError("no case is there: nothing was tested")
    return cases


def _test(given: argparse.Namespace) -> int:
    least = percent(given)
    folder = folder_of(given)
    bundle = folder.bundle()
    cases = _cases(folder)
    try:
        chosen = list(filter(selection(given.only), cases))
    except ValueError as wrong:
        raise CommandError(f"`-k`: {wrong}", USAGE) from wrong
    if not chosen:
        raise CommandError("no case matches `-k`: nothing was tested")
    with progress("asking") as shown:
        results = []
        for at in range(0, len(chosen), 100):
            results += run_cases(bundle, chosen[at : at + 100])
            shown(len(results), len(chosen))
    covered = None
    if given.coverage or given.fail_under is not None:
        with progress("measuring how deep the cases go") as shown:
            shown(f"{len(chosen):,} cases")
            covered = levels(bundle, chosen)
    if given.junit is not None:
        given.junit.write_text(as_junit(results), "utf-8")
    if given.json:
        print_json(_json(folder, results, covered))
    else:
        _print(folder, results, covered)
    under = covered is not None and covered.percent < least
    if under and not given.json and covered is not None:
        print(f"covered is {covered.percent} %, less than --fail-under {least}")
    return FINDING if under or not all(result.passed for result in results) else DONE


def _mutate(given: argparse.Namespace) -> int:
    least = percent(given)
    if given.sample is not None and given.sample < 1:
        raise CommandError(f"`--sample` must be at least 1, got `{given.sample}`", USAGE)
    folder = folder_of(given)
    with progress("asking the cases of every mistake") as shown:
        score = mutate(folder.bundle(), _cases(folder), sample=given.sample, progress=shown)
    if given.json:
        print_json({"total": score.total, "noticed": score.killed, "percent": score.percent, "survivors": _survivors(score)})
    else:
        for survivor in score.survivors:
            print_prose(f"{place(folder, survivor.file, survivor.line)} {survivor.id}\n{survivor.diff}\n")
        print(bold(f"{score.killed} of {score.total} mistakes are noticed: {score.percent} %"))
    return FINDING if score.percent < least else DONE


def _survivors(score: Score) -> list[dict[str, object]]:
    return [{name: getattr(survivor, name) for name in Survivor.__slots__} for survivor in score.survivors]


def _matrix(given: argparse.Namespace) -> int:
    folder = folder_of(given)
    with progress("asking every pair") as shown:
        shown("all actions")
        rows = matrix(folder.bundle(), _cases(folder))
    made = table(rows)
    changed = None if given.check is None else _changed(given.check, made)
    if given.json:
        fields = [{name: getattr(row, name) for name in Row.__slots__} for row in rows]
        print_json({"rows": fields, "changed": changed})
    elif changed is None:
        print(made, end="")
    else:
        for line in changed:
            print_prose(line)
    return DIFFERENCE if changed else DONE


def _changed(file: Path, made: str) -> list[str]:
    kept = file.read_text("utf-8").splitlines()
    return list(difflib.unified_diff(kept, made.splitlines(), str(file), "now", lineterm="", n=2))


def _print(folder: Folder, results: Sequence[CaseResult], covered: Levels | None) -> None:
    failed = [result for result in results if not result.passed]
    for result in failed:
        print_prose(f"{_place(folder, result)} {result.case.name}")
        for failure in result.failures:
            print_prose(f"    {failure}")
    print(bold(f"{len(results) - len(failed)} of {len(results)} cases hold"))
    if covered is not None:
        for level in covered.all:
            print(f"  {level.name.ljust(8)}  {level.covered:>5} of {level.total}")
            for finding in level.missing:
                print_prose(f"      {place(folder, finding.file, finding.line)} {finding.policy_id} {finding.message}")
        print(f"covered: {covered.percent} %")


def _json(folder: Folder, results: Sequence[CaseResult], covered: Levels | None) -> dict[str, object]:
    shown: dict[str, object] = {
        "passed": sum(result.passed for result in results),
        "failed": sum(not result.passed for result in results),
        "cases": [_case_json(folder, result) for result in results],
    }
    if covered is not None:
        shown["coverage"] = {"percent": covered.percent, **{level.name: _level_json(folder, level) for level in covered.all}}
    return shown


def _case_json(folder: Folder, result: CaseResult) -> dict[str, object]:
    case, verdict = result.case, result.verdict
    return {
        "name": case.name,
        "file": case.file,
        "number": case.number,
        "control": case.control or None,
        "passed": result.passed,
        "failures": list(result.failures),
        "decision": "allow" if verdict.allowed else "deny",
        "deny_kind": verdict.deny_kind,
        "policies": list(verdict.policies),
        "errors": list(verdict.errors),
    }


def _level_json(folder: Folder, level: Level) -> dict[str, object]:
    missing = [finding_json(folder, finding) for finding in level.missing]
    return {"covered": level.covered, "total": level.total, "missing": missing}


def _place(folder: Folder, result: CaseResult) -> str:
    path = folder.case_file(result.case)
    return place(folder, result.case.file, case_lines(path.read_text("utf-8"))[result.case.number - 1])
