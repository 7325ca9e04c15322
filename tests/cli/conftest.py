"""Fixtures of this room: commands run in this process, on data directories that are theirs alone."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.main import main
from tests.cli.serving import gateway
from tests.real.process import init
from tests.real.world import World

Command = Callable[..., "Ended"]


@dataclass(frozen=True, slots=True)
class Ended:
    """What a command left: its exit code and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True, slots=True)
class Installed:
    """A data directory and its owner's credentials."""

    data: Path
    owner: dict[str, str]


@pytest.fixture(autouse=True)
def _nobodys_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("PEERGATE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run `peergate` with these arguments."""

    def run(*arguments: str | Path) -> Ended:
        capsys.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as ended:  # argparse, for help and usage
            code = int(ended.code or 0)
        printed = capsys.readouterr()
        return Ended(code, printed.out, printed.err)

    return run


@pytest.fixture(scope="session")
def _fresh(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    data = tmp_path_factory.mktemp("cli") / "data"
    return Installed(data, init(data))


@pytest.fixture
def installed(_fresh: Installed, tmp_path: Path) -> Installed:
    """A data directory as `peergate init` makes it."""
    data = tmp_path / "data"
    shutil.copytree(_fresh.data, data)
    return Installed(data, _fresh.owner)


@pytest.fixture(scope="module")
def world(_fresh: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A gateway that runs while a module is tested."""
    data = tmp_path_factory.mktemp("world") / "data"
    shutil.copytree(_fresh.data, data)
    with gateway(data, _fresh.owner) as made:
        yield made


@pytest.fixture
def as_owner(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands are the owner's, asked of the gateway that runs."""
    monkeypatch.setenv("PEERGATE_URL", world.url)
    monkeypatch.setenv("PEERGATE_KEY", world.owner.api_key)


@pytest.fixture
def agent(world: World, as_owner: None) -> str:
    """A fresh agent's id; commands are the owner's."""
    return world.agent().id
