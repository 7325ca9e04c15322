"""The pytest plugin: each case of a policy folder is a test, so that `pytest policies/` asks them all.

Collected are `*_test.json` files in, or beside, a directory called `policies` that holds Cedar files and has a
`schema.cedarschema` in, beside or above it; and those under the directory that `--peergate-policies` names, whatever its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

# INVARIANT: the package is not imported before a file of cases is met. pytest loads plugins before anything else, and a
# session that has none should neither pay for this one nor lose the coverage of what it imports.
if TYPE_CHECKING:
    from gateway.policy.bundle import Bundle
    from gateway.policy.cases import Case, CaseResult

SUFFIX, POLICIES, SCHEMA = "_test.json", "policies", "schema.cedarschema"
BUNDLES = pytest.StashKey[dict[Path, "Bundle"]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names a directory of policies."""
    group = parser.getgroup("peergate", "policy cases")
    group.addoption("--peergate-policies", metavar="DIR", type=Path, help="take the *_test.json files under DIR for policy cases")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> CaseFile | None:
    """Collect a file of cases, and leave every other file to whoever knows it."""
    if not file_path.name.endswith(SUFFIX):
        return None
    policies = _policies_of(file_path, parent.config.getoption("--peergate-policies"))
    if policies is None:
        return None
    file: CaseFile = CaseFile.from_parent(parent, path=file_path)
    file.policies = policies
    return file


class CaseFile(pytest.File):
    """A file of cases and the directory of the policies that they are asked of."""

    policies: Path

    def collect(self) -> Iterator[CaseItem]:
        """Yield a test a case; a folder that does not load, or a file that holds no cases, is an error of collection."""
        from gateway.policy.cases import CaseError, read_cases
        from gateway.policy.finding import PolicyError

        try:
            bundle = self._bundle()
            cases = read_cases(self.policies, self.path)
        except (PolicyError, CaseError) as wrong:
            raise self.CollectError(str(wrong)) from wrong
        for case in cases:
            item: CaseItem = CaseItem.from_parent(self, name=case.name)
            item.case, item.bundle = case, bundle
            yield item

    def _bundle(self) -> Bundle:
        """The policies of the folder, loaded once a session."""
        from gateway.policy.folder import find

        known = self.session.stash.setdefault(BUNDLES, {})
        if self.policies not in known:
            known[self.policies] = find(self.policies).bundle()
        return known[self.policies]


class CaseFailed(Exception):
    """A case was answered otherwise than it says."""

    def __init__(self, result: CaseResult) -> None:
        super().__init__("; ".join(result.failures))
        self.result = result


class CaseItem(pytest.Item):
    """One case."""

    case: Case
    bundle: Bundle

    def runtest(self) -> None:
        """Ask the case and compare the answer."""
        from gateway.policy.cases import run_case

        result = run_case(self.bundle, self.case)
        if not result.passed:
            raise CaseFailed(result)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return what was asked, where it is written, and how the answer differs."""
        if not isinstance(excinfo.value, CaseFailed):
            return super().repr_failure(excinfo, style)
        request = self.case.request
        asked = f"{request['principal']} {request['action']} {request['resource']}"
        lines = [f"{self.path}:{self._line()}: {self.case.name}", f"  {asked}"]
        return "\n".join([*lines, *(f"  {failure}" for failure in excinfo.value.result.failures)])

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where the case stands; lines count from 0 here."""
        return self.path, self._line() - 1, self.case.name

    def _line(self) -> int:
        from gateway.policy.lines import case_lines

        return case_lines(self.path.read_text("utf-8"))[self.case.number - 1]


def _policies_of(file: Path, named: Path | None) -> Path | None:
    """The directory of the policies that a file holds cases of, None when it holds no cases."""
    if named is not None and file.is_relative_to(named.resolve()):
        return named.resolve()
    inside = next((above for above in file.parents if above.name == POLICIES and _speaks(above)), None)
    beside = file.parent / POLICIES
    return inside or (beside if _speaks(beside) else None)


def _speaks(policies: Path) -> bool:
    """Whether a directory holds Cedar files and has a schema in it, beside it or above it."""
    if not policies.is_dir() or not any((at / SCHEMA).is_file() for at in (policies, *policies.parents)):
        return False
    return next(policies.rglob("*.cedar"), None) is not None
