"""Which way imports go, and what may be done in one place only."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

from gateway import errors
from gateway.errors import GatewayError
from tests.world import ROOT

FILES = sorted((ROOT / "gateway").rglob("*.py"))
TREES = {file.relative_to(ROOT).as_posix(): ast.parse(file.read_text()) for file in FILES}


def test_the_layers_hold() -> None:
    command = shutil.which("lint-imports", path=str(Path(sys.executable).parent))
    assert command is not None
    done = subprocess.run([command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_facts_are_made_with_the_standard_library_alone() -> None:
    files = {file.name: _imported(ast.parse(file.read_text())) for file in (ROOT / "derive").rglob("*.py")}
    assert {name: used for name, used in files.items() if used - sys.stdlib_module_names - {"derive"}} == {}


def test_every_package_that_is_imported_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *(line for extra in project["optional-dependencies"].values() for line in extra)]
    declared, provides = {line.partition("==")[0] for line in lines}, packages_distributions()
    trees = (ast.parse(file.read_text()) for room in ("gateway", "tests") for file in (ROOT / room).rglob("*.py"))
    outside = set[str]().union(*map(_imported, trees)) - sys.stdlib_module_names - {"derive", "gateway", "tests"}
    names = {name: {each.lower().replace("_", "-") for each in provides[name]} for name in sorted(outside)}
    assert [name for name, packages in names.items() if declared.isdisjoint(packages)] == []


def test_every_module_says_what_it_is_in_one_line() -> None:
    said = {file: ast.get_docstring(tree) for file, tree in TREES.items()}
    assert [file for file, text in said.items() if not text or len(text.splitlines()[0]) > 130] == []


def test_no_module_is_named_for_nothing_in_particular() -> None:
    nothing = {"utils", "util", "helpers", "helper", "manager", "base", "common", "misc"}
    assert [file for file in TREES if Path(file).stem in nothing] == []


def test_no_module_is_a_hall() -> None:
    assert [str(file.relative_to(ROOT)) for file in FILES if len(file.read_text().splitlines()) > 300] == []


def test_the_first_conftest_imports_nothing_that_is_measured() -> None:
    """A worker of pytest-xdist reads it before it measures: the lines that an import runs would count as never run."""
    tree = ast.parse((ROOT / "tests" / "conftest.py").read_text())
    at_once = ast.Module([node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)], [])
    assert _imported(at_once) == {"__future__", "collections", "hypothesis", "pathlib", "pytest", "typing"}


def test_every_error_has_its_status_and_title() -> None:
    found = {
        name: (kind.status, kind.title)
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, GatewayError) and kind is not GatewayError
    }
    assert found == {
        "Invalid": (400, "invalid request"),
        "Unauthenticated": (401, "unauthenticated"),
        "InvalidToken": (401, "unauthenticated"),
        "Forbidden": (403, "forbidden"),
        "StepUpRequired": (403, "step-up required"),
        "NotFound": (404, "not found"),
        "Conflict": (409, "conflict"),
        "TooLarge": (413, "too large"),
        "TooManyRequests": (429, "too many requests"),
        "Unavailable": (503, "unavailable"),
        "Stale": (503, "unavailable"),
        "Late": (503, "unavailable"),
    }


def _imported(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=modules):
                names |= {alias.name.partition(".")[0] for alias in modules}
            case ast.ImportFrom(module=str(module), level=0):
                names.add(module.partition(".")[0])
    return names
