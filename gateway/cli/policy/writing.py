"""Writing policies: copy them, check what is written, format it, begin a new one."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gateway.cli.exits import DONE, FINDING, USAGE, CommandError
from gateway.cli.output import print_json, print_prose
from gateway.cli.policy.request import moment
from gateway.cli.policy.verb import add_folder, add_verb, finding_json, folder_of, own_folder_of, place
from gateway.policy import files
from gateway.policy.bundle import SCHEMA
from gateway.policy.cases import SUFFIX, CaseError
from gateway.policy.finding import Finding, PolicyError
from gateway.policy.folder import POLICIES, Folder
from gateway.policy.format import formatted
from gateway.policy.idle import idle
from gateway.policy.scaffold import appended, narrowing, scaffold

NAME = re.compile(r"[a-z][a-z0-9_]*")


def add_verbs(verbs: Any) -> None:
    """Put `validate`, `fmt`, `new` and `copy` into the parser of `policy`."""
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
    add_folder(fmt, without="needed, but for --check").add_argument(
        "--check", action="store_true", help="change nothing, and name the files that would change"
    )
    new = add_verb(
        verbs,
        "new",
        _new,
        "begin the policy file of an action, or a forbid in it, with cases",
        about="The permit permits nothing until its condition is written, and the first case fails until then; so the forbid, "
        "which refuses nothing, and whose cases ask what the first allowed case of the action asks.",
        examples=("new peer.read --dir my", "new peer.read_context --forbid office_hours --dir my"),
        exits="0 made, 1 there is one already",
    )
    add_folder(new, without="needed").add_argument("action", metavar="ACTION", help="an action of the schema, such as peer.read")
    new.add_argument("--forbid", metavar="NAME", help="put a forbid of this name beside what the action has, with two cases")
    copy = add_verb(
        verbs,
        "copy",
        _copy,
        "copy the policies, their cases and the schema into a new directory, to be changed there",
        examples=("copy mine", "copy candidate --dir mine"),
        exits="0 copied, 1 the directory is there already",
    )
    add_folder(copy).add_argument("target", metavar="TARGET", type=Path, help="the new directory")


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
    folder = folder_of(given) if given.check else own_folder_of(given)
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
    folder = own_folder_of(given)
    schema = folder.bundle().vocabulary
    if given.action not in schema.principals:
        near = ", ".join(sorted(schema.principals)) if len(schema.principals) < 20 else "`peergate policy index` lists them"
        raise CommandError(f"`{given.action}` is no action of the schema; known: {near}", USAGE)
    if given.forbid is not None:
        return _new_forbid(given, folder)
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


def _new_forbid(given: argparse.Namespace, folder: Folder) -> int:
    if not NAME.fullmatch(given.forbid):
        raise CommandError(f"`--forbid` is a name of small letters, digits and `_`, got `{given.forbid}`", USAGE)
    bundle = folder.bundle()
    text, cases = narrowing(bundle, given.action, given.forbid, folder.cases())
    path = given.action.replace(".", "/")
    policies, asked = (folder.policies / f"{path}{suffix}" for suffix in (files.SUFFIX, SUFFIX))
    if (there := bundle.policies.get(f"{path}/{given.forbid}")) is not None:
        raise CommandError(f"there is already {there.id} in {place(folder, there.file, there.line)}")
    before = policies.read_text("utf-8") if policies.exists() else ""
    policies.parent.mkdir(parents=True, exist_ok=True)
    policies.write_text(f"{before}\n{text}" if before else text, "utf-8")
    at = place(folder, f"{path}{files.SUFFIX}", before.count("\n") + 2 if before else 1)
    if cases:
        asked.write_text(appended(asked.read_text("utf-8") if asked.exists() else "[", cases), "utf-8")
    names = [str(case["name"]) for case in cases]
    if given.json:
        print_json({"made": f"{path}/{given.forbid}", "at": at, "cases": names})
        return DONE
    print(f"made {path}/{given.forbid} in {at}")
    for name in names:
        print_prose(f"case {name}")
    print("write its condition, change what the cases ask, then `peergate policy validate` and `test`")
    return DONE


def _copy(given: argparse.Namespace) -> int:
    folder, target = folder_of(given), given.target
    if target.exists():
        raise CommandError(f"{target} is there already")
    inside = [path for path in sorted(folder.policies.rglob("*")) if path.suffix in (files.SUFFIX, ".json")]
    for path in inside:
        to = target / POLICIES / path.relative_to(folder.policies)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(path.read_bytes())
    (target / SCHEMA).write_bytes(folder.schema.read_bytes())
    if given.json:
        print_json({"directory": str(target), "files": len(inside) + 1})
    else:
        print(f"copied {len(inside)} files of policies and cases, and the schema, to {target}")
    return DONE
