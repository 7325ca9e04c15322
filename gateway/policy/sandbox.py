"""The sandbox: text that came over the network is parsed in a process of its own first, which may die of it.

`python -m gateway.policy.sandbox` reads a schema and texts by id as JSON, and writes what is wrong with them.
"""

from __future__ import annotations

import json
import resource
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict

from gateway.policy import child
from gateway.policy.bundle import Bundle
from gateway.policy.finding import Finding, PolicyError
from gateway.policy.organisation import MAX_BYTES, extend

SECONDS = 10
MEMORY_BYTES = 1024 * 1024 * 1024
#: What is told of one text.
FINDINGS = 50
#: Processes at once.
SLOTS = threading.BoundedSemaphore(2)
COMMAND = ("-m", "gateway.policy.sandbox")
#: A bundle without an organisation's policies is made of something.
NOTHING = '@id("nothing") forbid (principal, action, resource);'


def check(schema: str, texts: Mapping[str, str]) -> None:
    """Raises `PolicyError` for texts, by id, that are not policies under a schema, or that end the process reading them.

    Takes about half a second and at most `SECONDS`: call it on a thread.
    """
    for text_id, text in texts.items():
        if len(text) > MAX_BYTES:
            raise PolicyError([Finding(f"org/{text_id}", 0, "", f"longer than {MAX_BYTES} bytes")])
    with SLOTS:
        findings = child.ask(COMMAND, json.dumps({"schema": schema, "texts": dict(texts)}), seconds=SECONDS)
    if findings:
        raise PolicyError(findings)


def main() -> None:
    """Reads from standard input, within limits of time and memory, and writes findings to standard output."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    given = json.load(sys.stdin)
    sys.stdout.write(json.dumps([asdict(finding) for finding in _findings(given["schema"], given["texts"])[:FINDINGS]]))


def _findings(schema: str, texts: Mapping[str, str]) -> tuple[Finding, ...]:
    try:
        extend(Bundle.from_text(schema, {"nothing.cedar": NOTHING}, house_rules=False), texts)
    except PolicyError as refused:
        return refused.findings
    return ()


if __name__ == "__main__":
    main()
