"""`peergate policy`: what security teams and auditors do with a folder of policies; none of it needs a running gateway."""

from __future__ import annotations

from typing import Any

from gateway.cli.policy import asking, moving, testing, writing

ABOUT = """Read, test, explain and compare policies. Every command works on any directory with `policies/` in it and a
`schema.cedarschema` in it or above it; without --dir it is the policies shipped with the product."""


def add_noun(commands: Any) -> Any:
    """Put `policy` into a parser, and return where its verbs go."""
    noun = commands.add_parser("policy", help="read, test, explain and compare policies", description=ABOUT)
    noun.set_defaults(parser=noun)
    verbs = noun.add_subparsers(metavar="VERB")
    for part in (writing, testing, asking, moving):
        part.add_verbs(verbs)
    return verbs
