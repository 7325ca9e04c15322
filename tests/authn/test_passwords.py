"""Passwords: hashed with argon2id, checked off the loop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from gateway.authn import passwords as passwords_module
from gateway.authn.passwords import THREADS, WAITING, Passwords, check_password, hash_password
from gateway.errors import Unavailable


def test_a_password_is_kept_as_argon2id_with_a_salt_of_its_own() -> None:
    one, other = hash_password("correct horse battery"), hash_password("correct horse battery")
    assert one.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert one != other
    assert "correct" not in one


def test_only_the_right_password_is_accepted() -> None:
    stored = hash_password("correct horse battery")
    assert check_password(stored, "correct horse battery") is True
    assert check_password(stored, "correct horse batterx") is False
    assert check_password(stored, "") is False


def test_a_composed_and_a_decomposed_letter_are_one_password() -> None:
    assert check_password(hash_password("caf\u00e9 caf\u00e9 caf\u00e9"), "cafe\u0301 cafe\u0301 cafe\u0301") is True


def test_no_account_is_false_after_a_real_check(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []
    real = passwords_module._HASHER

    class Counting:
        def hash(self, password: str) -> str:
            return real.hash(password)

        def verify(self, stored: str, password: str) -> bool:
            checked.append(stored)
            return real.verify(stored, password)

    monkeypatch.setattr(passwords_module, "_HASHER", Counting())
    assert check_password(None, "the password of nobody") is False
    assert [stored.split("$")[1:4] for stored in checked] == [["argon2id", "v=19", "m=65536,t=3,p=4"]]


def test_a_check_does_not_run_on_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []

    def check(stored: str | None, password: str) -> bool:
        threads.append(threading.current_thread().name)
        return True

    monkeypatch.setattr(passwords_module, "check_password", check)
    assert asyncio.run(Passwords().check(None, "x")) is True
    assert threads[0].startswith("passwords")


def test_more_checks_than_can_wait_are_refused_and_the_place_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    monkeypatch.setattr(passwords_module, "check_password", lambda stored, password: gate.wait(30))

    async def flood() -> None:
        passwords = Passwords()
        waiting = [asyncio.ensure_future(passwords.check(None, "x")) for _ in range(THREADS + WAITING)]
        await asyncio.sleep(0)
        with pytest.raises(Unavailable):
            await passwords.check(None, "x")
        gate.set()
        assert await asyncio.gather(*waiting) == [True] * (THREADS + WAITING)
        assert await passwords.check(None, "x") is True

    asyncio.run(flood())
