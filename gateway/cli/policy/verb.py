"""A verb of `peergate policy`: its parser, the folder it works on, and what each refusal ends it with."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill
from typing import Any

from gateway import wiring
from gateway.cli.exits import FINDING, USAGE, CommandError
from gateway.policy.bundle import SCHEMA
from gateway.policy.cases import CaseError
from gateway.policy.export import ExportError
from gateway.policy.finding import Finding, PolicyError
from gateway.policy.folder import Folder, find
from gateway.policy.slice import SliceError
from gateway.policy.value import ValueRefused

WIDTH = 100
Run = Callable[[argparse.Namespace], int]


def add_verb(verbs: Any, name: str, run: Run, help: str, *, examples: Sequence[str], exits: str, about: str = "") -> Any:
    """Add a parser whose help ends with examples and exit codes."""
    shown = "\n".join(f"  peergate policy {example}" for example in examples)
    parser: argparse.ArgumentParser = verbs.add_parser(
        name,
        help=help,
        description=fill(f"{help[0].upper()}{help[1:]}. {about}".rstrip(), WIDTH),
        epilog=f"examples:\n{shown}\n\n" + fill(f"exit codes: {exits}; 2 bad usage", WIDTH),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=lambda given: _guarded(run, given))
    return parser


def add_folder(parser: Any, *, without: str = "default: the shipped") -> Any:
    """The flag for the folder; `without` says what it is without the flag."""
    says = f"a directory with `policies/` and a schema at or above it ({without})"
    parser.add_argument("--dir", type=Path, metavar="DIR", help=says)
    return parser


def folder_of(given: argparse.Namespace) -> Folder:
    """The folder that was asked for, else the one shipped with the product."""
    return folder_at(given.dir if given.dir is not None else wiring.shipped())


def own_folder_of(given: argparse.Namespace) -> Folder:
    """The folder that was asked for, to be written into; never the one shipped with the product, which is the program's."""
    if given.dir is None:
        raise CommandError(
            "this writes, and the shipped policies stay as they are: name a folder of yours with `--dir` "
            "(`peergate policy copy mine` makes one)",
            USAGE,
        )
    return folder_at(given.dir)


def add_old(parser: Any) -> None:
    """The folder that another is compared with."""
    says = "the folder that decides now (default: the shipped)"
    parser.add_argument("old", metavar="OLD", type=Path, nargs="?", help=says)


def old_of(given: argparse.Namespace) -> Folder:
    """The folder that another is compared with, as `add_old` takes it."""
    return folder_at(given.old if given.old is not None else wiring.shipped())


def folder_at(directory: Path) -> Folder:
    """The folder that a directory is; one that is none is bad usage."""
    try:
        return find(directory)
    except PolicyError as wrong:
        [finding] = wrong.findings
        raise CommandError(f"{finding.file}: {finding.message}", USAGE) from wrong


def place(folder: Folder, file: str, line: int = 0) -> str:
    """Where something stands, as editors take it: a path from here when it is below, and a line; 0 stands for the first."""
    path = folder.schema if file == SCHEMA else folder.policies / file
    if not path.exists():
        path = folder.policies.parent / file  # cases may lie beside the policies
    try:
        shown = path.relative_to(Path.cwd())
    except ValueError:
        shown = path
    return f"{shown}:{max(line, 1)}"


def finding_json(folder: Folder, finding: Finding) -> dict[str, object]:
    """A finding for scripts."""
    at, _, line = place(folder, finding.file, finding.line).rpartition(":")
    return {"file": at, "line": int(line), "id": finding.policy_id or None, "message": finding.message}


@contextmanager
def refusals() -> Iterator[None]:
    """Turn what is wrong with a folder into sentences and an exit code."""
    try:
        yield
    except PolicyError as wrong:
        raise CommandError(f"the policies do not load; `peergate policy validate` says where:\n{wrong}") from wrong
    except (CaseError, SliceError, ExportError, ValueRefused) as wrong:
        raise CommandError(str(wrong)) from wrong
    except BrokenPipeError:  # who read has had enough, which is no refusal
        raise
    except OSError as wrong:
        raise CommandError(f"{wrong.filename}: {wrong.strerror}", FINDING) from wrong


def _guarded(run: Run, given: argparse.Namespace) -> int:
    with refusals():
        return run(given)
