"""What ends a command with which exit code: the data directory is blamed for what happens while it is opened, and no longer."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from gateway.cli.exits import REFUSED, CommandError
from gateway.cli.opening import find_settings, opened
from tests.cli.conftest import Installed


def test_a_directory_that_cannot_be_made_is_refused_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CommandError) as refused, opened(find_settings({"data": tmp_path / "file" / "data"}), create=True):
        raise AssertionError("it was opened")
    assert (str(tmp_path / "file") in str(refused.value), refused.value.code) == (True, REFUSED)


def test_what_the_system_says_later_is_not_put_down_to_the_directory(installed: Installed) -> None:
    with pytest.raises(OSError, match="too many") as failed, opened(find_settings({"data": installed.data})):
        raise OSError(errno.EMFILE, "too many open files")
    assert failed.value.errno == errno.EMFILE
