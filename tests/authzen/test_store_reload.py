"""The store is loaded again while it is served: what loads takes its place whole, and what does not leaves it as it is."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.operations import watch
from gateway.operations.store_reload import reload_store
from gateway.operations.sweeps import sweeps
from gateway.policy.finding import PolicyError
from gateway.policy.foreign.served import Served
from tests.authzen.asking import DOCUMENTS, RESOURCES, Pep, asked
from tests.builders import Gateway, done
from tests.operations.test_reload import OneOrg
from tests.world import ROOT


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return shutil.copytree(DOCUMENTS, tmp_path / "store")


@pytest.fixture
def gateway(tmp_path: Path, store: Path) -> Iterator[Gateway]:
    made = Gateway(tmp_path / "data", store=store, reload="watch")
    yield made
    made.close()


def forbid_all(store: Path) -> None:
    (store / "policies" / "closed.cedar").write_text("forbid (principal, action, resource);\n")


def test_what_has_changed_answers_once_it_is_loaded(gateway: Gateway, store: Path) -> None:
    pep = Pep(gateway.owner)
    assert pep.decision(asked()) is True
    forbid_all(store)
    assert pep.decision(asked()) is True
    before = done(gateway.owner.get("/health"), 200)["store"]
    asyncio.run(reload_store(gateway.services))
    assert pep.decision(asked()) is False
    health = done(gateway.owner.get("/health"), 200)
    assert (health["store"] != before, health["store_failure"]) == (True, None)


@pytest.mark.parametrize("file", ["schema.cedarschema", "entities.json", "policies/documents.cedar", "authzen.toml"])
def test_what_does_not_load_leaves_the_last_store_answering_and_is_told(gateway: Gateway, store: Path, file: str) -> None:
    pep, text = Pep(gateway.owner), (store / file).read_text()
    (store / file).write_text("{ [")
    asyncio.run(reload_store(gateway.services))
    assert pep.decision(asked()) is True
    served = gateway.services.foreign
    assert served is not None
    assert served.failure is not None
    assert file.rpartition("/")[2] in served.failure
    assert done(gateway.owner.get("/health"), 200)["store_failure"] is not None
    (store / file).write_text(text)
    asyncio.run(reload_store(gateway.services))
    assert done(gateway.owner.get("/health"), 200)["store_failure"] is None


@pytest.mark.parametrize("text", ["a = " + "[" * 5_000 + "]" * 5_000, "a = " + "9" * 5_000], ids=["deep", "long"])
def test_names_that_cannot_be_read_are_told_like_anything_else_that_does_not_load(store: Path, text: str) -> None:
    served = Served.load(store)
    (store / "authzen.toml").write_text(text)
    with pytest.raises(PolicyError, match=r"authzen\.toml:0:"):
        served.load_again()
    assert served.failure is not None


def test_names_behind_a_link_to_nothing_are_not_taken_for_none(store: Path) -> None:
    served = Served.load(store)
    (store / "authzen.toml").unlink()
    (store / "authzen.toml").symlink_to("gone.toml")
    with pytest.raises(PolicyError, match=r"authzen\.toml:0: cannot be read: FileNotFoundError"):
        served.load_again()


def test_a_directory_that_is_gone_leaves_the_last_store_answering(gateway: Gateway, store: Path) -> None:
    shutil.rmtree(store)
    asyncio.run(reload_store(gateway.services))
    assert Pep(gateway.owner).decision(asked()) is True
    assert done(gateway.owner.get("/health"), 200)["store_failure"]


def test_why_it_was_not_loaded_is_told_to_those_alone_who_may_load(tmp_path: Path, store: Path) -> None:
    one = OneOrg(tmp_path / "one", ROOT / "policies", store=store)
    auditor = one.human("auditor")
    (store / "entities.json").write_text("secret")
    asyncio.run(reload_store(one.services))
    try:
        assert done(one.owner.get("/health"), 200)["store_failure"].startswith("entities.json:0:")
        assert done(auditor.get("/health"), 200)["store_failure"] == "what lies on the disk has not been loaded"
        assert done(one.member.get("/health"), 200) == {"status": "ok"}
    finally:
        one.close()


def test_a_watch_loads_what_has_changed_and_tries_what_failed_once(
    gateway: Gateway, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[Path] = []
    load_again = Served.load_again
    monkeypatch.setattr(Served, "load_again", lambda served: loaded.append(served.directory) or load_again(served))  # type: ignore[func-returns-value]
    look = watch.store(gateway.services, store).look
    asyncio.run(look())
    assert loaded == []
    forbid_all(store)
    asyncio.run(look())
    assert Pep(gateway.owner).decision(asked()) is False
    (store / "policies" / "closed.cedar").write_text("forbid")
    os.utime(store / "policies" / "closed.cedar", (1, 1))
    for _ in range(2):
        asyncio.run(look())
    assert loaded == [store, store]


@pytest.mark.parametrize(("reload", "watched"), [("watch", True), ("shadow", False), ("off", False)])
def test_the_store_is_watched_where_changes_may_decide_at_once(tmp_path: Path, store: Path, reload: str, watched: bool) -> None:
    gateway = Gateway(tmp_path / "data", store=store, reload=reload)
    try:
        assert ("store" in [sweep.name for sweep in sweeps(gateway.services)]) is watched
    finally:
        gateway.close()


def test_a_token_of_a_page_does_not_outlive_the_store_it_was_given_by(gateway: Gateway, store: Path) -> None:
    pep, body = Pep(gateway.owner), asked("cleo", "read", "-")
    token = pep.ask(RESOURCES, body | {"page": {"limit": 1}})["page"]["next_token"]
    assert pep.client.post(RESOURCES, body | {"page": {"token": token}}).status_code == 200
    forbid_all(store)
    asyncio.run(reload_store(gateway.services))
    assert pep.client.post(RESOURCES, body | {"page": {"token": token}}).status_code == 400


def test_a_token_of_a_page_is_good_after_the_same_store_was_loaded_again(gateway: Gateway, store: Path) -> None:
    pep, body = Pep(gateway.owner), asked("cleo", "read", "-")
    token = pep.ask(RESOURCES, body | {"page": {"limit": 1}})["page"]["next_token"]
    entities = json.loads((store / "entities.json").read_text())
    (store / "entities.json").write_text(json.dumps(entities[::-1], sort_keys=True))
    asyncio.run(reload_store(gateway.services))
    assert pep.client.post(RESOURCES, body | {"page": {"token": token}}).status_code == 200


def test_one_answer_comes_of_one_store_however_often_it_is_loaded_meanwhile(gateway: Gateway, store: Path) -> None:
    pep, ended = Pep(gateway.owner), threading.Event()
    served = gateway.services.foreign
    assert served is not None
    closed = shutil.copytree(store, store.parent / "closed")
    forbid_all(closed)
    stores = (served.store, Served.load(closed).store)

    def swap() -> None:
        while not ended.is_set():
            served.store = stores[served.store is stores[0]]

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(5):
            decisions = pep.decisions(asked() | {"evaluations": [{}] * 300})
            assert len(set(decisions)) == 1
    finally:
        ended.set()
        thread.join()


def test_without_a_store_there_is_nothing_to_load(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path / "data")
    try:
        asyncio.run(reload_store(gateway.services))
        assert "store" not in done(gateway.owner.get("/health"), 200)
    finally:
        gateway.close()


def test_a_store_that_is_served_is_no_work_for_the_collection_of_garbage(store: Path) -> None:
    before = gc.get_freeze_count()
    served = Served.load(store)
    first, loaded = served.store, gc.get_freeze_count()
    served.load_again()
    assert before < loaded < gc.get_freeze_count()
    assert served.store is not first
    (store / "entities.json").write_text("{")
    with pytest.raises(PolicyError):
        served.load_again()
    assert gc.isenabled()
