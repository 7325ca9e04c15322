"""Explanations as people read them: of a decision in the log, or of a request over a folder of policies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gateway.cli.command import Asked
from gateway.cli.output import bold, print_prose

Fields = Mapping[str, Any]
#: How the place of a policy is shown, given its file and its line.
At = Callable[[str, int], str]


def show_decision(answer: Any, _: Asked | None = None) -> None:
    """A decision of the log with its explanation."""
    decision = answer["decision"]
    print_prose(f"decision {decision['id']}  {decision['at']}")
    if (asker := decision["details"].get("asked_by")) is not None:
        print_prose(f"asked by {asker}")
    principal, resource = decision["principal"], decision["resource"]
    print_request(_uid(principal), decision["action"], _uid(resource))
    print_explanation(decision["explanation"])
    print_prose(f"policies {decision['bundle']}")


def print_request(principal: str, action: str, resource: str) -> None:
    """Who asked to do what on what."""
    print_prose(f"{principal} {action} {resource}")


def print_explanation(found: Fields, *, at: At = lambda file, line: f"{file}:{max(line, 1)}") -> None:
    """The answer, what decided it and where that stands, and what was nearly met; what is kept back or not kept is said."""
    print(bold("allowed" if found["deny_kind"] is None else f"denied: {found['deny_kind']}"))
    for word in ("note", "missing"):
        if found.get(word) is not None:
            print_prose(f"  {found[word]}")
    for cited in found["reasons"]:
        _print_policy(f"  {cited['effect'] or 'policy'} {cited['policy_id']}", cited, at)
    for cited in found["errors"]:
        _print_policy(f"  failed {cited['policy_id']}", {**cited, "reason": "could not be evaluated: nothing is allowed"}, at)
    if found["nearest"] is not None:
        _print_nearest(found["nearest"], at)


def _print_nearest(near: Fields, at: At) -> None:
    unmet = near["unmet"]
    _print_policy(f"nearest permit: {near['policy']['policy_id']}", near["policy"], at)
    line = f"  (line {unmet['line']})" if unmet["line"] not in (None, near["policy"]["line"]) else ""
    print_prose(f"  it lacks: {unmet['text']}{' (could not be evaluated)' if unmet['erred'] else ''}{line}")
    for path, value in unmet["values"].items():
        print_prose(f"      {path} is {'not there' if value is None else value}")
    for path in unmet["redacted"]:
        print_prose(f"      {path} is kept back: a person chose it as a label")
    if near["lacking"] > 1:
        print(f"  and {near['lacking'] - 1} more")


def _print_policy(begin: str, cited: Fields, at: At) -> None:
    print_prose(f"{begin}  {_place(cited, at)}")
    if cited["reason"] is not None:
        print_prose(f"      {cited['reason']}")


def _place(cited: Fields, at: At) -> str:
    own = cited["organisation_policy"]
    if own is not None:
        called = f"`{own['name']}` " if own["name"] is not None else ""
        return f"(policy {called}{own['id']} of the organisation, line {cited['line'] or '?'})"
    if cited["origin"] == "grant":
        return "(made from a grant)"
    return at(cited["file"], cited["line"] or 0) if cited["file"] is not None else "(where it stood is not kept)"


def _uid(uid: Fields) -> str:
    return f'{uid["type"]}::"{uid["id"]}"'
