"""A foreign store: what loads, and what does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.policy.finding import PolicyError
from gateway.policy.foreign.loading import load
from tests.policy.foreign.stores import entity, written

PRICED = "entity User = { price?: decimal }; action see appliesTo { principal: [User], resource: [User] };"
GOOD = ("entity User; action see appliesTo { principal: [User], resource: [User] };", "permit (principal, action, resource);")


@pytest.mark.parametrize(
    ("schema", "policy", "entities", "aliases"),
    [
        ("entity", GOOD[1], [], None),
        (GOOD[0], "permit (principal, action, resource) when { principal.age > 1 };", [], None),
        (GOOD[0], 'permit (principal, action, resource) when { unknown("x") };', [], None),
        (*GOOD, "{", None),
        (*GOOD, [entity("Robot", "r")], None),
        (*GOOD, [entity("User", "u", age=1)], None),
        (*GOOD, [entity("User", "u"), entity("User", "u", ("User", "v"))], None),
        (*GOOD, '[{"uid": {"type": "User", "id": "a", "id": "b"}, "attrs": {}, "parents": []}]', None),
        (PRICED, GOOD[1], [entity("User", "u", price={"__extn": {"fn": "unknown", "arg": "x"}})], None),
        (*GOOD, [], "user = 7"),
        (*GOOD, [], 'user = "Robot"'),
        (*GOOD, [], "user ="),
    ],
)
def test_what_is_not_understood_whole_does_not_load(
    tmp_path: Path, schema: str, policy: str, entities: object, aliases: str | None
) -> None:
    with pytest.raises(PolicyError):
        written(tmp_path / "store", schema, policy, entities, aliases)


def test_a_key_that_stands_twice_is_named_and_no_other(tmp_path: Path) -> None:
    twice = '[{"uid": {"type": "User", "id": "a", "id": "b"}, "attrs": {}, "parents": []}]'
    with pytest.raises(PolicyError, match="the key `id` stands twice in one record"):
        written(tmp_path / "store", *GOOD, twice)


@pytest.mark.parametrize("missing", ["schema.cedarschema", "entities.json", "policies/all.cedar"])
def test_a_directory_that_lacks_a_part_does_not_load(tmp_path: Path, missing: str) -> None:
    written(tmp_path / "store", *GOOD, [])
    (tmp_path / "store" / missing).unlink()
    with pytest.raises(PolicyError):
        load(tmp_path / "store")


def test_the_hash_changes_with_policies_entities_and_names(tmp_path: Path) -> None:
    variants = [
        written(tmp_path / str(at), *texts)  # type: ignore[arg-type]  # a schema, policies, entities and aliases
        for at, texts in enumerate(
            [
                (*GOOD, []),
                (GOOD[0], "permit (principal, action, resource); ", []),
                (GOOD[0], "forbid (principal, action, resource);", []),
                (*GOOD, [entity("User", "u")]),
                (*GOOD, [], 'user = "User"'),
            ]
        )
    ]
    hashes = [store.hash for store in variants]
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 4
