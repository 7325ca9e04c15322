"""Asking policies: which could decide, why a request is answered as it is, and what a listing would ask the store."""

from __future__ import annotations

import argparse
import asyncio
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from gateway.cli.exits import DONE, FINDING, USAGE, CommandError
from gateway.cli.explanation import print_explanation, print_request, show_decision
from gateway.cli.opening import find_settings, opened
from gateway.cli.output import bold, print_json, print_prose
from gateway.cli.policy.request import Asked, case_named, of_case, of_flags, uid_of
from gateway.cli.policy.verb import add_folder, add_verb, folder_of, place
from gateway.operations.decisions import explain_data
from gateway.operations.explanation import shape
from gateway.policy.engine import PolicyEngine
from gateway.policy.explain import Explanation, explain
from gateway.policy.folder import Folder
from gateway.policy.index import Entry, as_markdown, index, vocabulary_markdown
from gateway.policy.source import PolicyInfo
from gateway.policy.translatable import ROWS
from gateway.store.condition import MEMORY, render


def add_verbs(verbs: Any) -> None:
    """Put `show`, `explain`, `plan` and `index` into the parser of `policy`."""
    show = add_verb(
        verbs,
        "show",
        _show,
        "print every policy that could match an action, guardrails first, or one policy by its id",
        examples=("show peer.read_context", "show guardrails/observers"),
        exits="0 done",
    )
    add_folder(show).add_argument("action", metavar="ACTION|ID", help="an action of the schema, or the id of a policy")
    explain = add_verb(
        verbs,
        "explain",
        _explain,
        "decide one request and say why: the policies, their reasons, the permit that was nearest",
        about="Entities come from a file, or from the first cast of the cases that knows both ends of the request. DECISION is "
        "read from the log of a stopped gateway, and explained by the policies that decided it; of one that runs, "
        "`peergate decisions show` tells the same.",
        examples=(
            "explain DECISION --data ./data",
            "explain --case 'peer.read_context: the owner does'",
            """explain --principal 'Agent::"listed"' --action peer.read --resource 'Peer::"peer"'""",
        ),
        exits="0 allowed, 1 denied, or there is no such decision, 4 the store refuses to open",
    )
    explain.add_argument("decision", metavar="DECISION", nargs="?", help="the id of a decision in the log")
    explain.add_argument("--data", metavar="DIR", help="with DECISION: the data directory (default: PEERGATE_DATA)")
    _add_request(add_folder(explain))
    explain.add_argument("--principal", metavar="T::ID", help="who asks")
    explain.add_argument("--action", help="an action of the schema, such as peer.read")
    explain.add_argument("--resource", metavar="T::ID", help="what is asked about")
    plan = add_verb(
        verbs,
        "plan",
        _plan,
        "print the condition that a listing would put into its query",
        about="What a remote agent is granted is not in the entities: for a `Connection` name a case that says it.",
        examples=(
            """plan memory.search 'Agent::"agent"'""",
            """plan memory.search 'Connection::"partner"' --case 'a public row'""",
        ),
        exits="0 some row could be listed, 1 none could",
    )
    _add_request(add_folder(plan))
    plan.add_argument("action", metavar="ACTION", help="an action on rows, such as memory.search")
    plan.add_argument("principal", metavar="PRINCIPAL", help="who asks, as T::ID")
    listed = add_verb(
        verbs,
        "index",
        _index,
        "print what decides each action and where that stands, as a Markdown table",
        examples=("index", "index --vocabulary"),
        exits="0 done",
    )
    add_folder(listed).add_argument(
        "--vocabulary", action="store_true", help="print what the schema names instead: entity types, attributes, actions"
    )


def _add_request(parser: Any) -> None:
    parser.add_argument("--case", metavar="NAME", help="take request, entities and grants of this case, by (part of) its name")
    parser.add_argument("--entities", type=Path, metavar="FILE", help="a JSON list of entities, as Cedar writes them")
    parser.add_argument("--context", metavar="JSON", help="the context (default: this minute in UTC, where the schema wants one)")


def _show(given: argparse.Namespace) -> int:
    folder = folder_of(given)
    if (one := folder.bundle().policies.get(given.action)) is not None:
        if given.json:
            print_json(_info_json(one))
        else:
            print_prose(one.text)  # alone, so that it can be handed on as it is
        return DONE
    entry = _entry(folder, given.action)
    if given.json:
        print_json(_entry_json(folder, entry))
        return DONE
    print(f"{bold(entry.action)}: {' or '.join(entry.principals)} on {' or '.join(entry.resources)}")
    print(f"in the groups: {', '.join(entry.groups) or 'none'}; cases: {entry.cases}")
    for heading, infos in (("guardrails, which forbid whatever is permitted", entry.guardrails), ("policies", entry.policies)):
        print(f"\n{bold(f'{heading} ({len(infos)})')}")
        for info in infos:
            print_prose(f"\n// {place(folder, info.file, info.line)}\n{info.text}")
    return DONE


