"""`peergate mcp`: the gateway's tools on standard input and output, and what clients want to be told about them."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from gateway.cli import client
from gateway.cli.exits import DONE, USAGE, CommandError
from gateway.cli.output import print_json
from gateway.mcp.stdio import Bridge

#: Stands where the key of an agent belongs: nothing prints a real one.
PLACEHOLDER = "the agent's key (ocv_...)"
DEFAULT_URL = "http://127.0.0.1:8787"


def add_command(commands: Any) -> None:
    parser = commands.add_parser(
        "mcp",
        help="serve the tools of a running gateway to an MCP client, on standard input and output",
        description="Without a VERB, pass MCP messages on to the gateway at PEERGATE_URL, with the agent's key in PEERGATE_KEY.",
    )
    parser.add_argument("--url", dest="with_url", metavar="URL", help="the gateway's address (default: PEERGATE_URL)")
    parser.set_defaults(parser=parser, run=_run)
    config = parser.add_subparsers(metavar="VERB").add_parser(
        "config",
        help="print entries for the configuration of MCP clients",
        description="Print ready entries for the configuration of MCP clients: on stdio, and over HTTP. The key is a "
        "placeholder.",
    )
    config.add_argument("--url", dest="with_url", metavar="URL", help="the gateway's address (default: PEERGATE_URL)")
    config.add_argument("--json", action="store_true", help="print JSON alone")
    config.set_defaults(run=_config)


def _run(given: argparse.Namespace) -> int:
    connection = client.find_connection(given.with_url, None, None)
    if not connection.key.isascii():
        raise CommandError("a key is of ASCII characters", USAGE)
    Bridge(str(connection.url), connection.key).run(sys.stdin.buffer, sys.stdout.buffer)
    return DONE


def _config(given: argparse.Namespace) -> int:
    entries = config_entries(client.find_url(given.with_url) or DEFAULT_URL)
    if given.json:
        print_json(entries)
        return DONE
    print("# on stdio, for a client that starts its servers:")
    print_json(entries["stdio"])
    print("# over HTTP, for a client that speaks streamable HTTP:")
    print_json(entries["http"])
    print("# some clients call the outer member `servers`; the entry is the same.")
    return DONE


def config_entries(url: str) -> dict[str, Any]:
    """What goes into a client's file, for each transport."""
    stdio = {
        "type": "stdio",
        "command": "peergate",
        "args": ["mcp"],
        "env": {"PEERGATE_URL": url, "PEERGATE_KEY": PLACEHOLDER},
    }
    http = {"type": "http", "url": f"{url}/mcp", "headers": {"Authorization": f"Bearer {PLACEHOLDER}"}}
    return {"stdio": {"mcpServers": {"peergate": stdio}}, "http": {"mcpServers": {"peergate": http}}}
