"""The corpus: real text of many projects, the same each time, tagged as its rules say."""

from __future__ import annotations

import re

from gateway import limits
from gateway.cli.bench.corpus import TOPICS, corpus
from gateway.model.memory import LAYERS, TIERS
from gateway.operations.memory_fields import SLUG
from tests.corpus import some


def test_it_is_large_enough_to_say_something() -> None:
    passages = corpus()
    assert len(passages) > 3_000
    assert len({passage.project_id for passage in passages}) > 100
    assert {passage.layer for passage in passages} == set(LAYERS)
    assert {passage.classification for passage in passages} == set(TIERS)


def test_it_is_the_same_each_time() -> None:
    assert corpus.__wrapped__() == corpus()
    assert some(50) == some(50)
    assert len(some(50)) == 50


def test_every_passage_can_be_remembered() -> None:
    for passage in corpus():
        assert 1 <= len(passage.text.encode()) <= limits.MEMORY_TEXT_BYTES
        assert passage.project_id is None or SLUG.fullmatch(passage.project_id)
        assert set(passage.tags) <= TOPICS.keys()


def test_it_is_tagged_as_its_rules_say() -> None:
    found = {passage.name: passage for passage in corpus()}
    decoder, private = found["json.decoder.JSONDecoder"], found["_collections_abc.MutableMapping.pop"]
    assert (decoder.project_id, decoder.tags, decoder.classification, decoder.layer) == ("json", ("data",), "public", "chunk")
    assert (private.project_id, private.tags, private.classification, private.layer) == (None, (), "internal", "fact")
    assert all(passage.classification == "pii" for passage in corpus() if re.search(r"\bpassword", passage.text))
