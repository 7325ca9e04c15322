"""The inbox: what a note may wait for."""

from __future__ import annotations

import pytest

from gateway.store.faults import StoreBusy
from gateway.store.inbox import GATHER_SECONDS, WINDOW_SECONDS, Inbox, Turn, Work
from gateway.store.log import encode
from tests.store.samples import a_row

ENTRY = encode(a_row())


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_while_a_note_has_waited_for_longer_than_its_window_no_other_is_taken() -> None:
    clock = Clock()
    inbox = Inbox(clock)
    inbox.note([ENTRY])
    clock.now += WINDOW_SECONDS / 2
    inbox.note([ENTRY])
    clock.now += WINDOW_SECONDS
    with pytest.raises(StoreBusy):
        inbox.note([ENTRY])
    assert inbox.take() == Turn([], [ENTRY, ENTRY])
    inbox.note([ENTRY])


def test_an_idle_writer_takes_notes_before_their_window_ends() -> None:
    clock = Clock()
    inbox = Inbox(clock)
    inbox.note([ENTRY])
    clock.now += GATHER_SECONDS
    assert inbox.take() == Turn([], [ENTRY])
    assert GATHER_SECONDS < WINDOW_SECONDS


def test_a_note_waits_for_one_turn_at_most_however_much_work_there_is() -> None:
    inbox = Inbox()
    work = [Work(number, alone=True) for number in range(2)]
    inbox.put(work[0])
    inbox.note([ENTRY])
    inbox.put(work[1])
    assert inbox.take() == Turn([work[0]], [ENTRY])
    assert inbox.take() == Turn([work[1]], [])
