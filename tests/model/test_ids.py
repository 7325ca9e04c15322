"""Ids that the gateway gives out."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

from gateway.model.ids import MADE_AT_ONCE, new_id


def test_an_id_is_a_random_uuid_in_lower_case() -> None:
    for _ in range(2 * MADE_AT_ONCE):
        made = new_id()
        assert (str(uuid.UUID(made)), uuid.UUID(made).version, uuid.UUID(made).variant) == (made, 4, uuid.RFC_4122)


def test_no_id_is_given_out_twice_however_many_threads_ask() -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: new_id(), range(20 * MADE_AT_ONCE)))
    assert len(set(made)) == len(made)
