"""The `peergate` command: one parser for local commands and for the table of client commands."""

from __future__ import annotations

import argparse
import getpass
import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from textwrap import fill
from typing import Any
from urllib.parse import quote

from gateway.authn.keys import REAUTH
from gateway.cli import client, local, policy, policy_changes, policy_prove, policy_replay
from gateway.cli.command import Argument, Asked, Command
from gateway.cli.commands import COMMANDS
from gateway.cli.exits import DONE, USAGE, CommandError
from gateway.cli.output import print_fields, print_json, print_page, print_prose, progress
from gateway.cli.policy.verb import WIDTH

FORMAT = argparse.RawDescriptionHelpFormatter
CONFIRM = "X-Auth-Confirm"
ASKED = "a password is asked for on a terminal, or taken from PEERGATE_CONFIRM"
NOUNS = {
    "agent": "agents and their written rules",
    "peer": "people, what is held about them, and who may read it",
    "memory": "what agents remember, and what others see of it",
    "remote": "remote agents that are connected to yours",
    "grant": "what remote agents may see",
    "approval": "what agents ask humans",
    "decisions": "the decision log",
    "audit": "audit events and the log's hash chain",
    "member": "members and roles",
    "setting": "the organisation's settings",
    "key": "your own keys; recovery of a lost one",
    "totp": "your second factor",
    "connection": "platforms connected to you",
    "admin": "the data directory of a gateway that runs, for its owner",
}
EPILOG = """exit codes: 0 done, 1 a finding or a denial, 2 bad usage, 3 a difference found, 4 the store refuses to open.
`policy prove` and `policy changes` end with 4 where nothing is proved and nothing refuted, also for want of the solver.
client commands take the gateway from PEERGATE_URL and PEERGATE_KEY, from `peergate login`, or from --data DIR while none runs."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = build_parser()
    given = parser.parse_args(arguments)
    if not hasattr(given, "run"):
        given.parser.print_help()
        return USAGE
    try:
        code: int = given.run(given)
        sys.stdout.flush()
    except CommandError as error:
        if getattr(given, "as_json", False):
            print_json(error.problem, to=sys.stderr)
        else:
            print(f"peergate: {error}", file=sys.stderr)
        return error.code
    except BrokenPipeError:  # who read has had enough; what is still buffered goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt:
        return 130
    return code


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = argparse.ArgumentParser(
        prog="peergate",
        description="The authorization gateway between agents and what they know about people.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"peergate {_version()}")
    parser.set_defaults(parser=parser)
    commands = parser.add_subparsers(metavar="COMMAND")
    local.add_commands(commands)
    nouns: dict[str, Any] = {"policy": policy.add_noun(commands)}
    policy_prove.add_verbs(nouns["policy"])
    policy_changes.add_verbs(nouns["policy"])
    for command in COMMANDS:
        if not command.verb:
            _add(commands, command.noun, command)
            continue
        if command.noun not in nouns:
            says = NOUNS[command.noun]
            noun = commands.add_parser(command.noun, help=says, description=f"{says[0].upper()}{says[1:]}.")
            noun.set_defaults(parser=noun)
            nouns[command.noun] = noun.add_subparsers(metavar="VERB")
        _add(nouns[command.noun], command.verb, command)
    local.add_verbs(nouns)
    policy_replay.add_commands(commands, nouns)
    return parser


def _version() -> str:
    try:
        return version("peergate")
    except PackageNotFoundError:
        return "from a checkout"


def _add(verbs: Any, name: str, command: Command) -> None:
    says = fill(f"{command.help[0].upper()}{command.help[1:]}. Asks {command.method} {command.path}.", WIDTH)
    parser = verbs.add_parser(name, help=command.help, description=says, epilog=command.about, formatter_class=FORMAT)
    for argument in command.arguments:
        argument.add_to(parser)
    parser.add_argument("--url", dest="with_url", metavar="URL", help="the gateway's address (default: PEERGATE_URL)")
    parser.add_argument(
        "--key", dest="with_key", metavar="KEY", help="a key (default: PEERGATE_KEY; a flag is seen by others on the machine)"
    )
    parser.add_argument(
        "--data", dest="with_data", metavar="DIR", help="open a stopped gateway's data directory instead of a URL"
    )
    parser.add_argument("--json", dest="as_json", action="store_true", help="print the answer as JSON")
    parser.set_defaults(run=lambda given: _run(command, given))


def _run(command: Command, given: argparse.Namespace) -> int:
    connection = client.find_connection(given.with_url, given.with_key, given.with_data)
    path, query, headers = command.path, {}, {}
    body: dict[str, object] = dict(command.always)
    for argument in command.arguments:
        value = getattr(given, argument.dest)
        if value is None:
            continue
        if argument.name in body and argument.place in ("body", "json"):
            raise CommandError(f"`{argument.flag}`: `{argument.name}` is given already", USAGE)
        match argument.place:
            case "path":
                place, filled = "{" + argument.name + "}", quote(value, safe="")
                path = path.replace(place, filled) if place in path else f"{path}/{filled}"
            case "query":
                query[argument.name] = value
            case "confirm":
                if not value.startswith(REAUTH):
                    raise CommandError(f"`{argument.flag}` takes a {REAUTH} token only: others see a flag; {ASKED}", USAGE)
                headers[CONFIRM] = value
            case "json":
                body[argument.name] = _json(argument, value)
            case "file":
                body[argument.name] = _text(argument.shown, value)
            case "local":
                pass
            case "body":
                body[argument.name] = value
    if command.checks is not None:
        command.checks(vars(given), body)
    sent = None if command.method in ("GET", "DELETE") and not body else body
    ask = partial(_call, command, connection, path, query=query, body=sent)
    try:
        answer = ask(headers=headers)
    except client.NotConfirmed as refused:
        proof = None if CONFIRM in headers else _proof(refused)
        if not proof and CONFIRM not in headers:
            raise CommandError(
                f"{refused}\nset PEERGATE_CONFIRM, or run it on a terminal", refused.code, refused.problem
            ) from None
        if not proof:
            raise
        answer = ask(headers={CONFIRM: proof})
    if command.until is not None:
        answer = _until(command.until, answer, partial(ask, headers=headers), label=command.name)
    asked = Asked(vars(given), partial(_beside, connection))
    code = DONE if command.ends is None else command.ends(answer, asked)
    if not given.as_json:
        _print(command, answer, asked)
    elif answer is not None:
        print_json(answer)
    return code


def _beside(connection: client.Connection, path: str, **query: object) -> Any:
    try:
        return client.call(connection, "GET", path, query=query)
    except CommandError:
        return None


def _call(command: Command, connection: client.Connection, path: str, **request: Any) -> Any:
    """As `client.call`, where a sentence about a field also names the flag that fills it."""
    try:
        return client.call(connection, command.method, path, **request)
    except CommandError as wrong:
        fields: Mapping[str, object] = wrong.problem.get("fields", {})
        named = {re.split(r"[.\[]", field)[0] for field in fields}
        flags = {each.flag for each in command.arguments if each.name in named and each.always is None and not each.positional}
        unsaid = flags - {f"--{field}" for field in fields}
        if not unsaid:
            raise
        raise CommandError(f"{wrong} ({', '.join(sorted(unsaid))})", wrong.code, wrong.problem) from wrong


def _until(member: str, answer: Any, ask: Callable[[], Any], *, label: str) -> Any:
    """Ask again while the member of the answer goes down, and add up the other counts."""
    with progress(label) as shown:
        while answer[member]:
            shown(f"{answer[member]:,} left")
            again = ask()
            if again[member] >= answer[member]:
                return again
            counts = {name: answer[name] + again[name] for name in again if name != member and isinstance(again[name], int)}
            answer = {**again, **counts}
    return answer


def _proof(refused: client.NotConfirmed) -> str | None:
    """The confirmation that the environment holds, or that a person at a terminal types after reading why."""
    proof = os.environ.get("PEERGATE_CONFIRM")
    if proof or not sys.stdin.isatty():
        return proof
    print(f"peergate: {refused}", file=sys.stderr)
    try:
        return getpass.getpass("password or rat_ token: ")
    except EOFError:
        return None


def _json(argument: Argument, text: str) -> object:
    if text.startswith("@"):
        text = _text(argument.flag, text[1:])
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as wrong:
        raise CommandError(f"`{argument.flag}` is not JSON: {wrong}", USAGE) from wrong


def _text(flag: str, file: str) -> str:
    try:
        return Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as wrong:
        raise CommandError(f"`{flag}`: cannot read {file}: {wrong}", USAGE) from wrong


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no number")


def _print(command: Command, answer: Any, asked: Asked) -> None:
    if command.shows is not None:
        command.shows(answer, asked)
    elif answer is None:
        print("done")
    elif command.rows is not None and command.rows in answer:
        print_page(answer, answer[command.rows], command.columns)
    elif isinstance(answer.get("context"), str) and "characters" in answer:
        print_prose(answer["context"] or "nothing is known of this person yet")
    else:
        whole = next(iter(answer.values())) if len(answer) == 1 else answer
        print_fields(whole if isinstance(whole, dict) else answer)
    if command.notes is not None:
        command.notes(answer, asked)


if __name__ == "__main__":
    sys.exit(main())
