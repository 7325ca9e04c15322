"""The table of tools, in the order in which they are listed, and what each kind of session has of it."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.mcp import approval_tools, memory_tools, person_tools
from gateway.mcp.tool import Tool
from gateway.model.caller import PrincipalType

TOOLS: tuple[Tool, ...] = (*person_tools.TOOLS, *approval_tools.TOOLS, *memory_tools.TOOLS)


def tools_of(kind: PrincipalType) -> Mapping[str, Tool]:
    """The tools of a session of this kind, by name: all for an agent, memory for a connection, none for anybody else."""
    return {tool.name: tool for tool in TOOLS if kind in tool.kinds}
