"""Which embedder the settings give: the local one where it is installed, unless they say otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.config import ConfigError, Settings
from gateway.embedding import local
from gateway.embedding.choice import find_embedder
from gateway.embedding.local import MODEL

URL = "https://models.example/v1"


def found(**settings: Any) -> str | None:
    embedder = find_embedder(Settings(data=Path("d"), **settings))
    return embedder.model if embedder is not None else None


@pytest.mark.skipif(not local.installed(), reason="the extra `semantic` is not installed")
def test_the_local_model_is_the_default_where_it_is_installed() -> None:
    assert (found(), found(embedding="local"), found(embedding="off")) == (MODEL, MODEL, None)


def test_without_the_extra_there_is_none_and_asking_for_it_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "PACKAGE", "a_package_that_is_not_there")
    assert found() is None
    with pytest.raises(ConfigError, match=r"pip install '\.\[semantic\]' in the checkout, or 'peergate\[semantic\]'$"):
        found(embedding="local")


def test_an_endpoint_has_the_name_of_its_model(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("a-key\n")
    assert found(embedding="http", embedding_url=URL, embedding_model="m", embedding_key_file=tmp_path / "key") == "m"


@pytest.mark.parametrize("given", [{}, {"embedding_url": URL}, {"embedding_model": "m"}])
def test_an_endpoint_needs_an_address_and_a_model(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="needs `embedding_url` and `embedding_model`"):
        found(embedding="http", **given)


@pytest.mark.parametrize("content", [b"", b"\n", b"a\nb", "ключ".encode(), b"\xff", None])
def test_a_key_that_is_none_is_refused_without_being_shown(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=r"^`embedding_key_file`: .*/key (cannot be read|must hold one line)"):
        found(embedding="http", embedding_url=URL, embedding_model="m", embedding_key_file=file)
