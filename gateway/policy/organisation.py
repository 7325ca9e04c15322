"""An organisation's own policies: named apart from all others, bounded, and only ever narrowing those of the product."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from unicodedata import category

from cedarpy import pst

from gateway.policy import guard
from gateway.policy.bundle import Bundle
from gateway.policy.finding import Finding, PolicyError
from gateway.policy.text import Piece, split, tokens

MAX_BYTES = 256 * 1024
#: Each is evaluated for every question that it could match, and is in memory once a kind of question.
MAX_POLICIES_A_TEXT, MAX_POLICIES = 200, 1_000
#: How the id of every policy of an organisation starts; the id of the stored policy follows, then its own.
PREFIX = "org/"
#: The group of actions that no policy of an organisation speaks of: it could lock out whoever can take it back.
GOVERNANCE = "governance"
# INVARIANT: it stands before every clause of theirs, so that one that errs does not err for governance: an error denies.
BOUND = f' unless {{ action in Action::"{GOVERNANCE}" }}'
REASONS = {
    "permit": "A policy of the organisation permits this.",
    "forbid": "A policy of the organisation forbids this.",
}
OWN_ID = re.compile(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*")
ID_CHARACTERS, REASON_CHARACTERS = 100, 500
#: Of Unicode: control characters, what turns the direction of a line or has no width, the ends of lines, what is nothing.
UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
#: How the ids of others start.
RESERVED = ("guardrails/", "grant/", PREFIX)
#: Annotations that say which reason of several is given, and with which code: the words of the product's own answers.
NOT_THEIRS = ("precedence", "reason_code")


def extend(base: Bundle, texts: Mapping[str, str]) -> Bundle:
    """Returns `base` narrowed by the texts of an organisation, by the id of each stored policy; raises `PolicyError`.

    The policies in a text get ids `org/<stored id>/<their @id, or their place from 1>`. Their forbids count; their permits are
    checked as strictly and then left out, so that nothing an organisation writes opens anything.
    """
    findings: list[Finding] = []
    if sum(map(len, texts.values())) > guard.MAX_BYTES:
        findings.append(Finding("", 0, "", f"all policies of the organisation together are longer than {guard.MAX_BYTES} bytes"))
    count = sum(len(split(text)) for text in texts.values() if len(text) <= MAX_BYTES)
    if count > MAX_POLICIES:
        findings.append(Finding("", 0, "", f"the organisation has more than {MAX_POLICIES} policies"))
    files: dict[str, str] = {}
    for stored_id, text in sorted(texts.items()):
        file = f"{PREFIX}{stored_id}"
        try:
            files[file] = _rewritten(file, text, findings)
        except guard.GuardError as error:
            findings.append(Finding(file, 0, "", str(error)))
    if findings:
        raise PolicyError(findings)
    bundle = base.extended(files)
    if findings := list(_unbounded(bundle, files)):
        raise PolicyError(findings)
    return bundle.without(*_permits(bundle, files))


def holds_permits(text: str) -> bool:
    """Returns whether a text that loads holds a permit, which opens nothing."""
    return any(_effect(piece) == "permit" for piece in split(text))


def stored_id(policy_id: str) -> str | None:
    """Returns the id of the stored policy that a policy comes from; None when it is named like none.

    Settings of an organisation have policies of the product that are named alike: no stored id is like theirs.
    """
    return policy_id.split("/")[1] if policy_id.startswith(PREFIX) else None


def _permits(bundle: Bundle, files: Collection[str]) -> list[str]:
    """The ids of what is a permit, as Cedar reads it, in some files of a bundle."""
    return [id_ for id_, info in bundle.policies.items() if info.file in files and info.effect == "permit"]


def _rewritten(file: str, text: str, findings: list[Finding]) -> str:
    """Returns a text in which each policy bears its whole id and a reason, and its bound; lines stay where they are."""
    guard.check_size(text)
    if len(text.encode()) > MAX_BYTES:
        raise guard.GuardError(f"longer than {MAX_BYTES} bytes")
    made, line = "", 1
    pieces = split(text)
    if len(pieces) > MAX_POLICIES_A_TEXT:
        raise guard.GuardError(f"more than {MAX_POLICIES_A_TEXT} policies")
    for number, piece in enumerate(pieces, start=1):
        policy = _policy(file, number, piece, findings)
        made, line = made + "\n" * (piece.line - line) + policy, piece.line + policy.count("\n")
    return made


def _policy(file: str, number: int, piece: Piece, findings: list[Finding]) -> str:
    notes, at = _annotations(piece.text)
    own = notes.get("id")
    for message in _refused(notes):
        findings.append(Finding(file, piece.line, own[2] if own else "", message))
    text = piece.text
    if "reason" not in notes:
        text = f'{text[:at]}@reason("{REASONS[_effect(piece)]}") {text[at:]}'
    whole = f'@id("{file}/{own[2] if own else number}")'
    text = f"{text[: own[0]]}{whole}{text[own[1] :]}" if own else f"{whole} {text}"
    return _bounded(text)


def _effect(piece: Piece) -> str:
    return "forbid" if piece.text.startswith("forbid", _annotations(piece.text)[1]) else "permit"


def _bounded(text: str) -> str:
    """Returns a policy with its bound right after its scope; text without a scope is left for the parser to refuse."""
    depth = 0
    _, start = _annotations(text)
    for token in tokens(text[start:]):
        depth += (token[0] == "(") - (token[0] == ")")
        if depth == 0 and token[0] == ")":
            end = start + token.end()
            return f"{text[:end]}{BOUND}{text[end:]}"
    return text


def _annotations(text: str) -> tuple[dict[str, tuple[int, int, str]], int]:
    """Returns the annotations before a policy, each with where it starts, where it ends and what it says, and their end.

    Text that is malformed is left for the parser to refuse.
    """
    found: dict[str, tuple[int, int, str]] = {}
    words = list(tokens(text))
    at = 0
    while at + 1 < len(words) and words[at][0] == "@":
        last, value = at + 1, ""
        if [word[0] for word in words[at + 2 : at + 5 : 2]] == ["(", ")"]:
            last, value = at + 4, words[at + 3][0].strip('"')
        found[words[at + 1][0]] = words[at].start(), words[last].end(), value
        at = last + 1
    return found, words[at].start() if at < len(words) else len(text)


def _refused(notes: Mapping[str, tuple[int, int, str]]) -> Iterator[str]:
    if "id" in notes:
        own = notes["id"][2]
        if not OWN_ID.fullmatch(own) or len(own) > ID_CHARACTERS:
            yield f"`@id` is not made of letters, digits and `_.-/`, at most {ID_CHARACTERS}"
        elif own.startswith(RESERVED):
            yield f"`@id` is reserved: none of an organisation starts with {', '.join(f'`{start}`' for start in RESERVED)}"
    if len(notes.get("reason", (0, 0, ""))[2]) > REASON_CHARACTERS:
        yield f"`@reason` is longer than {REASON_CHARACTERS} characters"
    for name in NOT_THEIRS:
        if name in notes:
            yield f"`@{name}` is for policies of the product"


def _unbounded(bundle: Bundle, files: Collection[str]) -> Iterator[Finding]:
    """Yields what was not read as it was written here, which a text that Cedar reads otherwise than we do could bring about,
    and what speaks of nothing but governance."""
    within = bundle.types.groups
    governed = {action.id for action, groups in within.items() if any(group.id == GOVERNANCE for group in groups)}
    for id_, info in bundle.policies.items():
        if info.file in files:
            tree = bundle.trees[id_]
            if not id_.startswith(f"{info.file}/") or tree.clauses[:1] != (_bound(),):
                yield Finding(info.file, info.line, id_, "cannot be told apart from other policies")
            elif not any(id_ in bundle.members[action] for action in bundle.actions - governed):
                yield Finding(info.file, info.line, id_, "speaks of no action that a policy of an organisation decides")
            elif any(category(character) in UNSEEN for character in info.reason):
                yield Finding(
                    info.file, info.line, id_, "`@reason` holds a character that is not seen, such as the end of a line"
                )


@cache
def _bound() -> pst.Clause:
    return guard.parse("permit (principal, action, resource)" + BOUND + ";").clauses[0]
