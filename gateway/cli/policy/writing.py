"""Writing policies: check what is written, format it, begin a new action."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from gateway.cli.exits import DONE, FINDING, USAGE, CommandError
from gateway.cli.output import print_json, print_prose
from gateway.cli.policy.request import moment
from gateway.cli.policy.verb import add_folder, add_verb, finding_json, folder_of, place
from gateway.policy import files
from gateway.policy.cases import CaseError
from gateway.policy.finding import Finding, PolicyError
from gateway.policy.folder import Folder
from gateway.policy.format import formatted
from gateway.policy.idle import idle
from gateway.policy.scaffold import scaffold


def add_verbs(verbs: Any) -> None:
    """Put `validate`, `fmt` and `new` into the parser of `policy`."""
    validate = add_verb(
        verbs,
        "validate",
        _validate,
        "check the schema, the policies and the form of the cases, and print one line a finding",
        about="Checked are Cedar's strict types, the house rules, what would crash or trick the evaluator, what cannot become a "
        "query, and policies that change nothing. Each line is `file:line id message`.",
        examples=("validate", "validate --dir my --no-house-rules"),
        exits="0 nothing found, 1 a finding",
    )
    add_folder(validate).add_argument(
        "--no-house-rules", action="store_true", help="leave out how our own files are written: `@id`, `@reason`, names, format"
    )
    fmt = add_verb(
        verbs,
        "fmt",
        _fmt,
        "format the policy files as Cedar does, in place",
        examples=("fmt --dir my", "fmt --check"),
        exits="0 done, 1 a file is not formatted (with --check) or cannot be read",
    )
    add_folder(fmt).add_argument("--check", action="store_true", help="change nothing, and name the files that would change")
    new = add_verb(
        verbs,
        "new",
        _new,
        "begin the policy file of an action, with cases",
        about="The permit permits nothing until its condition is written, and the first case fails until then.",
        examples=("new peer.read --dir my",),
        exits="0 made, 1 there is one already",
    )
    add_folder(new).add_argument("action", metavar="ACTION", help="an action of the schema, such as peer.read")


def _validate(given: argparse.Namespace) -> int:
    folder = folder_of(given)
    findings = list(_findings(folder, house_rules=not given.no_house_rules))
    if given.json:
        print_json({"findings": [finding_json(folder, finding) for finding in findings]})
    else:
        for finding in findings:
            at = place(folder, finding.file, finding.line)
            print_prose(" ".join(word for word in (at, finding.policy_id, finding.message.replace("\n", " ")) if word))
    return FINDING if findings else DONE


def _findings(folder: Folder, *, house_rules: bool) -> Iterable[Finding]:
    try:
        bundle = folder.bundle(house_rules=house_rules)
    except PolicyError as wrong:
        yield from wrong.findings
        return
    yield from sorted(idle(bundle))
    try:
        folder.cases()
    except CaseError as wrong:
        file, _, message = str(wrong).partition(": ")
        yield Finding(file, 0, "", message)


def _fmt(given: argparse.Namespace) -> int:
    folder = folder_of(given)
    texts = files.read_texts(folder.policies)
    made = {file: formatted(file, text) for file, text in texts.items()}
    changed = [file for file, text in made.items() if text != texts[file]]
    if not given.check:
        for file in changed:
            (folder.policies / file).write_text(made[file], "utf-8")
    if given.json:
        print_json({"changed": changed, "written": not given.check})
    else:
        for file in changed:
            print_prose(f"{place(folder, file)} {'is not formatted' if given.check else 'formatted'}")
    return FINDING if given.check and changed else DONE


def _new(given: argparse.Namespace) -> int:
    folder = folder_of(given)
    schema = folder.bundle().vocabulary
    if given.action not in schema.principals:
        near = ", ".join(sorted(schema.principals)) if len(schema.principals) < 20 else "`peergate policy index` lists them"
        raise CommandError(f"`{given.action}` is no action of the schema; known: {near}", USAGE)
    made = scaffold(folder.bundle(), given.action, moment(folder, datetime.now(UTC)))
    if there := [place(folder, file) for file in made if (folder.policies / file).exists()]:
        raise CommandError(f"there is already {' and '.join(there)}")
    for file, text in made.items():
        path = folder.policies / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    if given.json:
        print_json({"made": list(made)})
    else:
        for file in made:
            print(f"made {place(folder, file)}")
        print("write the condition of the permit, make the cases say who does it and who does not, then `peergate policy test`")
    return DONE
