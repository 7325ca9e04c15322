"""The command line as a whole: everything has help, and every client command is an operation of the gateway."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from typing import get_args

import pytest

from gateway.cli.command import Command, Place
from gateway.cli.commands import COMMANDS
from gateway.cli.main import build_parser
from gateway.operations.registry import OPERATIONS
from tests.cli.conftest import Command as Run

LOCAL = {
    "init",
    "serve",
    "demo",
    "tour",
    "derive",
    "backup",
    "erase",
    "login",
    "openapi",
    "doctor",
    "bench",
    "audit verify",
    "key recover",
    "key rotate-signing",
    "policy replay",
    "policy prove",
    "policy changes",
    "evidence",
    "mcp config",
    *(f"policy {verb}" for verb in "validate fmt new copy test mutate matrix show explain plan index diff export".split()),
}
PROGRAMS = "for programs that hold a key: the command line shows it as it is"
OLDER = "an older address of an operation that has a command"
PLATFORMS = "called by the server of a platform"
NETWORK = "called by the bridge of a network of agents"
CLIENTS = "for AuthZEN clients, which are programs that hold a key"
SET_UP = "a platform is set up over HTTP, by whoever develops it"
#: Operations that no command asks, each with why.
WITHOUT_COMMAND = {
    "session.sign_in": PROGRAMS,
    "session.exchange_human_key": PROGRAMS,
    "session.exchange_agent_key": PROGRAMS,
    "session.refresh": "always refused",
    "session.claim": "for the page that a platform sends a person to",
    "session.end": "commands hold a key and no token; `key revoke` ends that",
    "me.read": "`login` asks it",
    "openapi.read": "`openapi` prints the same, without a gateway",
    "resource.metadata": PROGRAMS,
    "resource.mcp_metadata": PROGRAMS,
    "me.reauth_begin": "the two methods are in the help of `--confirm`",
    "me.change_password": "a password does not belong on a command line",
    "approval.request_alias": OLDER,
    "approval.status": OLDER,
    "approval.approve": OLDER,
    "approval.deny": OLDER,
    "platform_app.list": SET_UP,
    "platform_app.create": SET_UP,
    "platform_app.rotate_key": SET_UP,
    "platform_app.delete": SET_UP,
    "platform_template.list": SET_UP,
    "platform_template.create": SET_UP,
    "platform.upsert_user": PLATFORMS,
    "platform.bootstrap": PLATFORMS,
    "platform.reissue_claim": PLATFORMS,
    "platform.read_connection": PLATFORMS,
    "platform.list_approvals": PLATFORMS,
    "platform.read_approval": PLATFORMS,
    "memory.forget_connection": "`forget --connection` asks its other address",
    "remote_connection.explain": "`memory visible --id` asks it",
    "arp.health": NETWORK,
    "arp.search_notes": NETWORK,
    "arp.read_note": NETWORK,
    "arp.query_knowledge": NETWORK,
    "arp.chat": NETWORK,
    "authzen.evaluate": CLIENTS,
    "authzen.evaluate_all": CLIENTS,
    "authzen.search_subjects": CLIENTS,
    "authzen.search_resources": CLIENTS,
    "authzen.search_actions": CLIENTS,
    "authzen.metadata": CLIENTS,
    "authzen.metadata_of_path": CLIENTS,
    "audit.verify": "`audit verify` and `admin verify` walk the whole chain",
}
#: Commands that print no data a script could want, or nothing but JSON.
WITHOUT_JSON = {"login", "openapi"}


def leaves(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    nested = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not nested:
        yield " ".join(words), parser
    for action in nested:
        for name, child in action.choices.items():
            yield from leaves(child, (*words, name))


ALL = dict(leaves(build_parser()))


def placeholders(path: str) -> str:
    return re.sub(r"{\w+}", "{}", path)


def test_the_commands_are_the_local_ones_and_the_table() -> None:
    assert ALL.keys() == LOCAL | {command.name for command in COMMANDS}
    assert len(COMMANDS) == len({(command.noun, command.verb) for command in COMMANDS})


def test_every_operation_has_a_command_or_a_reason_for_none() -> None:
    asked = {(command.method, placeholders(command.path)) for command in COMMANDS}
    without = {operation.name for operation in OPERATIONS if (operation.method, placeholders(operation.path)) not in asked}
    assert without == WITHOUT_COMMAND.keys()


@pytest.mark.parametrize("name", ALL)
def test_every_command_has_help_in_all_its_parts(name: str, command: Run) -> None:
    asked = command(*name.split(), "--help")
    assert (asked.code, asked.err) == (0, "")
    assert asked.out.startswith(f"usage: peergate {name} ")
    assert "WITH_" not in asked.out  # how the code calls what the flag holds
    assert ALL[name].description
    assert all(action.help for action in ALL[name]._actions)


@pytest.mark.parametrize("name", sorted(ALL.keys() - WITHOUT_JSON))
def test_every_command_prints_json_when_asked(name: str) -> None:
    assert "--json" in ALL[name]._option_string_actions


def test_help_lists_every_noun_and_the_exit_codes(command: Run) -> None:
    asked = command("--help")
    assert asked.code == 0
    assert all(f"    {name.split()[0]}" in asked.out for name in ALL)
    assert (
        "exit codes: 0 done, 1 a finding or a denial, 2 bad usage, 3 a difference found, 4 the store refuses to open" in asked.out
    )


@pytest.mark.parametrize(
    "words", ["", "peer", "nonsense", "peer nonsense", "init --nonsense", "peer show", "peer list --limit x"]
)
def test_bad_usage_ends_with_two(words: str, command: Run) -> None:
    assert command(*words.split()).code == 2


def test_the_version_is_printed(command: Run) -> None:
    assert command("--version").out.startswith("peergate ")


@pytest.mark.parametrize("asked", COMMANDS, ids=lambda command: command.name)
def test_a_client_command_sends_what_its_operation_reads(asked: Command) -> None:
    served = {(operation.method, placeholders(operation.path)): operation for operation in OPERATIONS}
    operation = served[(asked.method, placeholders(asked.path))]
    places: dict[str, set[str]] = {place: set() for place in get_args(Place)}
    for argument in asked.arguments:
        places[argument.place].add(argument.name)
    assert places["path"] - {"memory_id"} == set(re.findall(r"{(\w+)}", asked.path)) - {"memory_id"}
    assert places["query"] <= set(operation.query)
    assert places["body"] | places["json"] | places["file"] | asked.always.keys() <= set(operation.fields)
