"""A claim of where policies may differ: a condition of Cedar, or a list of actions and principals."""

from __future__ import annotations

import re

from gateway.policy.bundle import Bundle
from gateway.policy.prove.invariants import EVERYTHING

#: An action, a type of principal, or one principal.
WORD = re.compile(r'\w[\w.]*(::"[^"\\]*")?')


def read(bundle: Bundle, text: str) -> Bundle:
    """Returns a bundle of the same schema that allows exactly where a claim holds; raises `PolicyError`.

    Of a list, one of the actions has to be asked for and one of the principals has to ask; where it names none, any.
    """
    words = [word.strip() for word in text.split(",")]
    named = [_named(bundle, word) for word in words]
    actions = [condition for kind, condition in named if kind == "action"]
    principals = [condition for kind, condition in named if kind == "principal"]
    if len(actions) + len(principals) == len(words):
        text = " && ".join(f"({' || '.join(some)})" for some in (actions, principals) if some)
    policy = f'{EVERYTHING}\n@id("claim") forbid (principal, action, resource) unless {{ {text} }};'
    return Bundle.from_text(bundle.schema_text, {"claim.cedar": policy}, house_rules=False)


def _named(bundle: Bundle, word: str) -> tuple[str, str]:
    """What one word of a list names, and what that asks of a request; "" for what is no such word."""
    if not WORD.fullmatch(word):
        return "", ""
    if word in bundle.action_uids:
        return "action", f"action in {bundle.action_uids[word]}"
    type_, _, id_ = word.partition("::")
    if type_ not in bundle.vocabulary.entities:
        return "", ""
    return "principal", f"principal == {word}" if id_ else f"principal is {type_}"
