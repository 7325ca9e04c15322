"""`peergate policy`: what security teams and auditors do with policies. The verbs here work on files and need no gateway."""

from __future__ import annotations

import argparse
from typing import Any

from gateway.cli.policy import asking, moving, testing, writing

FORMAT = argparse.RawDescriptionHelpFormatter
ABOUT = """Read, test, explain, compare and roll out policies.

On files: validate, fmt, copy, new, test, mutate, matrix, show, explain, plan, index, diff, export, prove, changes. They work
on any directory with `policies/` in it and a `schema.cedarschema` in it or above it; without --dir it is the policies shipped
with the product.

On the data directory of a stopped gateway: replay, and explain with the id of a decision.

On the policies that an organisation gives itself: add, edit, list, read, versions, shadow-report, try, promote, rollback,
delete, ask. They ask a gateway, as every client command does. Such a policy starts in the shadow: it is asked, and decides
nothing until it is promoted."""


def add_noun(commands: Any) -> Any:
    """Put `policy` into a parser, and return where its verbs go."""
    says = "read, test, explain, compare and roll out policies"
    noun = commands.add_parser("policy", help=says, description=ABOUT, formatter_class=FORMAT)
    noun.set_defaults(parser=noun)
    verbs = noun.add_subparsers(metavar="VERB")
    for part in (writing, testing, asking, moving):
        part.add_verbs(verbs)
    return verbs
