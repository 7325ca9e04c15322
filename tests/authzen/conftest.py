"""One gateway beside the sample store for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.authzen.asking import DOCUMENTS, Pep
from tests.builders import Gateway

PUBLIC_URL = "https://pdp.sample.example"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    made = Gateway(tmp_path_factory.mktemp("gateway") / "data", store=DOCUMENTS, public_url=PUBLIC_URL)
    yield made
    made.close()


@pytest.fixture(scope="module")
def pep(gateway: Gateway) -> Pep:
    return Pep(gateway.owner)
