"""A policy folder: where policies, the schema that they speak and their cases lie."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gateway.policy.bundle import SCHEMA, Bundle
from gateway.policy.cases import SUFFIX, Case, read_cases
from gateway.policy.finding import Finding, PolicyError

POLICIES = "policies"


@dataclass(frozen=True, slots=True)
class Folder:
    """One schema, the directory of the policies, and the files of cases, which are in that directory or beside it."""

    schema: Path
    policies: Path
    case_files: tuple[Path, ...]

    def bundle(self, *, house_rules: bool = False) -> Bundle:
        """Returns the policies, ready to decide; raises `PolicyError`."""
        return Bundle.load(self.schema, self.policies, house_rules=house_rules)

    def cases(self) -> list[Case]:
        """Returns every case, in the order of the files; raises `CaseError`."""
        return read_cases(self.policies, *self.case_files)

    def case_file(self, case: Case) -> Path:
        """Returns the file that one of the cases stands in."""
        return next(path for path in self.case_files if path.as_posix().endswith(f"/{case.file}"))


def find(directory: Path) -> Folder:
    """Returns the folder that a directory is: it holds `policies/`, or is such a directory itself.

    The schema is the nearest at or above it, so that folders inside one project share one. Raises `PolicyError` for a
    directory that is not there or has no schema.
    """
    root = directory.resolve()
    inside = root / POLICIES
    policies = inside if inside.is_dir() else root
    if not policies.is_dir():
        raise PolicyError([Finding(str(directory), 0, "", "is not a directory")])
    schema = schema_above(policies)
    if schema is None:
        raise PolicyError([Finding(str(directory), 0, "", f"has no `{SCHEMA}`, and neither has any directory above it")])
    beside = sorted(root.glob(f"*{SUFFIX}")) if policies != root else []
    return Folder(schema, policies, (*sorted(policies.rglob(f"*{SUFFIX}")), *beside))


def schema_above(directory: Path) -> Path | None:
    """Returns the nearest schema at or above a directory."""
    return next((found for at in (directory, *directory.parents) if (found := at / SCHEMA).is_file()), None)
