"""The table of tools for people: `python -m gateway.mcp.reference` prints what `docs/mcp.md` holds."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.mcp.tool import Tool

HEAD = "| tool | sessions | arguments (those in brackets may be left out) | operation |\n| --- | --- | --- | --- |\n"


def render(tools: Sequence[Tool]) -> str:
    """The tools as a table of Markdown, in their order."""
    return HEAD + "".join(map(_row, tools))


def _row(tool: Tool) -> str:
    needed = [f"`{argument.name}`" for argument in tool.arguments if argument.required]
    optional = [f"`{argument.name}`" for argument in tool.arguments if not argument.required]
    arguments = ", ".join([*needed, *([f"[{', '.join(optional)}]"] if optional else [])])
    kinds = ", ".join(kind.lower() for kind in tool.kinds)
    return f"| `{tool.name}` | {kinds} | {arguments} | `{tool.operation}` |\n"


if __name__ == "__main__":
    from gateway.mcp.tools import TOOLS

    print(render(TOOLS), end="")  # noqa: T201  # this module is run to be read
