"""What the commands about agents print for people, where it is not all that the gateway answers."""

from __future__ import annotations

from typing import Any

from gateway.cli.command import Asked
from gateway.cli.output import print_fields, print_prose

DELETED_AGENT = (
    "delete an agent with its keys, observer entries and connections; what it remembers stays readable by owners and admins, "
    "with `peergate memory list --agent ID`, until it is forgotten with `peergate forget`"
)


def show_agent(answer: Any, _: Asked) -> None:
    """A new agent: its id, and its key, which is shown once."""
    print_fields({name: answer[name] for name in ("id", "name", "api_key") if answer.get(name) is not None})


def show_deleted_agent(_: Any, asked: Asked) -> None:
    agent = asked.given["agent_id"]
    print_prose(f"done; what it remembers stays until it is forgotten: peergate memory list --agent {agent}")
