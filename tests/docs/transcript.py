"""Transcripts in documents: every command of a `console` block is run, and the answer compared but for ids and times."""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from string import Template

import pytest

from gateway.cli.main import main
from tests.docs.test_documents import FENCED

#: Commands, each with what it answered.
Answers = list[tuple[str, str]]
#: Told the kind of a block and its text; a command and its answer.
Edit = Callable[[str, str], object]
After = Callable[[str, str], object]

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
LOOP = re.compile(r"for (\w+) in (\S+); do (.*); done")
#: What differs from run to run, by the word that stands for it.
VARYING = (
    ("ID", re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")),
    ("HASH", re.compile(r"\b[0-9a-f]{64}\b")),
    ("TIME", re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")),
)
#: Set, it has the tests write what is answered into the documents instead of comparing it.
WRITE = "WRITE_DOCUMENTS"


class Shell:
    """As much of a shell as the documents use; variables are those that it is made with and no other.

    Each `peergate` is run in this process, as the command that people start: a variable before it is set for it alone, its
    answer goes into a file, or into the command line of another.
    """

    def __init__(self, **variables: str) -> None:
        self.variables = variables

    def answer(self, line: str) -> str:
        """What a terminal would show below a command; an exit code that is not 0 is its last line.

        What a variable holds is shown by its name.
        """
        if found := LOOP.fullmatch(line):
            name, pattern, command = found.groups()
            answers = [self.answer(command.replace(f'"${name}"', str(path))) for path in Path().glob(pattern)]
            return "".join(sorted(answers))  # in which order hashes stand is chance
        words = shlex.split(line.replace("\\\n", " "))
        target = words[words.index(">") + 1] if ">" in words else None
        code, out, err = self._run([self._filled(word) for word in (words[: words.index(">")] if target else words)])
        if target is not None:
            Path(target).write_text(out, "utf-8")
            out = ""
        shown = f"{out}{err}" + (f"exit {code}\n" if code else "")
        for name, value in self.variables.items():
            shown = re.sub(re.escape(value) + '("?)( *)', partial(_named, name, value), shown)
        return shown

    def _filled(self, word: str) -> str:
        if word.startswith("$("):
            return self._run(shlex.split(word[2:-1]))[1].rstrip("\n")
        return Template(word).safe_substitute(self.variables)

    def _run(self, words: list[str]) -> tuple[int, str, str]:
        with pytest.MonkeyPatch.context() as patch:
            while "=" in words[0]:
                name, _, value = words.pop(0).partition("=")
                patch.setenv(name, value)
            if words[0] == "python":
                ended = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True, check=False)
                return ended.returncode, ended.stdout, ended.stderr
            assert words[0] == "peergate", words
            with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
                try:
                    code = main(words[1:])
                except SystemExit as ended:  # argparse, for what it does not know
                    code = int(ended.code or 0)
            return code, out.getvalue(), err.getvalue()


def _named(name: str, value: str, found: re.Match[str]) -> str:
    """The name in the place of the value, and columns of a table stay where they are."""
    narrower = " " * (len(value) - len(name)) if len(found[2]) > 1 else ""
    return f"{name}{found[1]}{found[2]}{narrower}"


def commands(text: str) -> list[tuple[str, str]]:
    """Every command of a document with the answer that is shown, in their order."""
    return [found for block in BLOCK.findall(text) for found in COMMAND.findall(block)]


def normal(answers: Answers) -> Answers:
    """Answers in which what differs from run to run is a word, and spaces that only align a table are two."""
    made = []
    for line, answer in answers:
        for word, pattern in VARYING:
            answer = pattern.sub(word, answer)
        made.append((line, re.sub(r" {2,}", "  ", answer)))
    return made


def play(
    document: Path, shell: Shell, *, edit: Edit = lambda kind, text: None, after: After = lambda line, answer: None
) -> Answers:
    """Run every command of a document in its order; `edit` is told the other blocks where they stand, `after` each answer."""
    answers: Answers = []
    for kind, text in FENCED.findall(document.read_text("utf-8")):
        if kind != "console":
            edit(kind, text)
            continue
        for line, _ in COMMAND.findall(text):
            answers.append((line, shell.answer(line)))
            after(*answers[-1])
    return answers


def compare(document: Path, answers: Answers) -> None:
    """Fail where a document shows another answer than was given; `WRITE_DOCUMENTS=1` writes what was given into it instead."""
    if WRITE in os.environ:
        waiting = iter(answers)
        text = document.read_text("utf-8")
        written = BLOCK.sub(
            lambda block: "```console\n" + COMMAND.sub(lambda _: "$ {}\n{}".format(*next(waiting)), block[1]) + "```", text
        )
        document.write_text(written, "utf-8")
    shown, given = normal(commands(document.read_text("utf-8"))), normal(answers)
    assert [line for line, _ in shown] == [line for line, _ in given]
    stale = [(*one, answer) for one, (_, answer) in zip(shown, given, strict=True) if one[1] != answer]
    assert stale == []  # command, what is shown, what was answered
