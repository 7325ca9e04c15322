"""Partitions: the policies that could match a kind of question, because Cedar evaluates every policy that it is given."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

import cedarpy
from cedarpy import pst

from gateway.model.entity import EntityUid


def groups(schema: cedarpy.Schema) -> dict[EntityUid, frozenset[EntityUid]]:
    """Returns each action with itself and every group that it is in: Cedar puts them into any slice, closed over parents."""
    actions = json.loads(str(cedarpy.Entities.from_json_str("[]", schema)))
    return {
        EntityUid(**action["uid"]): frozenset(EntityUid(**uid) for uid in (action["uid"], *action["parents"]))
        for action in actions
    }


def members(
    trees: Mapping[str, pst.Template], names: Mapping[str, EntityUid], within: Mapping[EntityUid, frozenset[EntityUid]]
) -> dict[str, tuple[str, ...]]:
    """Returns, for each name of an action, the ids of the policies that could match it, forbids too; `within` is `groups`."""
    place = {id_: at for at, id_ in enumerate(trees)}
    alike: dict[frozenset[EntityUid] | None, list[str]] = defaultdict(list)
    for id_, tree in trees.items():
        alike[_targets(tree.action)].append(id_)
    matching = {
        name: [ids for named, ids in alike.items() if named is None or not named.isdisjoint(within[uid])]
        for name, uid in names.items()
    }
    return {name: tuple(sorted(chain.from_iterable(found), key=place.__getitem__)) for name, found in matching.items()}


def between(
    trees: Mapping[str, pst.Template],
    members: Mapping[str, tuple[str, ...]],
    actions: Sequence[str],
    principal: str,
    resource: str,
) -> cedarpy.PolicySet:
    """Returns, as one set, the members of some actions that could match a principal and a resource of two types.

    Only what a scope says of types counts: `== A::"x"` matches no other type, `in` may match any. What a scope says that
    holds of every such question is left out: the set is good for these actions and types alone.
    """
    ids = dict.fromkeys(id_ for action in actions for id_ in members[action])
    could = (i for i in ids if _could_be(trees[i].principal, principal) and _could_be(trees[i].resource, resource))
    return _set({id_: _settled(trees[id_], actions) for id_ in could})


def whole(trees: Mapping[str, pst.Template], ids: tuple[str, ...]) -> cedarpy.PolicySet:
    """Returns some policies as one set."""
    return _set({id_: trees[id_] for id_ in ids})


def _set(policies: Mapping[str, pst.Template]) -> cedarpy.PolicySet:
    return cedarpy.PolicySet.from_pst(pst.PolicySet({}, policies, ()), release_gil=True)


def _settled(tree: pst.Template, actions: Sequence[str]) -> pst.Template:
    """A policy that could match without what is known of its question: checking that again is a fifth of what it costs."""
    action = pst.ScopeAny() if len(actions) == 1 and _holds(tree.action, actions[0]) else tree.action
    return replace(tree, principal=_untyped(tree.principal), action=action, resource=_untyped(tree.resource))


def _untyped(scope: pst.PrincipalOrResourceConstraint) -> pst.PrincipalOrResourceConstraint:
    match scope:
        case pst.ScopeIs():
            return pst.ScopeAny()
        case pst.ScopeIsIn(entity=entity):
            return pst.ScopeIn(entity)
        case _:
            return scope


def _holds(constraint: pst.ActionConstraint, action: str) -> bool:
    """Whether a policy names an action itself, or any; of a group that it names, nothing is known here."""
    match constraint:
        case pst.ScopeAny():
            return True
        case pst.ActionEq(entity=entity):
            return entity.id == action
        case pst.ActionIn(entities=entities):
            return any(entity.id == action for entity in entities)


def _could_be(scope: pst.PrincipalOrResourceConstraint, type_: str) -> bool:
    match scope:
        case pst.ScopeIs(entity_type=named) | pst.ScopeIsIn(entity_type=named):
            return str(named) == type_
        case pst.ScopeEq(entity=pst.EntityUid(type=named)):
            return str(named) == type_
        case _:
            return True


def _targets(constraint: pst.ActionConstraint) -> frozenset[EntityUid] | None:
    """Returns the actions and groups that a policy names; `None` stands for any action.

    An `action ==` that names a group is taken for the group: such a policy is in more partitions than it needs to be.
    """
    if isinstance(constraint, pst.ScopeAny):
        return None
    named = (constraint.entity,) if isinstance(constraint, pst.ActionEq) else constraint.entities
    return frozenset(EntityUid(str(entity.type), entity.id) for entity in named)
