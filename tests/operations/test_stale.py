"""A decision that no longer stands when its answer or its change is due."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from gateway.store.credentials import end_credentials
from gateway.store.writer import Unit
from tests.builders import Client, Gateway, Response, done
from tests.store.samples import busy_writer

APPROVED = {"event_type": "approval", "content": {"action": "ticket.close", "decision": "approved"}}


@contextmanager
def called(owner: object, method: str) -> Iterator[threading.Event]:
    """The event is set when a method of a real object has returned once."""
    inner: Callable[..., Any] = getattr(owner, method)
    returned = threading.Event()

    def watched(*args: Any, **kw: Any) -> Any:
        result = inner(*args, **kw)
        returned.set()
        return result

    setattr(owner, method, watched)
    try:
        yield returned
    finally:
        delattr(owner, method)


def block_readers(gateway: Gateway) -> tuple[threading.Event, list[threading.Thread]]:
    """Occupy both reader threads until the event is set."""
    release, started = threading.Event(), threading.Barrier(3)

    def wait(_: object) -> None:
        started.wait()
        release.wait()

    threads = [threading.Thread(target=lambda: gateway.services.database.read_sync(wait)) for _ in range(2)]
    for thread in threads:
        thread.start()
    started.wait()
    return release, threads


def remove_observers(gateway: Gateway, peer_id: str) -> Future[None]:
    """What a person's PUT of an empty list does to the state, queued."""
    return gateway.services.database.write(
        Unit(lambda tx: tx.after_commit(lambda: tx.state.put_observers(peer_id, [])), solo=True)
    )


def test_an_agent_removed_while_its_read_waits_is_not_shown_what_came_after(gateway: Gateway) -> None:
    agent = gateway.agent()
    peer = gateway.peer(observers=[agent])
    release, threads = block_readers(gateway)
    with ThreadPoolExecutor(1) as pool:
        with called(gateway.services.access, "authorize_with") as decided:
            answer = pool.submit(agent.get, f"/v1/peers/{peer['id']}/context")
            decided.wait()
        remove_observers(gateway, peer["id"]).result()
        release.set()
        assert answer.result().status_code == 403
    for thread in threads:
        thread.join()
    rows = done(gateway.owner.get("/v1/decisions", action="peer.read_context"), 200)["decisions"]
    assert [row["decision"] for row in rows] == ["deny", "allow"]


def queued_event(gateway: Gateway, agent: Client, peer_id: str, change: Callable[[], Future[None]]) -> Response:
    """The answer to an event that was decided before a change, and is written after it."""
    database = gateway.services.database
    with ThreadPoolExecutor(1) as pool:
        with busy_writer(database):
            changed = change()
            with called(database._writer, "submit") as queued:
                answer = pool.submit(agent.post, f"/v1/peers/{peer_id}/events", APPROVED)
                queued.wait()
        changed.result()
        return answer.result()


def stored_events(gateway: Gateway) -> int:
    return int(gateway.services.database.read_sync(lambda rows: rows.value("SELECT count(*) FROM events")))


def test_an_event_queued_behind_its_agents_removal_is_refused(gateway: Gateway) -> None:
    agent = gateway.agent()
    peer = gateway.peer(observers=[agent])
    answer = queued_event(gateway, agent, peer["id"], lambda: remove_observers(gateway, peer["id"]))
    assert (answer.status_code, stored_events(gateway)) == (403, 0)


def test_an_event_queued_behind_the_end_of_its_agents_key_is_refused(gateway: Gateway) -> None:
    agent = gateway.agent()
    peer = gateway.peer(observers=[agent])
    answer = queued_event(gateway, agent, peer["id"], lambda: end_keys(gateway, agent))
    assert (answer.status_code, stored_events(gateway)) == (401, 0)


def test_changes_that_the_decision_does_not_rest_on_do_not_disturb_it(gateway: Gateway) -> None:
    def create(number: int) -> int:
        return gateway.owner.post("/v1/peers", {"peer_type": "external", "peer_ref": f"ref-{number}"}).status_code

    with ThreadPoolExecutor(16) as pool:
        assert set(pool.map(create, range(48))) == {201}


def test_a_request_whose_basis_changes_every_time_is_not_answered(gateway: Gateway) -> None:
    agent = gateway.agent()
    peer = gateway.peer(observers=[agent])
    inner = gateway.services.access.stands

    def stands(*args: Any) -> bool:
        kept = gateway.services.state.agents[agent.id]
        gateway.services.state.put_agent(replace(kept, created_by=_other(gateway, kept.created_by)))
        return inner(*args)

    gateway.services.access.stands = stands  # type: ignore[method-assign]  # a change before every check
    answer = agent.get(f"/v1/peers/{peer['id']}/context")
    gateway.services.access.stands = inner  # type: ignore[method-assign]
    assert (answer.status_code, answer.json()["title"]) == (503, "unavailable")
    stale = done(gateway.owner.get("/v1/decisions", deny_kind="stale"), 200)["decisions"]
    assert [row["action"] for row in stale] == ["peer.read_context"]


def _other(gateway: Gateway, human_id: str) -> str:
    return gateway.admin.id if human_id != gateway.admin.id else gateway.owner.id


def end_keys(gateway: Gateway, agent: Client) -> Future[None]:
    """What a rotation does to an agent's keys, queued."""
    return gateway.services.database.write(Unit(lambda tx: end_credentials(tx, "Agent", agent.id), solo=True))


def test_a_read_whose_key_ended_while_it_waited_is_not_answered(gateway: Gateway) -> None:
    agent = gateway.agent()
    peer = gateway.peer(observers=[agent])
    release, threads = block_readers(gateway)
    with ThreadPoolExecutor(1) as pool:
        with called(gateway.services.access, "authorize_with") as decided:
            answer = pool.submit(agent.get, f"/v1/peers/{peer['id']}/context")
            decided.wait()
        end_keys(gateway, agent).result()
        release.set()
        assert answer.result().status_code == 401
    for thread in threads:
        thread.join()
