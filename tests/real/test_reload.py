"""Policies loaded again by a signal, and by themselves, in a process as people start it."""

from __future__ import annotations

import shutil
import signal
import time
from pathlib import Path

import httpx
import pytest

from tests.real.process import PATIENCE_SECONDS, ROOT, Server, init


@pytest.mark.parametrize("watched", [False, True])
def test_a_process_decides_by_changed_policies_after_a_hangup_or_by_itself(tmp_path: Path, watched: bool) -> None:
    data, policies = tmp_path / "data", tmp_path / "policies"
    shutil.copytree(ROOT / "policies", policies, ignore=shutil.ignore_patterns("*_test.json"))
    owner = init(data)
    environment = {"PEERGATE_RELOAD": "watch" if watched else "off"}
    arguments = ("serve", "--data", data, "--port", "0", "--json", "--policies", policies)
    with Server(*arguments, environment=environment) as server:
        with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {owner['api_key']}"}) as client:
            before = client.get("/health").json()["bundle"]
            file = policies / "session/end.cedar"
            file.write_text(file.read_text().replace('@reason("', '@reason("So: '))
            if not watched:
                server.process.send_signal(signal.SIGHUP)
            assert _changed(client, "bundle", before)
            file.write_text("permit")
            if not watched:
                server.process.send_signal(signal.SIGHUP)
            assert _changed(client, "policies_failure", None)
        assert server.stop() == 0
        assert "the policies were loaded again: " in server.errors()
        assert "the policies were not loaded again" in server.errors()


def test_a_process_answers_by_a_changed_store_after_a_hangup(tmp_path: Path) -> None:
    data, store = tmp_path / "data", tmp_path / "store"
    shutil.copytree(ROOT / "examples/documents", store)
    owner = init(data)
    with Server("serve", "--data", data, "--port", "0", "--json", "--store", store) as server:
        with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {owner['api_key']}"}) as client:
            for name, text, before in (
                ("store", "forbid (principal, action, resource);", client.get("/health").json()["store"]),
                ("store_failure", "forbid", None),
            ):
                (store / "policies/more.cedar").write_text(text)
                server.process.send_signal(signal.SIGHUP)
                assert _changed(client, name, before)
        assert server.stop() == 0
        assert "the store was loaded again: " in server.errors()
        assert "the store was not loaded again" in server.errors()


def _changed(client: httpx.Client, name: str, before: object) -> bool:
    """Whether what `/health` says of something becomes another within everybody's patience."""
    for _ in range(PATIENCE_SECONDS * 5):
        if client.get("/health").json()[name] != before:
            return True
        time.sleep(0.2)
    return False
