"""Format: policy text as Cedar writes it."""

from __future__ import annotations

import cedarpy

from gateway.policy import guard
from gateway.policy.finding import Finding, PolicyError
from gateway.policy.text import split


def formatted(file: str, text: str) -> str:
    """Returns a file's text as Cedar formats it, comments kept; raises `PolicyError` for text that Cedar cannot read."""
    try:
        guard.check_size(text)
        for piece in split(text):
            guard.check(piece.text)
        return str(cedarpy.format_policies(text))
    except ValueError as error:
        raise PolicyError([Finding(file, 0, "", str(error))]) from error
