"""The reference of the HTTP API, from the table of operations: `python -m gateway.operations.reference > docs/api.md`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from gateway.operations.operation import Operation

HEAD = """# The HTTP API

Generated from the table of operations; a test says when it is stale. Bodies and answers are JSON; errors are problem details
with a string `detail`. Paths, field names and the prefixes of keys (`1ck_` of a person, `ocv_` of an agent, `plt_` of a platform)
follow a published wire, so that its clients work here unchanged; some fields of an agent (`shroud_enabled`, `vault_ids`, …) are
kept and answered for them and mean nothing to this gateway.

*Actions* are what Cedar is asked; their permits are in `policies/`, one file an action. *Strict* operations refuse members they
do not know; the others ignore them, because published clients send extras. What each member may be, and what is answered, is in
`docs/openapi.json`, which a gateway serves at `/openapi.json`.
"""


def render(operations: tuple[Operation, ...]) -> str:
    """The reference as Markdown, in the order of the table."""
    parts = [HEAD]
    for noun, rows in groupby(operations, key=lambda operation: operation.name.split(".")[0]):
        parts.append(f"\n## {noun}\n")
        parts += [_entry(operation) for operation in rows]
    return "".join(parts)


def _entry(operation: Operation) -> str:
    lines = [f"\n### {operation.method} {operation.path}\n\n{sentence(operation.summary)}\n\n"]
    if operation.public is not None:
        lines.append(f"- public: {operation.public}\n")
    if operation.actions:
        lines.append(f"- actions: {_code(operation.actions)}\n")
    if operation.query:
        lines.append(f"- query: {_code(operation.query)}\n")
    if operation.repeated:
        lines.append(f"- repeatable: {_code(operation.repeated)}\n")
    if operation.fields:
        lines.append(f"- body: {_code(operation.fields)}\n")
    if operation.confirmed:
        lines.append("- may ask for confirmation\n")
    if operation.strict:
        lines.append("- strict\n")
    return "".join(lines)


def sentence(summary: str) -> str:
    """A summary as a sentence."""
    return summary[:1].upper() + summary[1:].rstrip(".") + "."


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    from gateway.operations.registry import OPERATIONS

    print(render(OPERATIONS), end="")  # noqa: T201  # this module is run to be read
