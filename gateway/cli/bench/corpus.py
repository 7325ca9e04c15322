"""A corpus of real text in many projects: the docstrings of Python's standard library, tagged by written rules.

It is made where it is needed and kept nowhere; the same Python gives the same corpus.
"""

from __future__ import annotations

import ast
import re
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

from gateway.cli.bench.records import id_of
from gateway.model.memory import Layer, Memory, Tier
from gateway.model.records import Agent

#: Not part of what a library says of itself, or not on every machine.
LEFT_OUT = frozenset({"test", "tests", "idlelib", "lib2to3", "site-packages", "turtledemo", "ensurepip", "pydoc_data"})
#: Topics, and the modules that each is about. What is in none of them has no topic.
TOPICS = {
    "network": "asyncio email ftplib http imaplib ipaddress poplib selectors smtplib socket socketserver ssl urllib xmlrpc",
    "text": "codecs difflib email encodings gettext locale re string textwrap",
    "data": "bz2 configparser csv dbm gzip json lzma mailbox pickle plistlib shelve sqlite3 tarfile xml zipfile",
    "concurrency": "asyncio concurrent multiprocessing queue sched subprocess threading",
    "numbers": "datetime calendar decimal fractions numbers random statistics",
    "language": "ast bdb code dis doctest importlib inspect pdb pydoc tokenize traceback typing unittest",
    "screens": "curses tkinter turtle",
    "files": "fileinput glob os pathlib shutil tarfile tempfile zipfile",
}
SPEAKS_OF_PEOPLE = re.compile(r"\b(password|passwd|credential|login|secret|address|user name|username)", re.IGNORECASE)
LAYER_OF: dict[type[ast.AST], Layer] = {
    ast.Module: "session",
    ast.ClassDef: "chunk",
    ast.FunctionDef: "fact",
    ast.AsyncFunctionDef: "timeline",
}

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Passage:
    """One docstring, and how it is remembered. `name` is where it stands, such as `json.decoder.JSONDecoder.decode`."""

    name: str
    text: str
    layer: Layer
    project_id: str | None
    tags: tuple[str, ...]
    classification: Tier


def as_memory(passage: Passage, agent: Agent, now: datetime) -> Memory:
    """A passage as a row of an agent's memory, up to a day older than `now`; its id and its age are always the same."""
    row_id = id_of("passage", f"{passage.name} {passage.text}")
    return Memory(
        id=row_id,
        org_id=agent.org_id,
        agent_id=agent.id,
        layer=passage.layer,
        text=passage.text,
        project_id=passage.project_id,
        tags=passage.tags,
        classification=passage.classification,
        connection_id=None,
        source_did=None,
        created_at=now - timedelta(seconds=int(row_id[:4], 16)),
    )


@cache
def corpus() -> tuple[Passage, ...]:
    """Every passage, ordered by where it stands.

    The project is the package or module; a private one is in no project, and so untagged. The tags are the topics of the
    package. What speaks of passwords, logins or addresses is `pii`; what is private is `confidential`; a module and a class are
    `public`; the rest is `internal`.
    """
    root = Path(sysconfig.get_paths()["stdlib"])
    files = (file for file in root.rglob("*.py") if not LEFT_OUT & set(file.relative_to(root).parts))
    made = (passage for file in files for passage in _passages(file, file.relative_to(root)))
    # What is written once a platform is one passage.
    return tuple(found for _, found in sorted({(passage.name, passage.text): passage for passage in made}.items()))


def _passages(file: Path, relative: Path) -> Iterator[Passage]:
    module = relative.with_suffix("").parts
    if module[-1] == "__init__":
        module = module[:-1]
    for names, node in _documented(ast.parse(file.read_bytes()), module):
        text = ast.get_docstring(node)
        if text:
            yield _passage(names, node, text)


def _documented(node: ast.AST, names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Documented]]:
    if isinstance(node, Documented):
        names = (*names, node.name) if not isinstance(node, ast.Module) else names
        yield names, node
    for child in ast.iter_child_nodes(node):
        yield from _documented(child, names)


def _passage(names: tuple[str, ...], node: Documented, text: str) -> Passage:
    package = names[0]
    project = None if package.startswith("_") else package.lower()
    topics = [topic for topic, modules in TOPICS.items() if package in modules.split()]
    layer = LAYER_OF[type(node)]
    return Passage(".".join(names), text, layer, project, tuple(sorted(topics)), _tier(names, layer, text))


def _tier(names: tuple[str, ...], layer: Layer, text: str) -> Tier:
    if SPEAKS_OF_PEOPLE.search(text):
        return "pii"
    if names[-1].startswith("_"):
        return "confidential"
    return "public" if layer in ("session", "chunk") else "internal"
