"""The keys of an issuer: which are read, when they are fetched, and what an issuer that misbehaves can do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from joserfc.jwk import OctKey

from gateway.authn import issuer_keys, key_source
from gateway.authn.issuer_keys import COOL_DOWN, FRESH, KEPT, WAITING, IssuerKeys
from gateway.authn.jwks import KEY_SET_BYTES, KEYS, KeySetUnusable, read_key_set
from gateway.errors import Unavailable
from tests.authn.builders import NOW
from tests.authn.issuing import KeyServer, key, key_set, published, publishing

# -- the set


def kids(*entries: dict[str, Any]) -> set[str]:
    return set(read_key_set(key_set(*entries)))


def test_a_key_of_each_type_is_read() -> None:
    entries = [published(kind, key(kind)) for kind in ("2048", "P-256", "P-384", "P-521", "Ed25519")]
    read = read_key_set(key_set(*entries))
    assert {kid: sorted(found.algorithms) for kid, found in read.items()} == {
        "2048": ["PS256", "PS384", "PS512", "RS256", "RS384", "RS512"],
        "P-256": ["ES256"],
        "P-384": ["ES384"],
        "P-521": ["ES512"],
        "Ed25519": ["Ed25519", "EdDSA"],
    }
    assert not any(found.jwk.is_private for found in read.values())


@pytest.mark.parametrize(
    "entry",
    [
        published(None),
        published(""),
        published("k" * 257),
        {**published("x"), "kid": 5},
        published("x", use="enc"),
        published("x", use=None),
        published("x", key_ops=["sign"]),
        published("x", key_ops="verify"),
        published("x", alg="RS256"),
        published("x", alg="ECDH-ES"),
        published("x", alg=["ES256"]),
        published("x", key("X25519")),
        published("x", key("secp256k1")),
        published("x", key("1024")),
        {**published("x", key("2048")), "e": "AQ"},
        {**published("x", key("2048")), "e": "AQAAAAAB"},
        {**published("x", key("2048")), "n": "?"},
        {**published("x", key("2048")), "n": published("x", key("2048"))["n"] * 4},
        {**published("x"), "y": published("x")["x"]},
        {**published("x"), "x": 5},
        {**published("x"), "crv": "P-999"},
        {**published("x"), "kty": "XY"},
        {**published("x"), "kty": ["EC"]},
        {"kid": "x"},
        {**key().as_dict(private=True), "kid": "x"},
        {**OctKey.generate_key(256).as_dict(private=True), "kid": "x"},
        [],
        "x",
    ],
    ids=(str(number) for number in range(28)),  # what the keys are differs from run to run
)
def test_what_is_no_usable_key_is_left_out_and_the_others_stay(entry: Any) -> None:
    assert kids(entry, published("good")) == {"good"}


def test_two_keys_of_one_id_are_none() -> None:
    assert kids(published("one"), published("one", key("P-256", 2)), published("good")) == {"good"}
    assert kids(published("one"), published("one"), published("one", key("2048"), use="enc")) == {"one"}


def test_a_third_key_of_one_id_does_not_bring_it_back() -> None:
    assert kids(published("one"), published("one", key("P-256", 2)), published("one")) == set()


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"keys": {}}', b'{"keys": [], "keys": []}', b"[" * 100_000, b"\xff"])
def test_what_is_no_key_set_is_refused(content: bytes) -> None:
    with pytest.raises(KeySetUnusable, match="it is no JWK set"):
        read_key_set(content)


def test_a_set_has_a_size_and_a_number_of_keys() -> None:
    assert len(read_key_set(key_set(*[published(str(number)) for number in range(KEYS)]))) == KEYS
    with pytest.raises(KeySetUnusable, match="more than 100 keys"):
        read_key_set(key_set(*[published(str(number)) for number in range(KEYS + 1)]))
    assert read_key_set(key_set().ljust(KEY_SET_BYTES)) == {}
    with pytest.raises(KeySetUnusable, match="over the limit of 256 KiB"):
        read_key_set(key_set().ljust(KEY_SET_BYTES + 1))


# -- where it comes from


@pytest.fixture
def server() -> Iterator[KeyServer]:
    with publishing(published("one")) as made:
        yield made


def test_a_file_is_read_up_to_the_limit_and_one_that_is_not_there_is_said(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    with pytest.raises(KeySetUnusable, match=f"{file} cannot be read: No such file"):
        key_source.key_source(str(file))()
    file.write_bytes(b" " * (KEY_SET_BYTES * 2))
    assert len(key_source.key_source(str(file))()) == KEY_SET_BYTES + 1


def test_an_address_is_asked(server: KeyServer) -> None:
    assert key_source.key_source(server.url)() == server.content


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_no_redirect_is_followed(server: KeyServer, status: int) -> None:
    server.status, server.headers = status, {"Location": "/elsewhere"}
    with pytest.raises(KeySetUnusable, match=f"its address answers {status}"):
        key_source.key_source(server.url)()
    assert server.asked == ["/keys"]


@pytest.mark.parametrize("status", [204, 404, 500])
def test_only_a_plain_answer_counts(server: KeyServer, status: int) -> None:
    server.status = status
    with pytest.raises(KeySetUnusable, match=f"its address answers {status}"):
        key_source.key_source(server.url)()


def test_a_huge_answer_is_not_read_to_its_end(server: KeyServer) -> None:
    server.content = b" " * (KEY_SET_BYTES * 40)
    assert len(key_source.key_source(server.url)()) < KEY_SET_BYTES * 2
    with pytest.raises(KeySetUnusable, match="over the limit"):
        IssuerKeys(key_source.key_source(server.url)).load(NOW)


def test_an_answer_that_drips_has_an_end(server: KeyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_source, "FETCH_SECONDS", 0.3)
    server.drip = 0.05
    with pytest.raises(KeySetUnusable, match="it cannot be fetched"):
        key_source.key_source(server.url)()


def test_nobody_at_the_address_is_said_without_a_word_of_theirs() -> None:
    with pytest.raises(KeySetUnusable, match=r"^it cannot be fetched \(ConnectError\)$"):
        key_source.key_source("http://127.0.0.1:1/keys")()


def test_what_is_on_this_machine_is_asked_without_a_proxy(server: KeyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    assert key_source.key_source(server.url)() == server.content


# -- when it is fetched


def held(server: KeyServer) -> IssuerKeys:
    return IssuerKeys(key_source.key_source(server.url))


def after(**by: float) -> Any:
    return NOW + timedelta(**by)


def finished(keys: IssuerKeys) -> None:
    """Wait for the fetch that is under way."""
    assert keys._under_way is not None
    keys._under_way.result()


def test_the_first_token_fetches_the_keys_and_the_next_ones_do_not(server: KeyServer) -> None:
    keys = held(server)
    assert keys.key("one", NOW) is None
    for _ in range(3):
        asyncio.run(keys.prepare("one", NOW))
        assert keys.key("one", NOW) is not None
    assert len(server.asked) == 1


def test_a_thousand_unknown_ids_cause_one_fetch_in_each_while(server: KeyServer) -> None:
    keys = held(server)

    async def storm(now: Any) -> None:
        for number in range(0, 1_000, 50):
            await asyncio.gather(*(keys.prepare(f"k{other}", now) for other in range(number, number + 50)))

    asyncio.run(storm(NOW))
    assert len(server.asked) == 1
    asyncio.run(storm(after(seconds=COOL_DOWN.total_seconds() - 1)))
    assert len(server.asked) == 1
    asyncio.run(storm(NOW + COOL_DOWN))
    assert len(server.asked) == 2


def test_a_new_key_is_found_when_a_token_names_it(server: KeyServer) -> None:
    keys = held(server)
    asyncio.run(keys.prepare("one", NOW))
    server.content = key_set(published("two", key("P-256", 2)))
    asyncio.run(keys.prepare("two", NOW + COOL_DOWN))
    assert keys.key("two", NOW + COOL_DOWN) is not None
    assert keys.key("one", NOW + COOL_DOWN) is None


def test_keys_that_were_all_withdrawn_are_none(server: KeyServer) -> None:
    keys = held(server)
    asyncio.run(keys.prepare("one", NOW))
    server.content = key_set()
    asyncio.run(keys.prepare("other", NOW + COOL_DOWN))
    assert keys.key("one", NOW + COOL_DOWN) is None


def test_old_keys_serve_while_new_ones_are_fetched(server: KeyServer) -> None:
    keys = held(server)
    asyncio.run(keys.prepare("one", NOW))
    go_on = threading.Event()
    server.before = go_on.wait  # type: ignore[assignment]
    asyncio.run(keys.prepare("one", after(seconds=FRESH.total_seconds() - 1)))
    assert len(server.asked) == 1

    async def at_once() -> bool:
        asked = asyncio.create_task(keys.prepare("one", NOW + FRESH))
        await asyncio.sleep(0)
        return asked.done()

    assert asyncio.run(at_once())
    assert keys.key("one", NOW + FRESH) is not None
    go_on.set()
    finished(keys)
    assert len(server.asked) == 2
    assert keys.key("one", NOW + FRESH + KEPT - timedelta(seconds=1)) is not None


def test_keys_serve_for_a_while_after_the_issuer_fails_and_no_longer(server: KeyServer, caplog: pytest.LogCaptureFixture) -> None:
    keys = held(server)
    asyncio.run(keys.prepare("one", NOW))
    server.status, server.content = 500, b"a secret of the issuer"
    late = after(seconds=KEPT.total_seconds() - 1)
    asyncio.run(keys.prepare("one", late))
    finished(keys)
    assert keys.key("one", late) is not None
    assert keys.key("one", NOW + KEPT) is None
    with pytest.raises(Unavailable):
        asyncio.run(keys.prepare("one", NOW + KEPT + COOL_DOWN))
    assert "the key set of the token issuer: its address answers 500" in caplog.text
    assert "secret" not in caplog.text


def test_a_set_that_is_broken_changes_nothing(server: KeyServer) -> None:
    keys = held(server)
    asyncio.run(keys.prepare("one", NOW))
    server.content = b"{"
    asyncio.run(keys.prepare("two", NOW + COOL_DOWN))
    assert keys.key("one", NOW + COOL_DOWN) is not None


def test_without_any_keys_a_token_cannot_be_judged(server: KeyServer) -> None:
    server.status = 503
    keys = held(server)
    with pytest.raises(Unavailable) as error:
        asyncio.run(keys.prepare("one", NOW))
    assert error.value.retry_after == COOL_DOWN.total_seconds()
    server.status = 200
    with pytest.raises(Unavailable):
        asyncio.run(keys.prepare("one", NOW))
    asyncio.run(keys.prepare("one", NOW + COOL_DOWN))
    assert len(server.asked) == 2


def test_a_clock_that_is_set_back_makes_nothing_last_longer(server: KeyServer) -> None:
    keys = held(server)
    asyncio.run(keys.prepare("one", NOW))
    assert keys.key("one", NOW - KEPT) is None
    asyncio.run(keys.prepare("one", NOW - KEPT))
    assert len(server.asked) == 2


def test_the_loop_goes_on_while_keys_are_fetched(server: KeyServer) -> None:
    keys, go_on = held(server), threading.Event()
    server.before = go_on.wait  # type: ignore[assignment]

    async def both() -> None:
        asked = asyncio.create_task(keys.prepare("one", NOW))
        while not server.asked:
            await asyncio.sleep(0.001)
        assert not asked.done()
        go_on.set()
        await asked

    asyncio.run(both())
    assert keys.key("one", NOW) is not None


def test_only_so_many_wait_and_not_for_ever(server: KeyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issuer_keys, "FETCH_SECONDS", 0.2)
    keys, go_on = held(server), threading.Event()
    server.before = go_on.wait  # type: ignore[assignment]

    async def one() -> int:
        with pytest.raises(Unavailable) as error:
            await keys.prepare("one", NOW)
        return error.value.retry_after

    async def crowd() -> list[int]:
        return sorted(await asyncio.gather(*(one() for _ in range(WAITING + 5))))

    told = asyncio.run(crowd())
    go_on.set()
    finished(keys)
    assert told == [1] * 5 + [int(COOL_DOWN.total_seconds())] * WAITING
    assert len(server.asked) == 1


def test_a_request_that_goes_away_leaves_the_fetch_to_the_others(server: KeyServer) -> None:
    keys, go_on = held(server), threading.Event()
    server.before = go_on.wait  # type: ignore[assignment]

    async def two() -> None:
        gone, stays = (asyncio.create_task(keys.prepare("one", NOW)) for _ in range(2))
        while not server.asked:
            await asyncio.sleep(0.001)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        go_on.set()
        await stays

    asyncio.run(two())
    assert keys.key("one", NOW) is not None
