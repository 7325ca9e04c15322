"""`peergate init`: a private data directory, its credentials once, and never over what is there."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.cli.conftest import Command, Installed


def modes(data: Path) -> dict[str, str]:
    return {str(path.relative_to(data.parent)): f"{stat.S_IMODE(path.stat().st_mode):o}" for path in (data, *data.rglob("*"))}


def contents(data: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}


def test_it_prints_each_credential_once_and_keeps_none(command: Command, tmp_path: Path) -> None:
    data = tmp_path / "new" / "data"
    made = command("init", "--data", data, "--org", "Sample", "--email", "Me@Example.COM ", "--json")
    assert (made.code, made.err) == (0, "")
    owner = made.json["credentials"]["owner"]
    assert made.json == {"credentials": {"owner": owner}}
    assert owner.keys() == {"email", "password", "api_key"}
    assert owner["email"] == "me@example.com"
    assert owner["api_key"].startswith("1ck_")
    kept = b"".join(contents(data).values())
    assert owner["email"].encode() in kept
    assert owner["password"].encode() not in kept
    assert owner["api_key"].encode() not in kept


def test_everything_in_it_is_its_owners_alone(command: Command, tmp_path: Path) -> None:
    data = tmp_path / "data"
    command("init", "--data", data)
    found = modes(data)
    assert {name: mode for name, mode in found.items() if mode != ("700" if (tmp_path / name).is_dir() else "600")} == {}
    assert {"data", "data/keys", "data/keys/signing.json", "data/peergate.duckdb"} <= found.keys()


def test_for_people_it_says_what_comes_next(command: Command, tmp_path: Path) -> None:
    data = tmp_path / "data"
    made = command("init", "--data", data)
    assert made.out.splitlines()[0] == f"made {data}; these credentials are shown once and kept nowhere:"
    assert made.out.splitlines()[-1] == f"next: peergate serve --data {data}"
    assert "\x1b" not in made.out


def test_a_second_time_is_refused_and_overwrites_nothing(command: Command, installed: Installed) -> None:
    before = contents(installed.data)
    again = command("init", "--data", installed.data)
    assert (again.code, again.out) == (4, "")
    served = f"serve it with `peergate serve --data {installed.data}`"
    assert again.err == f"peergate: there is a database in `{installed.data}` already: {served}\n"
    assert contents(installed.data) == before


@pytest.mark.parametrize("wrong", [("--email", "nobody"), ("--org", ""), ("--org", "x" * 101)])
def test_what_cannot_be_used_is_bad_usage_and_makes_nothing(command: Command, tmp_path: Path, wrong: tuple[str, str]) -> None:
    data = tmp_path / "data"
    refused = command("init", "--data", data, *wrong)
    assert (refused.code, refused.out) == (2, "")
    assert f"`{wrong[0]}`" in refused.err
    assert not data.exists()


def test_policies_that_do_not_load_leave_nothing_behind(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "policies").mkdir()
    monkeypatch.setenv("PEERGATE_POLICIES", str(tmp_path / "policies"))
    refused = command("init", "--data", tmp_path / "data")
    assert refused.code == 4
    assert "policies do not load" in refused.err
    assert not (tmp_path / "data").exists()


def test_a_place_where_nothing_can_be_made_is_said(command: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused = command("init", "--data", tmp_path / "file" / "data")
    assert (refused.code, refused.err) == (4, f"peergate: {tmp_path}/file/data: Not a directory\n")


def test_left_over_keys_are_refused_before_anything_is_made(command: Command, tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "keys").mkdir(parents=True)
    (data / "keys" / "signing.json").write_text("{}")
    refused = command("init", "--data", data)
    assert refused.code == 4
    assert "keys in use are not overwritten" in refused.err
    assert set(contents(data)) == {data / "keys" / "signing.json"}
