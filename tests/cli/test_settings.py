"""Settings: a file, then the environment, then flags; and nothing that is not understood."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from gateway.cli.main import build_parser
from gateway.cli.opening import find_settings
from gateway.config import Settings
from tests.cli.conftest import Command, Installed


def test_each_source_gives_way_to_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('data = "from-file"\nhost = "127.0.0.2"\nport = 1\nrate_limit = 1\n')
    monkeypatch.setenv("PEERGATE_PORT", "2")
    monkeypatch.setenv("PEERGATE_RATE_LIMIT", "2")
    found = find_settings({"rate_limit": 3, "audit": None}, file)
    assert found == Settings(data=Path("from-file"), host="127.0.0.2", port=2, rate_limit=3)


def test_the_environment_may_name_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('audit = "relaxed"\n')
    monkeypatch.setenv("PEERGATE_CONFIG", str(file))
    assert find_settings({"data": "d"}) == Settings(data=Path("d"), audit="relaxed")


@pytest.mark.parametrize("words", ["init", "serve", "audit verify", "erase", "derive", "demo --json"])
def test_an_unknown_variable_is_refused(
    command: Command, installed: Installed, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.setenv("PEERGATE_FOO", "1")
    refused = command(*words.split(), "--data", installed.data)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("peergate: unknown setting `foo` in the environment; known are address_limit, audit, data, ")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--port", "65536"], "`port`"),
        (["--rate-limit", "-1"], "`rate_limit`"),
        (["--workers", "2"], "`workers` must be 1"),
        (["--policies", "/nonexistent"], "`policies`"),
        (["--config", "/nonexistent"], "/nonexistent"),
    ],
)
def test_a_setting_that_cannot_be_used_is_bad_usage(command: Command, installed: Installed, flags: list[str], said: str) -> None:
    refused = command("serve", "--data", installed.data, *flags)
    assert (refused.code, refused.out) == (2, "")
    assert said in refused.err


@pytest.mark.parametrize("words", ["serve", "audit verify", "erase", "derive"])
def test_a_directory_that_is_not_there_is_said_with_how_it_is_made(command: Command, tmp_path: Path, words: str) -> None:
    data = tmp_path / "none"
    refused = command(*words.split(), "--data", data)
    sentence = f"peergate: there is no database in `{data}`: make one with `peergate init --data {data}`\n"
    assert (refused.code, refused.err) == (4, sentence)
    assert not data.exists()


def test_every_setting_is_a_flag_of_serve_but_a_secret_which_every_user_of_the_machine_would_see() -> None:
    given = vars(build_parser().parse_args(["serve", "--reload", "watch", "--public-url", "https://a.example"]))
    flags = {field.name for field in fields(Settings)} - {"metrics_token"}
    assert given.keys() >= flags
    assert "metrics_token" not in given
    found = find_settings({**{name: given[name] for name in flags}, "data": "d"})
    assert (found.reload, found.public_url) == ("watch", "https://a.example")


def test_an_unknown_name_in_the_file_is_refused(command: Command, installed: Installed, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("prot = 1\n")
    refused = command("serve", "--data", installed.data, "--config", file)
    assert (refused.code, refused.err.partition(";")[0]) == (2, f"peergate: unknown setting `prot` in {file}")


def test_the_data_directory_may_come_from_the_environment(
    command: Command, installed: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command("audit", "verify").code == 2
    monkeypatch.setenv("PEERGATE_DATA", str(installed.data))
    assert command("audit", "verify").code == 0
