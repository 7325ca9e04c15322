"""The page on MCP says what the table of tools says, and what `peergate mcp config` prints."""

from __future__ import annotations

import json
from pathlib import Path

from gateway.cli.mcp import DEFAULT_URL, config_entries
from gateway.mcp.reference import render
from gateway.mcp.tools import TOOLS
from tests.docs.test_documents import FENCED

PAGE = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text("utf-8")


def test_the_table_of_tools_is_the_table() -> None:
    assert render(TOOLS) in PAGE, "stale: python -m gateway.mcp.reference prints it"


def test_the_entries_are_those_that_are_printed() -> None:
    entries = [json.loads(block) for kind, block in FENCED.findall(PAGE) if kind == "json"]
    assert entries == [*config_entries(DEFAULT_URL).values()]
