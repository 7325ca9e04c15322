"""The context of a request, serialised once and asked with many times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from gateway.model.entity import EntityUid, Value
from gateway.policy.value import ValueRefused, canonical, named, record_json, refuse_implicit, refuse_unknown


class Context(Mapping[str, Value]):
    """A context that is prepared for the engine: an immutable mapping, so that what was serialised stays true.

    Any mapping will do in a `Query`; this one saves some 30 us a decision. Raises `ValueRefused` for a value that Cedar
    cannot take.
    """

    __slots__ = ("_values", "text", "uids")

    def __init__(self, values: Mapping[str, Value]) -> None:
        seen: set[EntityUid] = set()
        json_ = record_json(values, seen)
        self._values: Mapping[str, Any] = dict(values)
        self.text = canonical(json_)
        self.uids = frozenset(seen)

    @classmethod
    def from_json(cls, json_: Mapping[str, object]) -> Context:
        """Returns the context that is written in Cedar's JSON, as files hold it; raises `ValueRefused`."""
        refuse_unknown(json_)
        refuse_implicit(json_)
        context = cls({})
        context._values = dict(json_)
        context.text = canonical(json_)
        context.uids = frozenset(named(json_))
        return context

    @classmethod
    def from_record(cls, shown: object) -> Context:
        """Returns the context that a record of the log shows, in which the time is a text; raises `ValueRefused` for one that
        is none."""
        if not isinstance(shown, Mapping):
            raise ValueRefused("no context")
        return cls({**shown, "now": _moment(shown.get("now"))})

    def __getitem__(self, key: str) -> Value:
        value: Value = self._values[key]
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def _moment(text: object) -> datetime:
    try:
        found = datetime.fromisoformat(str(text))
        # One without a zone is refused as a value; one with any is here as far as it is one everywhere.
        return found if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueRefused("no time") from error
