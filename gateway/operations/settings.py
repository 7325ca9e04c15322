"""Settings of an organisation: which changes need a second person, what is always asked, which clock its policies read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from zoneinfo import available_timezones

from derive.buckets import ACTION_LENGTH, is_action_type
from gateway import limits
from gateway.errors import Invalid
from gateway.model.records import OrgSettings
from gateway.operations.call import Call
from gateway.operations.fields import Fields, echo
from gateway.operations.guardrails import confirm_settings
from gateway.operations.operation import Operation, Reply
from gateway.operations.wire import people as wire
from gateway.operations.wire.people import PAIR, SETTINGS, SWITCHES
from gateway.store import orgs

_known_zones = cache(available_timezones)  # it looks at some hundred files


async def read(call: Call) -> Reply:
    grant = call.access.authorize(call.session, "org.read_settings", call.org)
    return Reply({"settings": _shape(call.state.orgs[grant.target.id].settings)})


async def update(call: Call) -> Reply:
    given = _given(call.body)
    changes: dict[str, object] = {name: _switch(given, name) for name in SWITCHES if given.has(name)}
    if given.has("time_zone"):
        changes["time_zone"] = _time_zone(given)
    added = tuple(_sensitive(given))
    grant = call.access.authorize(call.session, "org.update_settings", call.org)
    standing = grant.target.settings
    await confirm_settings(call, standing, changes)
    return Reply({"settings": _shape(await call.write_alone(orgs.update_settings, grant, standing, changes, added))})


def _given(body: Fields) -> Fields:
    """The settings that a body names, in either of its two forms; never both at once."""
    if "key" not in body:
        body.refuse_others(SETTINGS)
        return body
    body.refuse_others(PAIR)
    name = body.choice("key", SETTINGS)
    value = body.members.get("value")
    if value is None:
        raise body.wrong("value", f"the new value of `{name}`")
    if name == "sensitive_actions" and isinstance(value, str):
        value = [entry.strip() for entry in value.split(",")]
    return Fields({name: value})


def _switch(given: Fields, name: str) -> bool:
    value = given.members[name]
    if isinstance(value, bool):
        return value
    return given.choice(name, ("true", "false")) == "true"


def _time_zone(given: Fields) -> str:
    name = given.text("time_zone", longest=limits.NAME_CHARACTERS)
    if name not in _known_zones():
        raise given.wrong("time_zone", "an IANA time zone, such as Europe/Zurich")
    return name


def _sensitive(given: Fields) -> list[str]:
    """Actions or whole namespaces (`payout.`) to add."""
    entries: list[str] = []
    for index, entry in enumerate(given.list("sensitive_actions", most=orgs.MOST_SENSITIVE)):
        named = entry if isinstance(entry, str) else ""
        in_namespace = f"{named}x" if named.endswith(".") else named
        if not is_action_type(in_namespace) or len(named) > ACTION_LENGTH:
            place = f"sensitive_actions[{index}]"
            expected = "an action such as `payout.create` or a namespace such as `payout.`"
            raise Invalid(f"`{place}` must be {expected}, got {echo(entry)}", field=place)
        entries.append(named)
    return entries


def _shape(settings: OrgSettings) -> Mapping[str, object]:
    switches = {name: "true" if getattr(settings, name) else "false" for name in SWITCHES}
    return {**switches, "sensitive_actions": list(settings.sensitive_actions), "time_zone": settings.time_zone}


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "settings.read",
        "GET",
        "/v1/org/settings",
        "Show the settings of the organisation.",
        read,
        actions=("org.read_settings",),
        strict=True,
        answers={200: wire.STANDING},
    ),
    Operation(
        "settings.update",
        "PATCH",
        "/v1/org/settings",
        "Change settings of the organisation, by name or as a `key` and a `value`.",
        update,
        actions=("org.update_settings",),
        fields=wire.CHANGED_SETTINGS,
        strict=True,
        answers={200: wire.STANDING},
        confirmed=True,
    ),
)
