"""Texts that came over the network: each is read in the sandbox first, on threads of its own, and so few wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from gateway.operations.policy_shape import TOLD
from gateway.policy import sandbox
from tests.builders import Gateway, Response, done
from tests.operations.test_cedar_policies import FORBID_AGENTS, PATH, write

TEXT = {"cedar_text": FORBID_AGENTS}


def create(gateway: Gateway) -> Callable[[], Response]:
    return lambda: gateway.owner.post(PATH, TEXT)


def update(gateway: Gateway) -> Callable[[], Response]:
    policy = write(gateway.owner)
    return lambda: gateway.owner.put(f"{PATH}/{policy['id']}", TEXT)


def trial(gateway: Gateway) -> Callable[[], Response]:
    agent = gateway.agent()
    peer = gateway.peer(observers=[agent])
    asked = {"principal": f'Agent::"{agent.id}"', "action": "peer.read", "resource": f'Peer::"{peer["id"]}"'}
    return lambda: gateway.owner.post(f"{PATH}/test", {**asked, **TEXT})


def replay(gateway: Gateway) -> Callable[[], Response]:
    return lambda: gateway.owner.post(f"{PATH}/replay", TEXT)


WAYS = pytest.mark.parametrize("way", [create, update, trial, replay])
Way = Callable[[Gateway], Callable[[], Response]]


@WAYS
def test_whichever_way_a_text_comes_the_sandbox_reads_it_first(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, way: Way
) -> None:
    send = way(gateway)
    assert send().status_code < 300
    monkeypatch.setattr(sandbox, "COMMAND", ("-c", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"))
    refused = send()
    assert (refused.status_code, list(refused.json()["fields"])) == (400, ["cedar_text"])
    assert "has died of it" in refused.json()["detail"]


@WAYS
def test_more_texts_than_can_wait_are_refused(gateway: Gateway, way: Way) -> None:
    send = way(gateway)
    gate = threading.Event()

    async def crowd() -> Response:
        waiting = sandbox.PROCESSES + sandbox.WAITING
        texts = [asyncio.ensure_future(gateway.services.texts.run(lambda: gate.wait(60))) for _ in range(waiting)]
        await asyncio.sleep(0)
        answer = await asyncio.to_thread(send)
        gate.set()
        await asyncio.gather(*texts)
        return answer

    refused = asyncio.run(crowd())
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert "texts of policies" in refused.json()["detail"]
    assert send().status_code < 300


@pytest.mark.parametrize(
    ("body", "field"),
    [({**TEXT, "policy_text": FORBID_AGENTS}, "policy_text"), ({"cedar_text": FORBID_AGENTS + " " * 256 * 1024}, "cedar_text")],
)
def test_a_text_to_replay_has_the_names_and_the_limit_of_every_other(gateway: Gateway, body: dict[str, str], field: str) -> None:
    refused = gateway.security.post(f"{PATH}/replay", body)
    assert (refused.status_code, list(refused.json()["fields"])) == (400, [field])


def test_of_a_text_to_replay_the_first_findings_are_told(gateway: Gateway) -> None:
    wrong = "forbid (principal, action, resource) when { context.nothing };\n"
    detail = gateway.security.post(f"{PATH}/replay", {"cedar_text": wrong * 9}).json()["detail"]
    assert detail.startswith("the policy does not load: line 1: attribute `nothing`")
    assert detail.endswith(f"and {sandbox.FINDINGS - TOLD} more")


def test_a_trial_is_what_decides_with_the_text_over_it(gateway: Gateway) -> None:
    send = trial(gateway)
    assert done(send(), 200)["reasons"] == ["org/candidate/1"]
