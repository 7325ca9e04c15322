"""Documents say what is so: commands exist, files exist, links lead somewhere."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

import pytest

from gateway.cli.main import build_parser

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPANS = re.compile(r"`([^`\n]+)`")
LINKS = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
#: A span that names something in this repository; `…` and `*` stand for several names.
PATHS = re.compile(
    r"(?:\.ci|derive|docs|gateway|guardrails|policies|tests)/[\w./*…]*|[\w*.…-]+\.(?:py|md|json|cedarschema|toml|txt)"
)
TOOLS = {"pip", "ruff", "mypy", "lint-imports", "pytest"}

named = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)


def prose(document: Path) -> str:
    return FENCED.sub("", document.read_text("utf-8"))


def commands(document: Path) -> list[list[str]]:
    """Every `peergate` command in the shell blocks and spans of a document, as words."""
    text = document.read_text("utf-8")
    lines = [line for kind, block in FENCED.findall(text) if kind == "sh" for line in block.splitlines()]
    shell = [part for line in lines for part in line.partition("#")[0].split("&&")]
    spans = [span for span in SPANS.findall(FENCED.sub("", text)) if span.startswith("peergate ")]
    split = (shlex.split(part) for part in (*shell, *spans))
    return [words[1:] for words in split if words and Path(words[0]).name == "peergate"]


def unknown(words: list[str]) -> list[str]:
    """The words of a command that the parser does not know, its commands first, its flags after; and the flags that it lacks."""
    parser = build_parser()
    rest = list(words)
    while rest and (nested := [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]):
        if rest[0].startswith("-"):
            break
        found = nested[0].choices.get(rest.pop(0))
        if found is None:
            return words
        parser = found
    lacking = [a.option_strings[0] for a in parser._actions if a.required and a.option_strings]
    mentioned = not rest or "--help" in rest  # and not run
    lacking = [] if mentioned else [flag for flag in lacking if flag not in rest]
    return lacking + [word for word in rest if word.startswith("--") and word not in parser._option_string_actions]


@named
def test_every_command_is_one_that_the_parser_knows(document: Path) -> None:
    assert [(words, unknown(words)) for words in commands(document) if unknown(words)] == []


def test_the_readme_has_commands_to_check() -> None:
    starts = {words[0] for words in commands(ROOT / "README.md")}
    assert {"demo", "init", "serve", "doctor"} <= starts


@named
def test_every_file_that_is_named_exists(document: Path) -> None:
    spans = [span for span in SPANS.findall(prose(document)) if PATHS.fullmatch(span)]
    missing = [span for span in spans if not any(found for place in places(span) for found in ROOT.glob(place))]
    assert spans
    assert missing == []


def places(span: str) -> list[str]:
    """Where a name may stand: from the root, beside the tests named before it, or among the policies."""
    pattern = span.replace("…", "*").rstrip("/").removesuffix(".")
    if pattern.startswith("guardrails/"):
        return [f"policies/{'/'.join(pattern.split('/')[:2])}.cedar"]  # what follows is the policy in it
    return [pattern] if "/" in pattern else [pattern, f"**/{pattern}"]


@named
def test_every_relative_link_leads_somewhere(document: Path) -> None:
    links = [link for link in LINKS.findall(prose(document)) if "://" not in link and not link.startswith(("#", "mailto:"))]
    assert [link for link in links if not (document.parent / link.partition("#")[0]).exists()] == []


def test_the_layout_in_the_readme_is_the_layout() -> None:
    blocks = [block for kind, block in FENCED.findall((ROOT / "README.md").read_text("utf-8")) if not kind]
    layout = next(block for block in blocks if "\n  model/" in block)
    rooms = [
        word.rstrip("/")
        for line in layout.splitlines()
        for word in re.findall(r"^ {2}(\S+)/|(?<= {2})(\w+)/ ", line)
        for word in word
        if word
    ]
    assert rooms
    assert [room for room in rooms if not (ROOT / "gateway" / room).is_dir()] == []


def test_the_licence_is_apache_2() -> None:
    text = (ROOT / "LICENSE").read_text("utf-8")
    assert re.search(r"Apache License\s+Version 2\.0, January 2004", text)
    assert "END OF TERMS AND CONDITIONS" in text
    assert 'license = "Apache-2.0"' in (ROOT / "pyproject.toml").read_text("utf-8")
