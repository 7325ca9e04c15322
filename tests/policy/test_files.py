from __future__ import annotations

import os
from pathlib import Path

import pytest

from gateway.policy import files
from gateway.policy.files import read_texts
from gateway.policy.finding import PolicyError


def refused(directory: Path) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        read_texts(directory)
    return [str(finding) for finding in caught.value.findings]


def test_policy_files_are_read_in_the_order_of_their_paths_byte_for_byte(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "z.cedar").write_bytes(b"z\r\n")
    (tmp_path / "a.cedar").write_bytes(b"a\r")
    (tmp_path / "a_test.json").write_text("[]")
    assert list(read_texts(tmp_path).items()) == [("a.cedar", "a\r"), ("b/z.cedar", "z\r\n")]


def test_a_directory_without_policies_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path) == [f"{tmp_path}:0: holds no policy file"]


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path / "gone") == [f"{tmp_path}/gone:0: cannot be read: FileNotFoundError"]


def test_a_link_is_read_within_the_directory_and_refused_out_of_it(tmp_path: Path) -> None:
    inside, outside = tmp_path / "policies", tmp_path / "outside.cedar"
    inside.mkdir()
    outside.write_text("out")
    (inside / "a.cedar").write_text("in")
    (inside / "b.cedar").symlink_to("a.cedar")
    assert read_texts(inside) == {"a.cedar": "in", "b.cedar": "in"}
    (inside / "c.cedar").symlink_to(outside)
    assert refused(inside) == ["c.cedar:0: is a link that leads out of the directory"]


def test_a_linked_directory_is_refused_because_it_would_be_passed_over(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.cedar").write_text("a")
    (tmp_path / "again").symlink_to("real")
    (tmp_path / "b.cedar").mkdir()
    assert refused(tmp_path) == [
        "again:0: is a directory behind a link, or named like a file",
        "b.cedar:0: is a directory behind a link, or named like a file",
    ]


def test_a_name_that_no_policy_can_be_called_by_is_refused(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"a\xff.cedar")).write_text("a")
    assert refused(tmp_path) == ["a\\udcff.cedar:0: has a name that is no unicode text"]


def test_what_is_no_regular_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "a.cedar").write_text("a")
    os.mkfifo(tmp_path / "b.cedar")
    assert refused(tmp_path) == ["b.cedar:0: is not a regular file"]


def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / "a.cedar").open("wb") as file:
        file.truncate(files.FILE_BYTES + 1)
    assert refused(tmp_path) == [f"a.cedar:0: is longer than {files.FILE_BYTES} bytes"]
    with pytest.raises(PolicyError, match="is longer than"):
        files.read_schema(tmp_path / "a.cedar")


def test_files_that_are_too_large_together_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.cedar").write_text("12345")
    monkeypatch.setattr(files, "DIRECTORY_BYTES", 10)
    assert refused(tmp_path) == ["c.cedar:0: makes all files together longer than 10 bytes"]


def test_files_that_cannot_be_read_are_all_named(tmp_path: Path) -> None:
    (tmp_path / "a.cedar").write_bytes(b"\xff")
    (tmp_path / "b.cedar").symlink_to("gone.cedar")
    (tmp_path / "c.cedar").symlink_to("c.cedar")
    assert refused(tmp_path) == [
        "a.cedar:0: cannot be read: UnicodeDecodeError",
        "b.cedar:0: cannot be read: FileNotFoundError",
        "c.cedar:0: cannot be read: RuntimeError",
    ]


def test_a_folder_that_cannot_be_listed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.cedar").write_text("a")

    def walk(top: Path, onerror: object) -> object:
        assert callable(onerror)
        onerror(PermissionError(13, "denied", str(top / "secret")))
        return iter([(str(top), [], ["a.cedar"])])

    # Root, who runs the tests in a container, may list everything: only the listing is made to fail.
    monkeypatch.setattr(files.os, "walk", walk)
    assert os.walk is walk
    assert refused(tmp_path) == [f"{tmp_path}/secret:0: cannot be read: PermissionError"]
