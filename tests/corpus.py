"""A real corpus for tests: what the bench measures with, as rows and as requests. Nothing of it is kept in the repository."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from gateway.cli.bench.corpus import Passage, as_memory, corpus
from gateway.model.memory import Memory
from gateway.model.records import Agent

__all__ = ["Passage", "body", "corpus", "rows", "some"]


def some(most: int) -> tuple[Passage, ...]:
    """So many passages, from all over the corpus; the same ones each time."""
    whole = corpus()
    return whole[:: max(1, len(whole) // most)][:most]


def rows(agent: Agent, now: datetime, most: int | None = None) -> list[Memory]:
    """The corpus, or some of it, as rows of an agent's memory."""
    return [as_memory(passage, agent, now) for passage in (corpus() if most is None else some(most))]


def body(passage: Passage, agent_id: str | None = None) -> dict[str, Any]:
    """What `POST /v1/memories` is sent to have a passage remembered."""
    made: dict[str, Any] = {
        "text": passage.text,
        "layer": passage.layer,
        "tags": list(passage.tags),
        "classification": passage.classification,
    }
    if passage.project_id is not None:
        made["project_id"] = passage.project_id
    return made if agent_id is None else made | {"agent_id": agent_id}
