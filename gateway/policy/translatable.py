"""What can be asked of a table: a policy about rows does not load unless it can become a condition of a query."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate, islice

import cedarpy

from gateway.model.condition import weight
from gateway.policy.finding import Finding
from gateway.policy.residual import Reader, Untranslatable
from gateway.policy.source import PolicyInfo
from gateway.policy.truth import EITHER, Truth
from gateway.policy.vocabulary import Vocabulary

#: The types whose entities are rows, and are found by a query.
ROWS = ("Memory",)
#: What the policies of one action may weigh together: of the product, and once more of an organisation.
# INVARIANT: twice this and what a connection's grants weigh stays within `truth.MAX_WEIGHT`, so that no plan is ever over it.
MAX_WEIGHT = 1_000


def breaches(
    vocabulary: Vocabulary,
    policies: Mapping[str, PolicyInfo],
    members: Mapping[str, tuple[str, ...]],
    rows: Collection[str] = ROWS,
) -> Iterator[Finding]:
    """Yields each policy that could match an action on rows and asks of a row what no query can, or with which the policies
    of an action weigh over `MAX_WEIGHT`.

    What does not mention the row is taken for either true or false: by the time of a query it is a value.
    """
    for row in rows:
        about = [members[action] for action, types in vocabulary.resources.items() if row in types and action in members]
        weights: dict[str, int] = {}
        for id_ in dict.fromkeys(id_ for ids in about for id_ in ids):
            info = policies[id_]
            try:
                weights[id_] = _weight(Reader(vocabulary, row, open=EITHER).policy(_json(info.text)))
            except Untranslatable as error:
                yield Finding(info.file, info.line, id_, f"cannot be turned into a query: {error}")
        for id_ in dict.fromkeys(id_ for ids in about for id_ in _over(ids, weights)):
            info = policies[id_]
            yield Finding(
                info.file, info.line, id_, f"with it, the policies of an action ask over {MAX_WEIGHT} conditions of a row"
            )


def _weight(truth: Truth) -> int:
    """What a policy adds to a plan: that it holds, and where it may err, that it does not."""
    return weight(truth.true) + (0 if truth.sure else truth.weight)


def _over(ids: Sequence[str], weights: Mapping[str, int]) -> Iterator[str]:
    """The first policy with which those of an action weigh too much, if there is one."""
    sums = zip(ids, accumulate(weights.get(id_, 0) for id_ in ids), strict=True)
    return islice((id_ for id_, sum_ in sums if sum_ > MAX_WEIGHT), 1)


def _json(text: str) -> Mapping[str, object]:
    [policy] = json.loads(cedarpy.policies_to_json_str(text))["staticPolicies"].values()
    found: Mapping[str, object] = policy
    return found
