"""Redaction: what an explanation may show of the values that a request was decided over, and of a grant's text.

Shown are ids, booleans, numbers, amounts, times, and words of a closed vocabulary. What a person chose as a label (a project, a
tag) is not, nor any text under an attribute that is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping

from gateway.model.memory import TIERS
from gateway.policy.text import tokens

#: Attributes whose texts are ids, or words of a vocabulary that is the product's own.
PLAIN = frozenset(
    {"action_type", "classification", "date", "default_mode", "grants", "layer", "mode", "peer_type", "sources", "tiers"}
)
#: How texts, sets of texts and records begin; ids, numbers and times are written otherwise.
TEXTS = ('"', '["', "{", "[{")
HIDDEN = '"…"'


def split(values: Mapping[str, str | None]) -> tuple[dict[str, str | None], tuple[str, ...]]:
    """Returns the values that may be shown, by path, and the paths whose values may not."""
    hidden = tuple([path for path, value in values.items() if value is not None and not _plain(path, value)])
    return {path: value for path, value in values.items() if path not in hidden}, hidden


def unlabelled(text: str) -> str:
    """Returns Cedar text without what its texts say, but for tiers and the ids of entities."""
    made, end, before = "", 0, ""
    for token in tokens(text):
        word = token[0]
        hide = word.startswith('"') and before != "::" and word.strip('"') not in TIERS
        made += text[end : token.start()] + (HIDDEN if hide else word)
        end, before = token.end(), word
    return made + text[end:]


def _plain(path: str, value: str) -> bool:
    return not value.startswith(TEXTS) or path.rpartition(".")[2] in PLAIN
