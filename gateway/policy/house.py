"""The house rules: how our own policy files are written, so that people find the policy and its reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import cedarpy
from cedarpy import pst

from gateway.policy.finding import Finding
from gateway.policy.source import Policy, stem

GUARDRAILS = "guardrails/"


def breaches(file: str, text: str, policies: Sequence[Policy]) -> Iterator[Finding]:
    """Yields where a file breaks a house rule; `policies` are all that it holds.

    Each policy has an `@id` that starts with its path, and a `@reason`; a guardrail only forbids; any other file speaks of
    the one action that its path names, `peer/read.cedar` of `peer.read`; the text is as Cedar formats it.
    """
    if cedarpy.format_policies(text) != text:
        yield Finding(file, 1, "", "is not formatted: `peergate policy fmt --dir` does it")
    for policy in policies:
        for message in _breaches_of(file, policy):
            yield Finding(file, policy.info.line, policy.info.id, message)


def _breaches_of(file: str, policy: Policy) -> Iterator[str]:
    if not policy.info.annotations.get("id"):
        yield "has no `@id`"
    elif policy.info.id != stem(file) and not policy.info.id.startswith(stem(file) + "/"):
        yield f"`@id` is not `{stem(file)}` and does not start with `{stem(file)}/`"
    if not policy.info.reason.strip():
        yield "has no `@reason`"
    if file.startswith(GUARDRAILS):
        if policy.info.effect != "forbid":
            yield "a guardrail only forbids"
    elif _action(policy) != stem(file).replace("/", "."):
        yield f'is not of `action == Action::"{stem(file).replace("/", ".")}"`, which its file is for'


def _action(policy: Policy) -> str | None:
    """The id of the one action that a policy names."""
    constraint = policy.tree.action
    return constraint.entity.id if isinstance(constraint, pst.ActionEq) else None
