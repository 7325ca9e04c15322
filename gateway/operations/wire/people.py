"""Sessions, keys, second factors, members and settings on the wire."""

from __future__ import annotations

from derive.buckets import ACTION_LENGTH
from gateway import limits
from gateway.authn.emails import ADDRESS, LONGEST
from gateway.authn.keys import KEY_CHARACTERS
from gateway.authn.reauth import PURPOSES, Factor
from gateway.model.records import ROLES
from gateway.operations.schema import (
    COUNT,
    FLAG,
    ID,
    TEXT,
    TIME,
    Maybe,
    Member,
    Members,
    Schema,
    choice,
    either,
    matching,
    only,
    or_null,
    shape,
    some,
    text,
    unset,
)
from gateway.store.orgs import MOST_SENSITIVE

SHORTEST_PASSWORD, LONGEST_PASSWORD = limits.PASSWORD_CHARACTERS
METHODS: tuple[Factor, ...] = ("password", "totp")
CODE_CHARACTERS = 16
#: What an agent of this wire can be entitled to, and the field of its registration that says so. None: not offered here.
ENTITLEMENTS: tuple[tuple[str, str | None], ...] = (
    ("intents_api", "intents_api_enabled"),
    ("execution_intents", None),
    ("execution_require_tee", None),
    ("intents_require_tee", None),
    ("cards", None),
    ("memory", None),
    ("shroud", "shroud_enabled"),
    ("discoverable", None),
    ("treasury_signer", None),
    ("has_delegations", None),
)
SWITCHES = (
    "guardrail_changes_require_approval",
    "guardrail_changes_require_step_up",
    "auto_approve",
    "learn_from_posted_events",
    "policy_promotions_need_two",
)
SETTINGS = (*SWITCHES, "sensitive_actions", "time_zone")
#: One client changes a setting at a time, as a pair.
PAIR = ("key", "value")

PASSWORD = text(LONGEST_PASSWORD)
NEW_PASSWORD = text(LONGEST_PASSWORD, SHORTEST_PASSWORD)
EMAIL = text(LONGEST)
NEW_EMAIL = matching(ADDRESS, LONGEST)
KEY = text(KEY_CHARACTERS)
NAME = text(limits.NAME_CHARACTERS)
CODE: Members = {"code": unset(text(CODE_CHARACTERS, 0))}

_TOKEN: Members = {"access_token": TEXT, "token_type": only("Bearer"), "expires_in": COUNT}
TOKEN = shape("Token", **_TOKEN)
AGENT_TOKEN = shape(
    "AgentToken",
    **_TOKEN,
    agent_id=ID,
    vault_ids=some(TEXT),
    entitlements=shape(**{name: FLAG for name, _ in ENTITLEMENTS}),
)
ACCOUNT = shape(
    "Account",
    id=ID,
    email=TEXT,
    display_name=or_null(TEXT),
    org_id=ID,
    auth_method=TEXT,
    role=choice(*ROLES),
    email_verified=FLAG,
    marketing_emails=FLAG,
    totp_enabled=FLAG,
    created_at=TIME,
)
OWN_KEY = shape("Key", id=ID, name=TEXT, created_at=TIME, expires_at=or_null(TIME))
OWN_KEYS = shape(keys=some(OWN_KEY))
MADE_KEY = shape(key=OWN_KEY, api_key=TEXT)
CONFIRMING: Members = {"method": choice(*METHODS), "purpose": choice(*PURPOSES)}
#: What a method takes as its proof. Clients may send both.
PROOFS: Members = {"password": unset(PASSWORD), "code": unset(text(CODE_CHARACTERS))}
NEEDED = shape(method=choice(*METHODS), purpose=choice(*PURPOSES), needs=some(TEXT), expires_in=COUNT)
CONFIRMED = shape(reauth_token=TEXT, token=TEXT, expires_in=COUNT)
ENROLLED = shape(totp_enabled=FLAG)
ENROLMENT = shape(secret=TEXT, uri=TEXT)

ROLE = choice(*ROLES)
MEMBER = shape("Member", id=ID, email=TEXT, display_name=or_null(TEXT), role=ROLE, totp_enabled=FLAG, created_at=TIME)
MEMBERS = shape(members=some(MEMBER))
ONE_MEMBER = shape(member=MEMBER)
ADDED_MEMBER = shape(member=MEMBER, password=TEXT)

_SENSITIVE = some(text(ACTION_LENGTH), MOST_SENSITIVE)
_SWITCH = either(FLAG, choice("true", "false"))
_SETTINGS: dict[str, Schema] = {**dict.fromkeys(SWITCHES, _SWITCH), "sensitive_actions": _SENSITIVE, "time_zone": NAME}
_VALUE: Member = Maybe(either(_SWITCH, _SENSITIVE, TEXT))
CHANGED_SETTINGS: Members = {
    **{name: unset(schema) for name, schema in _SETTINGS.items()},
    "key": Maybe(choice(*SETTINGS)),
    "value": _VALUE,
}
STANDING = shape(
    settings=shape("Settings", **dict.fromkeys(SWITCHES, choice("true", "false")), sensitive_actions=some(TEXT), time_zone=TEXT)
)
