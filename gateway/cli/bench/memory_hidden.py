"""Figure: what rows that a remote connection may not see change in what it sees, which has to be nothing."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack

from gateway.cli.bench.corpus import Passage, as_memory, corpus
from gateway.cli.bench.figure import Figure, Plan, at_most
from gateway.cli.bench.memory_fill import Remembered, fill_given, remembered
from gateway.cli.output import Progress
from gateway.model.memory import Narrow
from gateway.store import recall

SEED = 20_260_301
QUERIES, PAGE, MOST_WORDS = 1_000, 50, 6
#: The part of the rows that the connection may see, at most.
SEEN = 0.3
MOST_GRANTS = 6


def hidden(plan: Plan, shown: Progress) -> list[Figure]:
    """The same questions to two memories: one holds everything, the other only what the connection may see."""
    drawn = random.Random(SEED)  # noqa: S311  # the same questions each time
    passages = corpus()
    projects = _projects(passages)
    seen = [passage for passage in passages if passage.project_id in projects and _shown(passage)]
    with ExitStack() as opened:
        whole, part = (opened.enter_context(remembered(projects)) for _ in range(2))
        now = whole.services.clock()
        for memory, held in ((whole, passages), (part, seen)):
            fill_given(memory, [as_memory(passage, memory.agent, now) for passage in held])
        different = answers = 0
        queries = plan.size(QUERIES)
        for number in range(queries):
            shown(number + 1, queries)
            query = _query(seen if number % 2 else passages, drawn)
            pages = [_page(memory, query) for memory in (whole, part)]
            different += pages[0] != pages[1]
            answers += bool(pages[0][1])
    return [
        Figure(
            "memory-hidden",
            "pages that hidden rows change, in an id, the order, a score or the total",
            "pages",
            different,
            {"pages": queries, "with_rows": answers, "rows": len(passages), "visible": len(seen), "projects": len(projects)},
            must=at_most(0),
        )
    ]


def _projects(passages: Sequence[Passage]) -> list[str]:
    """The largest projects that together hold no more than the part of the rows that may be seen."""
    sizes = Counter(passage.project_id for passage in passages if passage.project_id is not None and _shown(passage))
    left = int(SEEN * len(passages))
    chosen: list[str] = []
    for project, size in sizes.most_common():
        if size <= left and len(chosen) < MOST_GRANTS:
            left -= size
            chosen.append(project)
    return chosen


def _shown(passage: Passage) -> bool:
    """Whether its tier is one of those that a grant names by itself."""
    return passage.classification in ("public", "internal")


def _query(passages: Sequence[Passage], drawn: random.Random) -> str:
    """Some words that stand somewhere, punctuation and all."""
    words = drawn.choice(passages).text.split()
    return " ".join(drawn.sample(words, min(len(words), drawn.randint(1, MOST_WORDS))))


def _page(memory: Remembered, query: str) -> tuple[int, list[tuple[str, float]]]:
    grant = memory.plan()
    page = memory.read(lambda rows: recall.keyword(rows, grant, Narrow(), query, limit=PAGE))
    kept = memory.services.access.confirm(grant, [found.row for found in page.found])
    if len(kept) != len(page.found):
        raise RuntimeError("a row that the query had kept was denied")
    return page.total, [(found.row.id, found.score) for found in page.found]
