"""Recall: the rows of an agent's memory that a caller may see, listed, or found by words or by meaning.

A row counts only when it passes the floor of the grants, the policies and the request, all three. Everything else is worked
out over those rows alone: totals, order, and the statistics behind a score, so that a hidden row moves none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from gateway.model.condition import all_of
from gateway.model.grant import Grant
from gateway.model.memory import LAYERS, Found, Layer, MemoryScope, Narrow, Page, Vector
from gateway.model.narrow import narrowed
from gateway.store.condition import MEMORY, filled, placed
from gateway.store.memory_rows import fetch
from gateway.store.rows import Row, Rows
from gateway.store.words import terms

# A page is one statement, and has a row with the total also when there is nothing on it.
LIST = """WITH visible AS MATERIALIZED (SELECT id, created_at FROM memories WHERE {where}),
  page AS (SELECT id, created_at FROM visible ORDER BY created_at DESC, id LIMIT $1)
  SELECT t.total, page.id, 0.0 FROM (SELECT count(*) AS total FROM visible) t LEFT JOIN page ON TRUE
  ORDER BY page.created_at DESC, page.id"""
LIST_AFTER = """WITH visible AS MATERIALIZED (SELECT id, created_at FROM memories WHERE {where}),
  page AS (SELECT id, created_at FROM visible WHERE created_at < $2 OR (created_at = $2 AND id > $3)
    ORDER BY created_at DESC, id LIMIT $1)
  SELECT t.total, page.id, 0.0 FROM (SELECT count(*) AS total FROM visible) t LEFT JOIN page ON TRUE
  ORDER BY page.created_at DESC, page.id"""

#: The rows of `visible` that hold one of the tokens $4, with their points: BM25 (k1 1.2, b 0.75) in billionths, as whole
#: numbers, because the sum of floating-point numbers depends on their order. `tokens` are those of the agent $1.
SCORED = """stats AS (SELECT CAST(count(*) AS DOUBLE PRECISION) AS n, CAST(sum(words) AS DOUBLE PRECISION) / count(*) AS mean
    FROM visible),
  hits AS (SELECT v.id, v.created_at, v.words, CAST(t.times AS DOUBLE PRECISION) AS times,
      CAST(count(*) OVER (PARTITION BY t.token) AS DOUBLE PRECISION) AS df
    FROM memory_tokens t JOIN visible v ON v.id = t.memory_id WHERE t.agent_id = $1 AND t.token = ANY($4::VARCHAR[])),
  scored AS (SELECT id, created_at, sum(CAST(round(1e9 * ln(1 + (n - df + 0.5) / (df + 0.5))
      * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * words / mean))) AS BIGINT)) AS points
    FROM hits CROSS JOIN stats GROUP BY id, created_at)"""
KEYWORD = placed(
    """WITH visible AS MATERIALIZED (SELECT id, created_at, words FROM memories WHERE {where}),
  {scored},
  page AS (SELECT id, created_at, points FROM scored ORDER BY points DESC, created_at DESC, id LIMIT $2 OFFSET $3)
  SELECT t.total, page.id, page.points / 1e9 FROM (SELECT count(*) AS total FROM scored) t LEFT JOIN page ON TRUE
  ORDER BY page.points DESC, page.created_at DESC, page.id""",
    SCORED,
    "scored",
)

#: Every row of `visible`, by its best piece of the model $6 against the vector $5 and by its words. A row without a piece is
#: last, and names its layer in `lacking`. The cosine of a vector without a direction is 0. Which pieces they are is found
#: first, because reading the vectors of all is what takes the time. Vectors of fixed length, their cosine and `rowid` are
#: DuckDB's own; nothing else in here is.
RANKED = placed(
    """WITH visible AS MATERIALIZED (SELECT id, layer, created_at, words FROM memories WHERE {where}),
  pieces AS MATERIALIZED (SELECT p.rowid AS place FROM memory_vectors p JOIN visible v ON v.id = p.memory_id
    WHERE p.agent_id = $1 AND p.model = $6),
  likeness AS (SELECT memory_id,
      max(coalesce(nullif(round(CAST(array_cosine_similarity(vector, $5::FLOAT[512]) AS DOUBLE), 6), 'NaN'), 0)) AS cosine
    FROM memory_vectors WHERE rowid IN (SELECT place FROM pieces) GROUP BY memory_id),
  {scored},
  by_meaning AS (SELECT v.id, l.cosine, row_number() OVER (ORDER BY l.cosine DESC, v.created_at DESC, v.id) AS place
    FROM likeness l JOIN visible v ON v.id = l.memory_id),
  by_words AS (SELECT id, row_number() OVER (ORDER BY points DESC, created_at DESC, id) AS place FROM scored),
  fused AS (SELECT v.id, v.layer, v.created_at, m.cosine,
      coalesce(1e0 / (60 + m.place), 0) + coalesce(1e0 / (60 + w.place), 0) AS score
    FROM visible v LEFT JOIN by_meaning m ON m.id = v.id LEFT JOIN by_words w ON w.id = v.id),
  page AS (SELECT id, created_at, cosine, score FROM fused ORDER BY score DESC, created_at DESC, id LIMIT $2 OFFSET $3)
  SELECT t.total, t.lacking, page.id, page.score, coalesce(page.cosine, -1)
  FROM (SELECT count(*) AS total, array_agg(DISTINCT layer) FILTER (WHERE cosine IS NULL) AS lacking FROM fused) t
  LEFT JOIN page ON TRUE ORDER BY page.score DESC, page.created_at DESC, page.id""",
    SCORED,
    "scored",
)


def list_rows(
    rows: Rows, grant: Grant[MemoryScope], narrow: Narrow, *, limit: int, after: tuple[datetime, str] | None = None
) -> Page:
    """Some of the rows, the newest first, then by id, from the one after the row of this creation time and id.

    The total is of all rows, not of those that are left.
    """
    if after is None:
        return _page(rows, grant, _visible(rows, grant, narrow, LIST, limit))
    return _page(rows, grant, _visible(rows, grant, narrow, LIST_AFTER, limit, *after))


def keyword(rows: Rows, grant: Grant[MemoryScope], narrow: Narrow, query: str, *, limit: int, offset: int = 0) -> Page:
    """The rows that hold at least one token of the query, the best first, then the newest, then by id."""
    wanted = terms(query)
    if not wanted:
        return Page((), 0)
    return _page(rows, grant, _visible(rows, grant, narrow, KEYWORD, grant.target.agent_id, limit, offset, wanted))


def semantic(rows: Rows, grant: Grant[MemoryScope], narrow: Narrow, vector: Vector, *, limit: int, offset: int = 0) -> Page:
    """Every row, the most like the vector first, then the newest, then by id; the score is the cosine of its best piece.

    Rows that have no vector of this model come last, with a score of -1; their layers are named in `incomplete`.
    """
    # Without words, the places in both rankings are those in the one by meaning.
    ranked = _ranked(rows, grant, narrow, [], vector, limit, offset)
    return _page(rows, grant, [(total, found, cosine) for total, _, found, _, cosine in ranked], _lacking(ranked))


def hybrid(
    rows: Rows, grant: Grant[MemoryScope], narrow: Narrow, query: str, vector: Vector, *, limit: int, offset: int = 0
) -> Page:
    """Every row, by its places in the rankings by meaning and by words (reciprocal rank fusion, k = 60), ties as ever.

    A row that holds no token of the query, or has no vector of this model, has a place in the other alone.
    """
    ranked = _ranked(rows, grant, narrow, terms(query), vector, limit, offset)
    return _page(rows, grant, [(total, found, score) for total, _, found, score, _ in ranked], _lacking(ranked))


def _visible(rows: Rows, grant: Grant[MemoryScope], narrow: Narrow, sql: str, *params: object) -> list[Row]:
    """The answer to a statement whose `{where}` are the rows for this caller and request.

    INVARIANT: every statement that looks at more than one row of memory for a caller is run here.
    """
    scope = grant.target
    condition = all_of(scope.floor, scope.policy, narrowed(narrow))
    sql, params = filled(sql, condition, MEMORY, grant.now, *params)
    return rows.all(sql, *params)


def _page(rows: Rows, grant: Grant[MemoryScope], ranked: Sequence[Row], incomplete: tuple[Layer, ...] = ()) -> Page:
    """The page of a ranking: rows of total, id and score, of which the id is None when there is no row on it."""
    scores = {memory_id: float(score) for _, memory_id, score, *_ in ranked if memory_id is not None}
    found = tuple(Found(row, scores[row.id]) for row in fetch(rows, grant, list(scores)))
    return Page(found, int(ranked[0][0]), incomplete)


def _ranked(
    rows: Rows,
    grant: Grant[MemoryScope],
    narrow: Narrow,
    wanted: list[str],
    vector: Vector,
    limit: int,
    offset: int,
) -> list[Row]:
    params = (grant.target.agent_id, limit, offset, wanted, list(vector.numbers), vector.model)
    return _visible(rows, grant, narrow, RANKED, *params)


def _lacking(ranked: Sequence[Row]) -> tuple[Layer, ...]:
    layers = ranked[0][1] or ()
    return tuple(layer for layer in LAYERS if layer in layers)
