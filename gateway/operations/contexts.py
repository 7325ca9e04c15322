"""Rendered contexts that are kept while nothing they were made of has changed."""

from __future__ import annotations


class ContextCache:
    """Being written."""