def _explain(given: argparse.Namespace) -> int:
    if given.decision is not None or given.data is not None:
        return _explain_recorded(given)
    folder = folder_of(given)
    engine = PolicyEngine(folder.bundle(), salt=b"")
    if given.case is not None:
        asked = of_case(engine, case_named(folder.cases(), given.case))
    else:
        if missing := [f"--{name}" for name in ("principal", "action", "resource") if getattr(given, name) is None]:
            raise CommandError(f"name a request: {', '.join(missing)} missing, or --case", USAGE)
        principal, resource = uid_of("--principal", given.principal), uid_of("--resource", given.resource)
        asked = of_flags(engine, folder, given, principal, resource)
    found = explain(engine, asked.query, asked.slice, asked.grants)
    made = _explanation_json(asked, found)
    if given.json:
        print_json(made)
    else:
        print_request(str(asked.query.principal), asked.query.action, str(asked.query.resource))
        print_explanation(made, at=partial(place, folder))
    return DONE if found.allowed else FINDING


def _explain_recorded(given: argparse.Namespace) -> int:
    beside = ("dir", "case", "entities", "context", "principal", "action", "resource")
    if given.decision is None or any(getattr(given, name) is not None for name in beside):
        raise CommandError("name a DECISION of a data directory, or a request over a folder: not both", USAGE)
    with opened(find_settings({"data": given.data})) as services:
        decision = asyncio.run(explain_data(services, given.decision))
    print_json({"decision": decision}) if given.json else show_decision({"decision": decision})
    return DONE if decision["decision"] == "allow" else FINDING


def _explanation_json(asked: Asked, found: Explanation) -> dict[str, object]:
    query = asked.query
    made = shape(found, names={}, redacted=False)
    decision = "allow" if found.allowed else "deny"
    request = {"principal": str(query.principal), "action": query.action, "resource": str(query.resource)}
    return {**request, "decision": decision, **made}


def _plan(given: argparse.Namespace) -> int:
    folder = folder_of(given)
    bundle = folder.bundle()
    resources = bundle.vocabulary.resources.get(given.action, frozenset())
    rows = [row for row in ROWS if row in resources]
    if not rows:
        raise CommandError(f"`{given.action}` is not about rows, which are {', '.join(ROWS)}: nothing lists by it", USAGE)
    engine = PolicyEngine(bundle, salt=b"")
    asked = _asked_for_rows(engine, folder, given)
    plan = engine.plan(asked.query, rows[0], asked.slice, asked.grants)
    sql, params = render(plan.condition, MEMORY, datetime.now(UTC).replace(tzinfo=None))
    policies = list(plan.verdict.policies)
    if given.json:
        shown = {"deny_kind": plan.verdict.deny_kind, "policies": policies, "condition": str(plan.condition)}
        print_json({**shown, "sql": sql, "params": [str(p) if isinstance(p, datetime) else p for p in params]})
    else:
        print(bold("some rows could be listed" if plan.verdict.allowed else f"none: {plan.verdict.deny_kind}"))
        print_prose(f"policies left to decide: {', '.join(policies) or 'none'}\n\nWHERE {sql}")
        for number, value in enumerate(params, 1):
            print_prose(f"  ${number} = {value!r}")
    return DONE if plan.verdict.allowed else FINDING


def _asked_for_rows(engine: PolicyEngine, folder: Folder, given: argparse.Namespace) -> Asked:
    principal = uid_of("PRINCIPAL", given.principal)
    if given.case is not None:
        asked = of_case(engine, case_named(folder.cases(), given.case))
        if (asked.query.principal, asked.query.action) != (principal, given.action):
            raise CommandError(f"that case is of {asked.query.principal} and {asked.query.action}", USAGE)
        return asked
    return of_flags(engine, folder, given, principal, principal)  # the resource of a plan is left unknown


def _index(given: argparse.Namespace) -> int:
    folder = folder_of(given)
    bundle = folder.bundle()
    if given.json:
        print_json([_entry_json(folder, entry) for entry in index(bundle, folder.cases())])
    else:
        print_prose(
            (vocabulary_markdown(bundle) if given.vocabulary else as_markdown(index(bundle, folder.cases()))).rstrip("\n")
        )
    return DONE


def _entry(folder: Folder, action: str) -> Entry:
    entries = {entry.action: entry for entry in index(folder.bundle(), folder.cases())}
    if action not in entries:
        near = [name for name in entries if action in name or name.partition(".")[0] == action.partition(".")[0]]
        hint = f"; near it are {', '.join(near)}" if near else ""
        raise CommandError(f"`{action}` is no action of the schema{hint}", USAGE)
    return entries[action]


def _entry_json(folder: Folder, entry: Entry) -> dict[str, object]:
    return {
        "action": entry.action,
        "principals": list(entry.principals),
        "resources": list(entry.resources),
        "groups": list(entry.groups),
        "files": list(entry.files),
        "policies": [_info_json(info) for info in entry.policies],
        "guardrails": [_info_json(info) for info in entry.guardrails],
        "cases": entry.cases,
    }


def _info_json(info: PolicyInfo) -> dict[str, object]:
    return {name: getattr(info, name) for name in ("id", "effect", "reason", "file", "line", "text")}
