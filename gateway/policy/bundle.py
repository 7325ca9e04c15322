"""A bundle: one schema and every policy under it, checked as a whole, parsed once and told apart by action."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import cedarpy
from cedarpy import pst

from gateway.model.entity import EntityUid
from gateway.policy import files, guard, house, partition, source, translatable
from gateway.policy import schema as schemas
from gateway.policy import vocabulary as vocabularies
from gateway.policy.finding import Finding, PolicyError
from gateway.policy.grants import RESERVED
from gateway.policy.reading import Path as Read
from gateway.policy.reading import context_paths
from gateway.policy.schema import Schema
from gateway.policy.source import Policy, PolicyInfo
from gateway.policy.value import canonical
from gateway.policy.vocabulary import Vocabulary
from gateway.policy.words import SchemaRefused

SCHEMA = "schema.cedarschema"


@dataclass(frozen=True, slots=True)
class Bundle:
    """What decisions are taken by. It is never changed: a new one is built aside and takes its place.

    `hash` is the SHA-256, in hex, of the schema text and of each policy's id and text; the order of the files is not in
    it. `actions` are the ids of the schema's actions that group no others; `members` are the ids of the policies that could
    match each action, and `contextual` has the paths that policies read of the context. `types` is what the schema says.
    The rest is for this package.
    """

    hash: str
    policies: Mapping[str, PolicyInfo]
    actions: frozenset[str]
    schema_text: str = field(repr=False)
    schema_hash: str = field(repr=False)
    schema: cedarpy.Schema = field(repr=False, compare=False)
    action_uids: Mapping[str, EntityUid] = field(repr=False)
    members: Mapping[str, tuple[str, ...]] = field(repr=False)
    trees: Mapping[str, pst.Template] = field(repr=False, compare=False)
    contextual: Mapping[str, frozenset[Read]] = field(repr=False, compare=False)
    types: Schema = field(repr=False)
    vocabulary: Vocabulary = field(repr=False)

    @classmethod
    def load(
        cls,
        schema: Path,
        policies: Path,
        *,
        house_rules: bool = True,
        rows: Collection[str] = translatable.ROWS,
    ) -> Bundle:
        """Returns the bundle of a schema file and of every `.cedar` file under `policies`; raises `PolicyError`."""
        text, texts = files.read_schema(schema), files.read_texts(policies)
        return cls.from_text(text, texts, house_rules=house_rules, rows=rows)

    @classmethod
    def from_text(
        cls,
        schema: str,
        policies: Mapping[str, str],
        *,
        house_rules: bool = True,
        checked: bool = False,
        rows: Collection[str] = translatable.ROWS,
    ) -> Bundle:
        """Returns the bundle of a schema text and of policy texts by file name; raises `PolicyError` with all that is wrong.

        Without `house_rules` any store of Cedar policies loads; what
        guards the process and the answer cannot be switched off. Texts that another process has just `checked`, these very
        ones, are not validated once more. `rows` are the types that are found by a query.
        """
        handle = _schema(schema)
        read: list[Policy] = []
        findings: list[Finding] = []
        for file, text in sorted(policies.items()):
            found, wrong = source.read(file, text)
            if house_rules and not wrong:
                wrong.extend(house.breaches(file, text, found))
            read += found
            findings += wrong
        if not policies:
            findings.append(Finding("", 0, "", "no policy at all"))
        findings += _breaches_of_the_whole(read)
        if not findings and not checked:
            findings += _invalid(read, handle)
        if findings:
            raise PolicyError(findings)
        bundle = _assemble(schema, handle, {p.info.id: p for p in read})
        if not checked and (findings := list(translatable.breaches(bundle.vocabulary, bundle.policies, bundle.members, rows))):
            raise PolicyError(findings)
        return bundle

    def without(self, *policy_ids: str) -> Bundle:
        """Returns this bundle with policies left out; raises `KeyError` for an id that it does not hold."""
        policies, trees = dict(self.policies), dict(self.trees)
        for policy_id in policy_ids:
            del policies[policy_id], trees[policy_id]
        members = {action: tuple([id_ for id_ in ids if id_ in policies]) for action, ids in self.members.items()}
        return replace(
            self,
            hash=_hash(self.schema_text, policies),
            policies=MappingProxyType(policies),
            members=MappingProxyType(members),
            trees=MappingProxyType(trees),
            contextual={id_: paths for id_, paths in self.contextual.items() if id_ in policies},
        )

    def extended(self, policies: Mapping[str, str]) -> Bundle:
        """Returns this bundle with the policies of more texts, by file name, each checked as one of its own is.

        Raises `PolicyError` with all that is wrong. House rules are for files, so they are not asked.
        """
        read: list[Policy] = []
        findings: list[Finding] = []
        for file, text in sorted(policies.items()):
            found, wrong = source.read(file, text)
            read += found
            findings += wrong
        whole = [*(Policy(info, self.trees[id_]) for id_, info in self.policies.items()), *read]
        findings += _breaches_of_the_whole(whole)
        if not findings and read:
            findings += _invalid(read, self.schema)
        if findings:
            raise PolicyError(findings)
        bundle = _assemble(self.schema_text, self.schema, {p.info.id: p for p in whole}, self)
        new = {p.info.id for p in read}
        touched = {action: tuple([id_ for id_ in ids if id_ in new]) for action, ids in bundle.members.items()}
        if findings := list(translatable.breaches(bundle.vocabulary, bundle.policies, touched)):
            raise PolicyError(findings)
        return bundle

    def heeding(self) -> Mapping[str, frozenset[Read]]:
        """Returns the actions that some policy decides by the context, with the paths of what is read of it."""
        read = {action: [self.contextual[id_] for id_ in ids if id_ in self.contextual] for action, ids in self.members.items()}
        return {action: frozenset().union(*paths) for action, paths in read.items() if paths}

    def body(self) -> str:
        """Returns what is needed to decide by it again, as JSON: the schema, and each policy's text by id; with the file and
        the line where each stood."""
        texts = {id_: info.text for id_, info in self.policies.items()}
        places = {id_: [info.file, info.line] for id_, info in self.policies.items()}
        return json.dumps({"schema": self.schema_text, "policies": texts, "places": places}, sort_keys=True)

    @classmethod
    def from_body(cls, body: str) -> Bundle:
        """Returns the bundle that `body` gave the text of, as it stood in files; raises `PolicyError`."""
        kept = json.loads(body)
        places = {id_: (file, line) for id_, (file, line) in kept.get("places", {}).items()}
        return cls.from_text(kept["schema"], kept["policies"], house_rules=False).placed(places)

    def placed(self, places: Mapping[str, tuple[str, int]]) -> Bundle:
        """Returns this bundle as it stood in files; a policy without a place stands nowhere: its file is empty, its line 0."""
        found = {id_: places.get(id_, ("", 0)) for id_ in self.policies}
        infos = {id_: replace(info, file=found[id_][0], line=found[id_][1]) for id_, info in self.policies.items()}
        return replace(self, policies=MappingProxyType(infos))


def _schema(text: str) -> cedarpy.Schema:
    try:
        guard.check_schema(text)
        return cedarpy.Schema.from_str(text, release_gil=True)
    except ValueError as error:
        raise PolicyError([Finding(SCHEMA, 0, "", str(error))]) from error


def _breaches_of_the_whole(policies: list[Policy]) -> Iterator[Finding]:
    first: dict[str, PolicyInfo] = {}
    for policy in policies:
        info = policy.info
        if (other := first.setdefault(info.id, info)) is not info:
            yield _finding(info, f"is also the id of {other.file}:{other.line}")
        if RESERVED.fullmatch(info.id):
            yield _finding(info, "is an id of what a grant is compiled to")
    if len(policies) > guard.MAX_POLICIES:
        yield Finding("", 0, "", f"more than {guard.MAX_POLICIES} policies")


def _invalid(policies: list[Policy], schema: cedarpy.Schema) -> Iterator[Finding]:
    # All in one call, because only that can release the lock; cedarpy then names a policy by its position in the text.
    text = "\n".join(policy.info.text for policy in policies)
    for error in cedarpy.validate_policies(text, schema, release_gil=True).errors:
        position = error.policy_id.removeprefix("policy")
        info = policies[int(position)].info
        yield _finding(info, error.error.removeprefix(f"for policy `policy{position}`, "))


def _finding(info: PolicyInfo, message: str) -> Finding:
    return Finding(info.file, info.line, info.id, message)


def _assemble(text: str, schema: cedarpy.Schema, policies: Mapping[str, Policy], before: Bundle | None = None) -> Bundle:
    """Puts policies together; the words of a bundle `before` of the same schema are not read again."""
    policies = dict(sorted(policies.items()))
    # INVARIANT: Cedar's own id of a policy is its `@id`, so what Cedar answers needs no translation.
    trees = {id_: replace(policy.tree, id=id_) for id_, policy in policies.items()}
    types = before.types if before is not None else _types(schema)
    groups = types.groups
    names = {uid.id: uid for uid in sorted(groups)}
    members = partition.members(trees, names, groups)
    infos = {id_: policy.info for id_, policy in policies.items()}
    return Bundle(
        hash=_hash(text, infos),
        policies=MappingProxyType(infos),
        actions=frozenset(uid.id for uid in groups if not any(uid in of for a, of in groups.items() if a != uid)),
        schema_text=text,
        schema_hash=hashlib.sha256(text.encode()).hexdigest(),
        schema=schema,
        action_uids=MappingProxyType(names),
        members=MappingProxyType(members),
        trees=MappingProxyType(trees),
        contextual={id_: paths for id_, tree in trees.items() if (paths := context_paths(tree))},
        types=types,
        vocabulary=before.vocabulary if before is not None else vocabularies.of(types),
    )


def _hash(schema: str, policies: Mapping[str, PolicyInfo]) -> str:
    texts = [[id_, info.text] for id_, info in policies.items()]
    return hashlib.sha256(canonical([schema, texts]).encode()).hexdigest()


def _types(schema: cedarpy.Schema) -> Schema:
    try:
        return schemas.read(schema)
    except SchemaRefused as refused:
        raise PolicyError([Finding(SCHEMA, 0, "", str(refused))]) from refused
