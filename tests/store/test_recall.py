"""Recall: listing and both kinds of search, against the same in plain Python, and what hidden rows do to it: nothing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.model.condition import FALSE, TRUE, Equals, HoldsAny, Not
from gateway.model.floor import owner_floor
from gateway.model.grant import Grant
from gateway.model.memory import LAYERS, TIERS, Found, LayerFields, Memory, MemoryScope, Narrow, Page, Source, Vector
from gateway.store import recall
from gateway.store.db import Database
from gateway.store.memory_rows import fetch, read_where
from gateway.store.rows import Rows
from gateway.store.words import terms, tokens
from tests.store.memory_samples import a_vector
from tests.store.remembered import a_memory, a_scope, forget_all, remember
from tests.store.samples import NOON

ALL = 1_000
HOUR = timedelta(hours=1)
WORDS = ("fox", "Fox", "hound", "C++", "c", "89", "3.11", "狐狸", "🎉", "a_b", "axb", "%", "'", "AND", "-")
ALPHA = a_scope(policy=Equals("project", "alpha"))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    made = Database.create(tmp_path_factory.mktemp("recall") / "data")
    yield made
    made.close()


@pytest.fixture
def memories(store: Database) -> Database:
    forget_all(store)
    return store


# -- the same in plain Python


def newest_first(rows: Sequence[Memory]) -> list[Memory]:
    return sorted(sorted(rows, key=lambda row: row.id), key=lambda row: row.created_at, reverse=True)


def by_words(rows: Sequence[Memory], query: str) -> list[tuple[str, float]]:
    """BM25, written down as it is in a textbook."""
    bags = {row.id: Counter(tokens(row.text)) for row in rows}
    mean = sum(bag.total() for bag in bags.values()) / len(bags) if bags else 0
    scores = {}
    for row in newest_first(rows):
        bag, points = bags[row.id], 0
        for term in terms(query):
            df = sum(1 for other in bags.values() if term in other)
            if times := bag[term]:
                idf = math.log(1 + (len(bags) - df + 0.5) / (df + 0.5))
                points += round(1e9 * idf * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * bag.total() / mean)))
        if any(term in bag for term in terms(query)):
            scores[row.id] = points / 1e9
    return sorted(scores.items(), key=lambda found: found[1], reverse=True)


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    lengths = math.hypot(*one) * math.hypot(*other)
    return sum(a * b for a, b in zip(one, other, strict=True)) / lengths if lengths else 0.0


def shown(page: Page) -> list[tuple[str, float]]:
    return [(found.row.id, found.score) for found in page.found]


def ids(page: Page) -> list[str]:
    return [found.row.id for found in page.found]


def listed(database: Database, narrow: Narrow = Narrow(), scope: Grant[MemoryScope] = ALPHA) -> Page:  # noqa: B008  # it is frozen
    return database.read_sync(lambda rows: recall.list_rows(rows, scope, narrow, limit=ALL))


def searched(database: Database, query: str, narrow: Narrow = Narrow(), scope: Grant[MemoryScope] = ALPHA) -> Page:  # noqa: B008
    return database.read_sync(lambda rows: recall.keyword(rows, scope, narrow, query, limit=ALL))


def by_meaning(database: Database, vector: Vector, narrow: Narrow = Narrow(), scope: Grant[MemoryScope] = ALPHA) -> Page:  # noqa: B008
    return database.read_sync(lambda rows: recall.semantic(rows, scope, narrow, vector, limit=ALL))


def by_both(database: Database, query: str, vector: Vector, scope: Grant[MemoryScope] = ALPHA) -> Page:
    return database.read_sync(lambda rows: recall.hybrid(rows, scope, Narrow(), query, vector, limit=ALL))


Corpus = list[tuple[str, str | None, int, list[float]]]
corpora = st.lists(
    st.tuples(
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join),
        st.sampled_from(("alpha", "alpha2", "a_b", None)),
        st.integers(0, 3),
        st.lists(st.sampled_from((-1.0, 0.0, 0.25, 1.0)), min_size=3, max_size=3),
    ),
    max_size=25,
)
queries = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
random_corpora = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def rows_of(corpus: Corpus) -> list[Memory]:
    return [
        a_memory(f"m{n}", text, project_id=project, created_at=NOON - HOUR * age)
        for n, (text, project, age, _) in enumerate(corpus)
    ]


# -- ranking


@given(corpora, queries)
@random_corpora
def test_keyword_search_is_bm25_over_the_visible_rows_alone(store: Database, corpus: Corpus, query: str) -> None:
    forget_all(store)
    rows = rows_of(corpus)
    remember(store, rows)
    page = searched(store, query)
    wanted = by_words([row for row in rows if row.project_id == "alpha"], query)
    assert (ids(page), page.total) == ([found for found, _ in wanted], len(wanted))
    assert [score for _, score in shown(page)] == pytest.approx([score for _, score in wanted], abs=1e-8)


@given(corpora, queries, st.lists(st.sampled_from((-1.0, 0.0, 1.0)), min_size=3, max_size=3))
@random_corpora
def test_search_by_meaning_is_the_cosine_and_both_together_their_places(
    store: Database,
    corpus: Corpus,
    query: str,
    asked: list[float],
) -> None:
    forget_all(store)
    rows = rows_of(corpus)
    remember(store, rows, {f"m{n}": [a_vector(*numbers)] for n, (_, _, _, numbers) in enumerate(corpus)})
    visible = [row for row in rows if row.project_id == "alpha"]
    likeness = {row.id: round(cosine(corpus[int(row.id[1:])][3], asked), 5) for row in visible}
    page = by_meaning(store, a_vector(*asked))
    meant = sorted((row.id for row in newest_first(visible)), key=lambda found: likeness[found], reverse=True)
    assert (ids(page), page.total, page.incomplete) == (meant, len(visible), ())
    assert [score for _, score in shown(page)] == pytest.approx([likeness[found] for found in meant], abs=1e-5)

    said = [found for found, _ in by_words(visible, query)]
    fused = {found: 1 / (61 + meant.index(found)) + (1 / (61 + said.index(found)) if found in said else 0.0) for found in meant}
    both = by_both(store, query, a_vector(*asked))
    wanted = sorted((row.id for row in newest_first(visible)), key=lambda found: fused[found], reverse=True)
    assert (shown(both), both.total) == ([(found, fused[found]) for found in wanted], len(visible))


def test_hidden_rows_move_no_score_no_order_and_no_total(tmp_path_factory: pytest.TempPathFactory, memories: Database) -> None:
    seen = [a_memory(f"m{n}", f"{'fox ' * (n % 4)} hound {WORDS[n % len(WORDS)]}", created_at=NOON - HOUR * n) for n in range(40)]
    hidden = [a_memory(f"h{n}", "fox fox hound c++", project_id=("alpha2", None)[n % 2]) for n in range(100)]
    hidden += [a_memory(f"i{n}", "fox", **change) for n, change in enumerate(gone())]
    hidden += [a_memory(f"o{n}", "fox", agent_id="other") for n in range(20)]
    pieces = {row.id: [a_vector(float(n % 7), 1.0)] for n, row in enumerate([*seen, *hidden])}
    alone = Database.create(tmp_path_factory.mktemp("alone") / "data")
    try:
        remember(alone, seen, pieces)
        remember(memories, hidden[::2], pieces)
        remember(memories, seen, pieces)
        remember(memories, hidden[1::2], pieces)
        for query in ("fox", "hound c++", "fox 89 狐", "nothing"):
            assert searched(memories, query) == searched(alone, query)
            assert by_both(memories, query, a_vector(1.0)) == by_both(alone, query, a_vector(1.0))
        assert by_meaning(memories, a_vector(1.0)) == by_meaning(alone, a_vector(1.0))
        assert listed(memories) == listed(alone)
    finally:
        alone.close()


def gone() -> list[dict[str, object]]:
    return [{"retracted_at": NOON}, {"superseded_by": "m0"}, {"expires_at": NOON}, {"expires_at": NOON - HOUR}]


def test_the_limit_is_filled_however_many_hidden_rows_are_better(memories: Database) -> None:
    hidden = [a_memory(f"h{n}", "fox", project_id="alpha2") for n in range(50)]
    seen = [a_memory(f"m{n}", "a fox among many other words") for n in range(3)]
    remember(memories, [*hidden, *seen], {row.id: [a_vector(1.0, float(row in seen))] for row in [*hidden, *seen]})

    def ask(rows: Rows) -> list[Page]:
        return [
            recall.keyword(rows, ALPHA, Narrow(), "fox", limit=2),
            recall.semantic(rows, ALPHA, Narrow(), a_vector(1.0), limit=2),
            recall.hybrid(rows, ALPHA, Narrow(), "fox", a_vector(1.0), limit=2),
            recall.list_rows(rows, ALPHA, Narrow(), limit=2),
        ]

    assert [(ids(page), page.total) for page in memories.read_sync(ask)] == [(["m0", "m1"], 3)] * 4


def test_the_best_piece_of_a_row_counts_and_the_row_comes_once(memories: Database) -> None:
    rows = [a_memory("m0"), a_memory("m1")]
    remember(memories, rows, {"m0": [a_vector(0.0, 1.0), a_vector(1.0)], "m1": [a_vector(1.0, 1.0)]})
    assert shown(by_meaning(memories, a_vector(2.0))) == [("m0", 1.0), ("m1", 0.707107)]


def test_a_row_without_a_vector_of_the_model_is_last_and_its_layer_incomplete(memories: Database) -> None:
    rows = [
        a_memory("m0", layer="session"),
        a_memory("m1"),
        a_memory("m2", layer="chunk"),
        a_memory("h0", layer="timeline", project_id=None),
    ]
    remember(memories, rows, {"m0": [a_vector(1.0, model="older")], "m1": [a_vector(-1.0)]})
    page = by_meaning(memories, a_vector(1.0))
    assert (shown(page), page.total, page.incomplete) == ([("m1", -1.0), ("m0", -1.0), ("m2", -1.0)], 3, ("session", "chunk"))
    both = by_both(memories, "much", a_vector(1.0))
    assert (ids(both), both.total, both.incomplete) == (["m1", "m0", "m2"], 3, ("session", "chunk"))


def test_a_vector_without_a_direction_is_like_nothing(memories: Database) -> None:
    remember(memories, [a_memory("m0"), a_memory("m1")], {"m0": [a_vector(0.0)], "m1": [a_vector(1.0)]})
    assert shown(by_meaning(memories, a_vector(0.0))) == [("m0", 0.0), ("m1", 0.0)]
    assert shown(by_meaning(memories, a_vector(1.0))) == [("m1", 1.0), ("m0", 0.0)]


# -- queries


@pytest.mark.parametrize("query", ["", "   ", "?!", "--", "'\"", "\0", "_", "\u200d"])
def test_a_query_without_a_token_is_an_empty_page(memories: Database, query: str) -> None:
    remember(memories, [a_memory("m0", "_ -- ?! '")])
    assert searched(memories, query) == Page((), 0)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("C++", ["m0"]),
        ("89", ["m1"]),
        ("89%", ["m1"]),
        ("狸", ["m2"]),
        ("🎉", ["m3"]),
        ("AND", ["m4"]),
        ("' OR 1=1; --", ["m4", "m5"]),
        ("a_b", ["m6", "m5"]),
        ("axb", ["m7"]),
        ("%", []),
        ("café", ["m8"]),
        ("$1", ["m5"]),
    ],
)
def test_any_query_is_literal(memories: Database, query: str, found: list[str]) -> None:
    texts = ("C++ again", "in 89 ways", "狐狸", "party🎉", "and or", "or 1 b", "a_b", "axb", "CAFE\u0301")
    remember(memories, [a_memory(f"m{n}", text) for n, text in enumerate(texts)])
    page = searched(memories, query)
    assert (sorted(ids(page)), page.total) == (sorted(found), len(found))


# -- narrowing


@pytest.fixture
def tagged(memories: Database) -> Database:
    tags = ((), ("a",), ("a", "b"), ("A",), ("a,b",), ("ab",), ("%",), ("b",))
    projects = ("alpha", "alpha2", "a_b", "axb", None)
    rows = [a_memory(f"m{n:02d}", "fox", tags=tags[n % 8], project_id=projects[n % 5]) for n in range(80)]
    rows = [replace(row, layer=LAYERS[n % 4], classification=TIERS[n // 4 % 4]) for n, row in enumerate(rows)]
    remember(memories, rows, {row.id: [a_vector(1.0)] for row in rows})
    return memories


@pytest.mark.parametrize(
    "narrow",
    [
        Narrow(),
        *(Narrow(project_id=project) for project in ("alpha", "alpha2", "a_b", "axb", "a%", "ALPHA", "")),
        Narrow(untagged=True),
        Narrow(tags=()),
        Narrow(tags=(), tags_match="all"),
        Narrow(layers=()),
        Narrow(classifications=()),
        *(Narrow(tags=asked, tags_match=match) for asked in (("a",), ("a", "b"), ("%",), ("a,b",)) for match in ("any", "all")),
        Narrow(layers=("fact", "chunk"), classifications=("public", "pii")),
        Narrow(project_id="alpha", tags=("a",), layers=LAYERS),
    ],
)
def test_a_request_narrows_to_exactly_what_it_names_in_every_mode(tagged: Database, narrow: Narrow) -> None:
    def asked(row: Memory) -> bool:
        held = set(row.tags)
        tags = narrow.tags is None or bool(
            narrow.tags and (held >= set(narrow.tags) if narrow.tags_match == "all" else held & set(narrow.tags))
        )
        return (
            tags
            and (narrow.project_id is None or row.project_id == narrow.project_id)
            and (not narrow.untagged or row.project_id is None)
            and (narrow.layers is None or row.layer in narrow.layers)
            and (narrow.classifications is None or row.classification in narrow.classifications)
        )

    everything = a_scope()
    stored = tagged.read_sync(lambda rows: read_where(rows, "TRUE", ()))
    wanted = [row.id for row in stored if asked(row)]
    pages = [
        listed(tagged, narrow, everything),
        searched(tagged, "fox", narrow, everything),
        by_meaning(tagged, a_vector(1.0), narrow, everything),
        tagged.read_sync(lambda rows: recall.hybrid(rows, everything, narrow, "fox", a_vector(1.0), limit=ALL)),
    ]
    assert [(ids(page), page.total) for page in pages] == [(wanted, len(wanted))] * 4


def test_either_lock_shuts_a_row_out(tagged: Database) -> None:
    for scope in (a_scope(floor=FALSE), a_scope(policy=FALSE)):
        assert listed(tagged, scope=scope) == searched(tagged, "fox", scope=scope) == Page((), 0)
        assert by_meaning(tagged, a_vector(1.0), scope=scope) == by_both(tagged, "fox", a_vector(1.0), scope) == Page((), 0)
    both = a_scope(floor=Equals("project", "alpha"), policy=Not(HoldsAny("tags", ("a",))))
    found = {(row.project_id, "a" in row.tags) for row in (found.row for found in listed(tagged, scope=both).found)}
    assert found == {("alpha", False)}


def test_a_row_is_gone_from_the_moment_at_which_it_expires(memories: Database) -> None:
    tick = timedelta(microseconds=1)
    remember(
        memories,
        [a_memory("m0", expires_at=NOON), a_memory("m1", expires_at=NOON + tick), a_memory("m2", expires_at=NOON - tick)],
    )
    assert ids(listed(memories)) == ["m1"]
    assert ids(listed(memories, scope=a_scope(owner_floor("org", "agent", live=False)))) == ["m0", "m1", "m2"]


# -- paging


@pytest.mark.parametrize("count", [0, 1, 50, 51, 501])
def test_paging_walks_every_row_once_with_one_total(memories: Database, count: int) -> None:
    rows = [a_memory(f"m{n:03d}", f"fox {'hound ' * (n % 3)}", created_at=NOON - HOUR * (n % 9)) for n in range(count)]
    remember(memories, rows, {row.id: [a_vector(1.0, float(n % 5))] for n, row in enumerate(rows)})
    remember(memories, [a_memory(f"h{n}", "fox", project_id=None) for n in range(60)])
    asked = a_vector(1.0)

    def walk(rows: Rows, mode: str) -> tuple[list[Found], set[int]]:
        walked: list[Found] = []
        totals: set[int] = set()
        while True:
            last = walked[-1].row if walked else None
            match mode:
                case "list":
                    after = None if last is None else (last.created_at, last.id)
                    page = recall.list_rows(rows, ALPHA, Narrow(), limit=50, after=after)
                case "keyword":
                    page = recall.keyword(rows, ALPHA, Narrow(), "fox hound", limit=50, offset=len(walked))
                case "semantic":
                    page = recall.semantic(rows, ALPHA, Narrow(), asked, limit=50, offset=len(walked))
                case _:
                    page = recall.hybrid(rows, ALPHA, Narrow(), "hound", asked, limit=50, offset=len(walked))
            totals.add(page.total)
            walked += page.found
            if not page.found:
                return walked, totals

    whole = {
        "list": listed(memories),
        "keyword": searched(memories, "fox hound"),
        "semantic": by_meaning(memories, asked),
        "hybrid": by_both(memories, "hound", asked),
    }
    for mode, page in whole.items():
        assert memories.read_sync(lambda rows, mode=mode: walk(rows, mode)) == (list(page.found), {count})  # type: ignore[misc]
        assert sorted(ids(page)) == [row.id for row in rows]
    assert ids(whole["list"]) == [row.id for row in newest_first(rows)]


# -- rows


def test_a_row_comes_back_whole(memories: Database) -> None:
    whole = a_memory(
        "m1",
        "text '\\ 🎉",
        layer="session",
        tags=("%", "a,b", "é"),
        classification="pii",
        connection_id="conn",
        source_did="did:web:a.example",
        expires_at=NOON + HOUR,
        retracted_at=NOON,
        superseded_by="m2",
        derived_from=("m0", "m2"),
        provenance=(Source("conn", "did:web:a.example"), Source("conn2", None)),
        extra=LayerFields(title="t", occurred_at=NOON, channel="c", started_at=NOON - HOUR, ended_at=NOON),
    )
    imported = a_memory("m2", project_id=None, source_did="did:web:b.example", provenance=(Source(None, "did:web:b.example"),))
    remember(memories, [whole, imported, a_memory("m3")])
    assert memories.read_sync(lambda rows: read_where(rows, "agent_id = $1", ["agent"])) == [whole, imported, a_memory("m3")]


def test_rows_are_fetched_by_id_in_that_order_and_only_from_the_scope(memories: Database) -> None:
    rows = [
        a_memory("m0"),
        a_memory("m1", project_id=None),
        a_memory("m2", retracted_at=NOON),
        a_memory("m3"),
        a_memory("o", agent_id="other"),
    ]
    remember(memories, rows)
    found = memories.read_sync(lambda store: fetch(store, ALPHA, ["m3", "o", "m2", "m1", "m0", "none", "m3'"]))
    assert found == [rows[3], rows[0]]
    assert memories.read_sync(lambda store: fetch(store, ALPHA, [])) == []
    assert memories.read_sync(lambda store: fetch(store, a_scope(policy=TRUE), ["m1"])) == [rows[1]]
