"""The yardstick: Cedar asked as bare as it can be asked, which is what a decision of the engine is measured against."""

from __future__ import annotations

from collections.abc import Callable

import cedarpy

from gateway.model.decision import Query
from gateway.policy import partition
from gateway.policy.bundle import Bundle
from gateway.policy.context import Context
from gateway.policy.slice import Slice
from gateway.policy.value import uid_json


def bare_question(bundle: Bundle, query: Query, slice: Slice, *, validated: bool = False) -> Callable[[], bool]:
    """Returns a function that asks Cedar one query and says whether it allows it; for measuring, never for deciding.

    Everything is made beforehand: the request, the policies of its kind, the entities. What is left is
    `cedarpy.is_authorized` itself, which checks nothing that the engine checks; `validated` makes it check the request
    against the schema, as the engine does. Raises `KeyError` for an action that is unknown or that no policy names, and
    `ValueRefused` for a context that Cedar cannot take.
    """
    if not bundle.members[query.action]:
        raise KeyError(query.action)
    policies = partition.between(bundle.trees, bundle.members, [query.action], query.principal.type, query.resource.type)
    context = query.context if isinstance(query.context, Context) else Context(query.context)
    request = {
        "principal": uid_json(query.principal),
        "action": uid_json(bundle.action_uids[query.action]),
        "resource": uid_json(query.resource),
        "context": context.text,
    }

    schema = bundle.schema if validated else None

    def ask() -> bool:
        return cedarpy.is_authorized(request, policies, slice.handle, schema).allowed

    return ask
