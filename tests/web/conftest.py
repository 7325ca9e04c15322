"""One gateway for the tests of a module: they read its answers and its log, and leave its people as they are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.builders import Gateway


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    made = Gateway(tmp_path_factory.mktemp("gateway") / "data")
    yield made
    made.close()
