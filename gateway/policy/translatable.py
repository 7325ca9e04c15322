"""What can be asked of a table: a policy about rows does not load unless it can become a condition of a query."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping

import cedarpy

from gateway.policy.finding import Finding
from gateway.policy.residual import Reader, Untranslatable
from gateway.policy.source import PolicyInfo
from gateway.policy.truth import EITHER
from gateway.policy.vocabulary import Vocabulary

#: The types whose entities are rows, and are found by a query.
ROWS = ("Memory",)


def breaches(
    vocabulary: Vocabulary,
    policies: Mapping[str, PolicyInfo],
    members: Mapping[str, tuple[str, ...]],
    rows: Collection[str] = ROWS,
) -> Iterator[Finding]:
    """Yields each policy that could match an action on rows and asks of a row what no query can.

    What does not mention the row is taken for either true or false: by the time of a query it is a value.
    """
    for row in rows:
        about = (members[action] for action, types in vocabulary.resources.items() if row in types and action in members)
        for id_ in dict.fromkeys(id_ for ids in about for id_ in ids):
            info = policies[id_]
            try:
                Reader(vocabulary, row, open=EITHER).policy(_json(info.text))
            except Untranslatable as error:
                yield Finding(info.file, info.line, id_, f"cannot be turned into a query: {error}")


def _json(text: str) -> Mapping[str, object]:
    [policy] = json.loads(cedarpy.policies_to_json_str(text))["staticPolicies"].values()
    found: Mapping[str, object] = policy
    return found
