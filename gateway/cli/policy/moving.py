"""Policies on the move: what differs between two folders, and what an independent program needs to run the cases."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from gateway.cli.exits import DIFFERENCE, DONE, CommandError
from gateway.cli.output import bold, counted, print_json, print_prose
from gateway.cli.policy.verb import add_folder, add_old, add_verb, folder_at, folder_of, old_of, place
from gateway.policy.bundle import SCHEMA
from gateway.policy.difference import Change, difference
from gateway.policy.export import CASES, POLICIES, export
from gateway.policy.folder import Folder


def add_verbs(verbs: Any) -> None:
    """Put `diff` and `export` into the parser of `policy`."""
    diff = add_verb(
        verbs,
        "diff",
        _diff,
        "compare two folders policy by policy, and say what could allow more than before",
        about="What is written is compared: a permit counts as narrowed only when it keeps every condition it had.",
        examples=("diff candidate", "diff old new --json"),
        exits="0 nothing could allow more, 1 a folder does not load, 3 a permit was added or not seen to be narrowed, a forbid "
        "was removed or not seen to be widened, or the schema changed",
    )
    add_old(diff)
    diff.add_argument("new", metavar="NEW", type=Path, help="the folder that might")
    exported = add_verb(
        verbs,
        "export",
        _export,
        "write the policies, the schema and the cases as the Cedar CLI takes them",
        about=f"DIR gets {POLICIES}, {SCHEMA} and {CASES}: shared casts are written out and grants stand as policies.",
        examples=("export /tmp/evidence", "export out --dir my"),
        exits="0 written, 1 the folder does not load or DIR holds such files already",
    )
    add_folder(exported).add_argument("target", metavar="DIR", type=Path, help="where to write; made when it is not there")


def _diff(given: argparse.Namespace) -> int:
    new = folder_at(given.new)
    changes = list(difference(old_of(given).bundle(), new.bundle()))
    opens = any(change.opens for change in changes)
    if given.json:
        print_json({"opens": opens, "changes": [_json(change) for change in changes]})
    else:
        for change in changes:
            _print(new, change)
        opening = sum(change.opens for change in changes)
        print(f"{counted(len(changes), 'change')}, {opening} of which could allow more than before")
    return DIFFERENCE if opens else DONE


def _print(folder: Folder, change: Change) -> None:
    mark = "!" if change.opens else " "
    what = f"{change.effect} {change.policy_id}" if change.policy_id else "the schema"
    print(bold(f"{mark} {change.kind} {what}  {place(folder, change.file, change.line)}"))
    print_prose("\n".join(f"    {line}" for line in change.text.split("\n")[2:]))


def _json(change: Change) -> dict[str, object]:
    return {name: getattr(change, name) for name in Change.__slots__}


def _export(given: argparse.Namespace) -> int:
    folder = folder_of(given)
    made = export(folder.bundle(), folder.cases())
    if there := [name for name in made if (given.target / name).exists()]:
        raise CommandError(f"{given.target} holds {', '.join(there)} already")
    given.target.mkdir(parents=True, exist_ok=True)
    for name, text in made.items():
        (given.target / name).write_text(text, "utf-8")
    if given.json:
        print_json({"directory": str(given.target), "files": list(made)})
    else:
        print(f"wrote {', '.join(made)} to {given.target}")
        print(f"run them with the Cedar CLI: cedar run-tests --policies {POLICIES} --schema {SCHEMA} --tests {CASES}")
    return DONE
