"""The sandbox: text that came over the network is parsed in a process of its own first, which may die of it.

`python -m gateway.policy.sandbox` reads a schema and texts by id as JSON, and writes what is wrong with them.
"""

from __future__ import annotations

import json
import resource
from collections.abc import Mapping

from gateway.policy import child
from gateway.policy.bundle import Bundle
from gateway.policy.finding import Finding, PolicyError
from gateway.policy.organisation import MAX_BYTES, extend

#: Of a processor. What a text may take must not depend on how busy the machine is.
SECONDS = 10
#: Until a process that gets no processor is given up.
WAIT_SECONDS = 60
MEMORY_BYTES = 1024 * 1024 * 1024
#: What is told of one text.
FINDINGS = 50
#: Processes at once, and texts that wait for one; whoever calls `check` keeps to it.
PROCESSES, WAITING = 2, 16
COMMAND = ("-m", "gateway.policy.sandbox")
#: A bundle without an organisation's policies is made of something.
NOTHING = '@id("nothing") forbid (principal, action, resource);'


def check(schema: str, texts: Mapping[str, str]) -> None:
    """Raises `PolicyError` for texts, by id, that are not policies under a schema, or that end the process reading them.

    Takes about half a second and at most `WAIT_SECONDS`: call it on a thread of its own.
    """
    for text_id, text in texts.items():
        if len(text) > MAX_BYTES:
            raise PolicyError([Finding(f"org/{text_id}", 0, "", f"longer than {MAX_BYTES} bytes")])
    if findings := child.ask(COMMAND, json.dumps({"schema": schema, "texts": dict(texts)}), seconds=WAIT_SECONDS):
        raise PolicyError(findings)


def main() -> None:
    """Reads from standard input, within limits of time and memory, and writes findings to standard output."""
    # At the first limit of time the signal says what it is; the second is for a process that would not hear it.
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    child.answer(read, most=FINDINGS)


def read(schema: str, texts: Mapping[str, str]) -> None:
    """Raises `PolicyError` for texts, by id, that are not policies under a schema, or too many of them."""
    extend(Bundle.from_text(schema, {"nothing.cedar": NOTHING}, house_rules=False), texts)


if __name__ == "__main__":
    main()
