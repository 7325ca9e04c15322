"""Policy text as policies: each parsed alone, with its id, its annotations and the place where it stands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType

from cedarpy import pst

from gateway.policy import guard
from gateway.policy.finding import Finding
from gateway.policy.text import Piece, split

#: Cedar's error messages quote a policy id in backticks, which is how `failed` finds it again.
POLICY_ID = re.compile(r"[^`\x00-\x1f\x7f]{1,200}")
PRECEDENCE = re.compile(r"[0-9]{1,4}")
FAILED_POLICY = re.compile(r"\Aerror while evaluating policy `([^`]+)`")


@dataclass(frozen=True, slots=True)
class PolicyInfo:
    """One policy: what it is called, what its annotations say to people, and where it stands; `line` counts from 1.

    `reason` is the sentence of `@reason`, empty when there is none; `precedence` orders the forbids of one answer, lowest
    first. `text` is the policy as it is written, without the comments around it.
    """

    id: str
    effect: str
    reason: str
    reason_code: str | None
    precedence: int | None
    file: str
    line: int
    text: str
    annotations: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy beside its syntax tree, which does not leave this package."""

    info: PolicyInfo
    tree: pst.Template


def read(file: str, text: str) -> tuple[list[Policy], list[Finding]]:
    """Returns the policies of one file and what keeps the others from being read.

    Each policy is parsed alone, so nothing depends on its position: cedarpy would name it by that. One without an `@id`
    is called by its file and its number in it.
    """
    policies: list[Policy] = []
    findings: list[Finding] = []
    try:
        guard.check_size(text)
        pieces = split(text)
    except guard.GuardError as error:
        return [], [Finding(file, 0, "", str(error))]
    for number, piece in enumerate(pieces, start=1):
        try:
            policies.append(_policy(file, number, piece))
        except ValueError as error:
            findings.append(Finding(file, piece.line, "", str(error)))
    if not pieces:
        findings.append(Finding(file, 0, "", "holds no policy"))
    return policies, findings


def failed(errors: Iterable[str]) -> tuple[str, ...]:
    """Returns the ids of the policies of which Cedar's error messages speak, sorted."""
    return tuple(sorted({id_ for error in errors for id_ in FAILED_POLICY.findall(error)}))


def stem(file: str) -> str:
    """Returns the path of a policy file without its suffix: how the ids in it start."""
    return str(PurePosixPath(file).with_suffix(""))


def _policy(file: str, number: int, piece: Piece) -> Policy:
    tree = guard.parse(piece.text)
    notes = MappingProxyType(dict(sorted(tree.annotations.items())))
    policy_id = notes.get("id") or f"{stem(file)}#{number}"
    if not POLICY_ID.fullmatch(policy_id):
        raise ValueError("`@id` has a backtick or a control character, or over 200 characters")
    precedence = notes.get("precedence")
    if precedence is not None and not PRECEDENCE.fullmatch(precedence):
        raise ValueError("`@precedence` is not a whole number from 0 to 9999")
    info = PolicyInfo(
        id=policy_id,
        effect=tree.effect,
        reason=notes.get("reason", ""),
        reason_code=notes.get("reason_code"),
        precedence=None if precedence is None else int(precedence),
        file=file,
        line=piece.line,
        text=piece.text,
        annotations=notes,
    )
    return Policy(info, tree)
