"""The moment of a decision: the time in whole minutes, and the clock on the organisation's wall."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from gateway.model.entity import Value
from gateway.policy.context import Context
from gateway.store.state import State

#: Time zones whose minute is kept.
CACHED_MOMENTS = 64
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Moment:
    """The context of the decisions of one minute, as Cedar takes it and as the log shows it."""

    context: Context
    shown: Mapping[str, object]


class Moments:
    """Reads the clock for organisations, once a minute and time zone."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._kept: dict[str, tuple[datetime, datetime, Moment]] = {}

    def at(self, org_id: str, now: datetime) -> Moment:
        """The moment in the time zone of an organisation; in UTC where there is none."""
        org = self._state.orgs.get(org_id)
        zone = org.settings.time_zone if org is not None else "UTC"
        kept = self._kept.get(zone)
        if kept is not None and kept[0] <= now < kept[1]:
            return kept[2]
        if len(self._kept) >= CACHED_MOMENTS:
            self._kept.clear()
        minute = now.replace(second=0, microsecond=0)
        moment = _read_clock(minute, ZoneInfo(zone))
        self._kept[zone] = (minute, minute + MINUTE, moment)
        return moment


def _read_clock(minute: datetime, zone: ZoneInfo) -> Moment:
    local = minute.astimezone(zone)
    clock: Mapping[str, Value] = {
        "minute": local.hour * 60 + local.minute,
        "weekday": local.isoweekday(),
        "date": local.date().isoformat(),
    }
    shown = {"now": minute.strftime("%Y-%m-%dT%H:%M:%SZ"), "clock": clock}
    return Moment(Context({"now": minute, "clock": clock}), shown)
