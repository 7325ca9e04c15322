"""Figures: searches of one in a hundred rows, against the same search written by hand for one project."""

from __future__ import annotations

from collections.abc import Callable

from gateway.cli.bench.figure import Figure, Plan, at_most
from gateway.cli.bench.memory_fill import MODEL, VOCABULARY, Remembered, fill_made, fill_vectors, remembered
from gateway.cli.bench.rounds import Timed, by_the_clock
from gateway.cli.output import Progress
from gateway.model.memory import Narrow, Vector
from gateway.store import recall
from gateway.store.words import terms

ROWS, MANY_ROWS = 100_000, 1_000_000
#: With fewer, a query may find nothing of what may be seen.
FEWEST_ROWS = 20_000
PROJECT = "project-1"
QUERIES, FEW_QUERIES, TOP, PAGE = 20, 5, 10, 50
EVERYTHING_GRANTED = Narrow()
#: BM25 as anybody would write it who has one project and nobody to keep out.
BY_HAND = """WITH v AS MATERIALIZED (SELECT id, text, created_at, words FROM memories WHERE agent_id = $1 AND project_id = $2),
  s AS (SELECT count(*)::DOUBLE AS n, avg(words) AS mean FROM v),
  hits AS (SELECT v.id, t.token, t.times, v.words FROM memory_tokens t JOIN v ON v.id = t.memory_id
    WHERE t.agent_id = $1 AND t.token = ANY($3::VARCHAR[])),
  df AS (SELECT token, count(*)::DOUBLE AS df FROM hits GROUP BY token),
  scored AS (SELECT id,
      sum(ln(1 + (n - df + 0.5) / (df + 0.5)) * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * words / mean))) AS score
    FROM hits JOIN df USING (token) CROSS JOIN s GROUP BY id)
  SELECT v.id, v.text, v.created_at, score FROM scored JOIN v USING (id) ORDER BY score DESC, v.created_at DESC, v.id LIMIT $4"""


def searches(plan: Plan, shown: Progress) -> list[Figure]:
    """Through the functions that every surface reads with, with what a remote connection is granted."""
    rows = plan.size(ROWS, least=FEWEST_ROWS)
    with remembered([PROJECT]) as memory:
        fill_made(memory, rows)
        fill_vectors(memory, rows)
        ours, by_hand = by_the_clock(
            plan.rounds, [_keyword(memory), _by_hand(memory)], each=plan.size(QUERIES, least=FEW_QUERIES), shown=shown
        )
        figures = [
            Figure(
                "memory-keyword",
                f"half of the searches by words in {rows:,} rows take as many times as long as with SQL by hand",
                "x",
                ours.over(by_hand),
                {"rows": rows, "p50_ms": ours.milliseconds, "by_hand_p50_ms": by_hand.milliseconds},
                must=at_most(3),
            ),
            _semantic(memory, plan, shown, rows, ours),
            _decided_again(memory, plan, shown),
        ]
    return figures if plan.quick else [*figures, _many(plan, shown, ours)]


def _keyword(memory: Remembered) -> Callable[[int], None]:
    grant = memory.plan()

    def ask(number: int) -> None:
        page = memory.read(lambda rows: recall.keyword(rows, grant, EVERYTHING_GRANTED, _query(number), limit=TOP))
        if not page.found:
            raise RuntimeError("a search that finds nothing is not what is to be measured")

    return ask


def _by_hand(memory: Remembered) -> Callable[[int], None]:
    def ask(number: int) -> None:
        asked = (memory.agent.id, PROJECT, terms(_query(number)), TOP)
        memory.read(lambda rows: rows.all(BY_HAND, *asked))

    return ask


def _semantic(memory: Remembered, plan: Plan, shown: Progress, rows: int, by_words: Timed) -> Figure:
    grant = memory.plan()

    def ask(number: int) -> None:
        memory.read(lambda rows: recall.semantic(rows, grant, EVERYTHING_GRANTED, _vector(number), limit=TOP))

    [took] = by_the_clock(plan.rounds, [ask], each=plan.size(QUERIES, least=FEW_QUERIES), shown=shown)
    what = f"half of the searches by meaning in {rows:,} rows take no longer"
    beside = took.over(by_words)
    return Figure("memory-semantic", what, "ms", took.milliseconds, {"rows": rows}, aim=at_most(20), beside=beside)


def _decided_again(memory: Remembered, plan: Plan, shown: Progress) -> Figure:
    """A search for 50 rows in its three steps; the third is what it costs to trust no query."""
    grant = memory.plan()
    found = memory.read(lambda rows: recall.keyword(rows, grant, EVERYTHING_GRANTED, _query(0), limit=PAGE)).found

    def search(number: int) -> None:
        memory.read(lambda rows: recall.keyword(rows, grant, EVERYTHING_GRANTED, _query(number), limit=PAGE))

    def decide(_: int) -> None:
        kept = memory.services.access.confirm(memory.plan(), [each.row for each in found])
        if len(kept) != len(found):
            raise RuntimeError("a row that the query had kept was denied")

    planned, searched, both = by_the_clock(
        plan.rounds, [lambda _: memory.plan(), search, decide], each=plan.size(QUERIES, least=FEW_QUERIES), shown=shown
    )
    again = both.median - planned.median
    return Figure(
        "memory-decided-again",
        f"the part of a request for {len(found)} rows in which each is decided once more",
        "x",
        again / (both.median + searched.median),
        {"plan_ms": planned.milliseconds, "search_ms": searched.milliseconds, "again_ms": again * 1e3},
    )


def _many(plan: Plan, shown: Progress, few: Timed) -> Figure:
    with remembered([PROJECT]) as memory:
        fill_made(memory, MANY_ROWS)
        [ours] = by_the_clock(plan.rounds, [_keyword(memory)], each=FEW_QUERIES, shown=shown)
    return Figure(
        "memory-keyword-many",
        f"half of the searches by words in {MANY_ROWS:,} rows take as many times as long as in {ROWS:,}",
        "x",
        ours.over(few),
        {"rows": MANY_ROWS, "p50_ms": ours.milliseconds},
        must=at_most(12),
    )


def _query(number: int) -> str:
    """A frequent word, a less frequent one and a rare one."""
    return f"w{number} w{20 + number * 37 % 400} w{500 + number * 911 % (VOCABULARY - 500)}"


def _vector(number: int) -> Vector:
    return Vector(MODEL, tuple(((number * 512 + place) * 7919 % 2_001) / 1_000 - 1 for place in range(512)))
