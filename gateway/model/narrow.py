"""What a request asks for, as a condition on rows."""

from __future__ import annotations

from gateway.model.condition import FALSE, TRUE, Condition, Equals, Has, HoldsAll, HoldsAny, Not, OneOf, all_of
from gateway.model.memory import Narrow


def narrowed(narrow: Narrow) -> Condition:
    """The rows that a request asks for; an empty tuple of tags, layers or classifications is true of none."""
    return all_of(
        TRUE if narrow.project_id is None else Equals("project", narrow.project_id),
        Not(Has("project")) if narrow.untagged else TRUE,
        _tagged(narrow),
        TRUE if narrow.layers is None else OneOf("layer", narrow.layers),
        TRUE if narrow.classifications is None else OneOf("classification", narrow.classifications),
    )


def _tagged(narrow: Narrow) -> Condition:
    if narrow.tags is None:
        return TRUE
    # All of no tags would be every row.
    if not narrow.tags:
        return FALSE
    return HoldsAll("tags", narrow.tags) if narrow.tags_match == "all" else HoldsAny("tags", narrow.tags)
