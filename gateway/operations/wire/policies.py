"""Cedar policies of an organisation, their shadow and their replay, on the wire."""

from __future__ import annotations

from gateway import limits
from gateway.model.decision import DenyKind
from gateway.model.org_policy import MODES
from gateway.operations.schema import (
    COUNT,
    FLAG,
    ID,
    OBJECT,
    TEXT,
    TIME,
    Members,
    choice,
    only,
    or_null,
    shape,
    some,
    text,
    unset,
    whole,
)
from gateway.policy.organisation import MAX_BYTES

CEDAR = ("cedar_text", "policy_text")
MOST_VERSIONS = 2**31 - 1
#: Other spellings that clients have for what is asked, and one that says nothing here.
SPELLED = ("principal_type", "principal_id", "resource_path", "vault_id")

_CEDAR: Members = {name: unset(text(MAX_BYTES)) for name in CEDAR}
_NAME, _ABOUT = unset(text(limits.NAME_CHARACTERS)), unset(text(limits.TEXT_CHARACTERS, 0))
CREATED: Members = {"name": _NAME, "description": _ABOUT, **_CEDAR, "mode": unset(choice(*MODES))}
WRITTEN: Members = {"name": _NAME, "description": _ABOUT, **_CEDAR}
AT_VERSION: Members = {"version": whole(1, MOST_VERSIONS)}
TRIED: Members = {
    "principal": unset(text(2 * limits.REF_CHARACTERS)),
    "action": text(limits.REF_CHARACTERS),
    "resource": unset(text(2 * limits.REF_CHARACTERS)),
    "context": unset(OBJECT),
    **{name: unset(text(limits.REF_CHARACTERS, 0)) for name in SPELLED},
    **_CEDAR,
}
REPLAYED: Members = {**_CEDAR, "since": unset(TIME), "limit": unset(whole(1, limits.REPLAY_DECISIONS))}

POLICY = shape(
    "Policy",
    id=ID,
    org_id=ID,
    name=TEXT,
    cedar_text=TEXT,
    policy_text=TEXT,
    description=or_null(TEXT),
    note=or_null(TEXT),
    is_active=FLAG,
    enforcement_status=choice(*MODES),
    version=COUNT,
    enforced_version=or_null(COUNT),
    written_by=TEXT,
    created_by=TEXT,
    created_at=TIME,
    updated_at=TIME,
)
POLICIES = shape(policies=some(POLICY))
VERSIONS = shape(
    versions=some(
        shape(
            "PolicyVersion",
            version=COUNT,
            previous=or_null(COUNT),
            cedar_text=TEXT,
            enforcement_status=choice(*MODES),
            enforced_version=or_null(COUNT),
            current=FLAG,
            written_by=TEXT,
            created_at=TIME,
        )
    )
)
TRIAL = shape(
    "PolicyTrial",
    decision=choice("allow", "deny"),
    backend=only("cedar"),
    enforcement_status=choice(*MODES),
    note=TEXT,
    reasons=some(TEXT),
    deny_kind=or_null(choice(*(kind.value for kind in DenyKind))),
    errors=some(TEXT),
)
_SIDE = shape("ShadowSide", count=COUNT, principals=some(shape(type=TEXT, id=TEXT, count=COUNT)), decision_ids=some(ID))
_COUNTS: Members = {"since": TIME, "gain": _SIDE, "lose": _SIDE, "listings": COUNT}
SHADOW_REPORT = shape(
    "ShadowReport",
    asked=COUNT,
    failures=COUNT,
    directory=or_null(shape("WaitingPolicies", bundle=or_null(TEXT), **_COUNTS)),
    policies=some(shape(policy_id=ID, name=TEXT, version=COUNT, **_COUNTS)),
)
REPLAY = shape(
    "Replay",
    bundle=TEXT,
    **dict.fromkeys(
        (
            "decided",
            "same",
            "gains",
            "loses",
            "other_rows",
            "other_policies",
            "erased",
            "not_replayable",
            "not_by_policy",
        ),
        COUNT,
    ),
    opens=FLAG,
    flips=some(
        shape(
            change=TEXT,
            principal=TEXT,
            action=TEXT,
            resource_type=TEXT,
            before=some(TEXT),
            now=some(TEXT),
            count=COUNT,
            samples=some(ID),
        )
    ),
    lines=COUNT,
    stopped=FLAG,
)
