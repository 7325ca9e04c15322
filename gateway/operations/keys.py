"""A human's own keys: listed, made and revoked."""

from __future__ import annotations

from gateway import limits
from gateway.authn.keys import HUMAN_KEY, mint_key
from gateway.errors import Unauthenticated
from gateway.model.ids import new_id
from gateway.model.records import Credential
from gateway.operations.call import Call
from gateway.operations.fields import is_id, optional_stamp, stamp
from gateway.operations.operation import NO_CONTENT, Operation, Reply
from gateway.operations.schema import FUTURE, unset
from gateway.operations.wire import people as wire
from gateway.store.credentials import create_key, revoke_key
from gateway.store.entities import Missing


async def list_keys(call: Call) -> Reply:
    grant = call.access.authorize(call.session, "key.list", call.org)
    keys = sorted(call.state.credentials_of("Human", grant.caller.id), key=lambda key: (key.created_at, key.id))
    return Reply({"keys": [_shape(key) for key in keys]})


async def create(call: Call) -> Reply:
    name = call.body.text("name", longest=limits.NAME_CHARACTERS)
    expires_at = call.body.optional_timestamp("expires_at")
    if expires_at is not None and expires_at <= call.now:
        raise call.body.wrong("expires_at", "a time in the future")
    grant = call.access.authorize(call.session, "key.create", call.org)
    human = call.state.humans.get(grant.caller.id)
    if human is None:
        raise Unauthenticated  # removed since the decision
    secret, hashed = mint_key(HUMAN_KEY)
    key = Credential(new_id(), human.org_id, "Human", human.id, name, hashed, call.now, expires_at)
    if not await call.write_alone(create_key, grant, key, generation=human.generation):
        raise Unauthenticated
    return Reply({"key": _shape(key), "api_key": secret}, 201)


async def revoke(call: Call) -> Reply:
    key = _key(call, call.path["id"])
    # Hidden: the ids of other people's keys are nobody's business.
    grant = call.access.authorize(call.session, "key.revoke", key, hide=True)
    await call.write(revoke_key, grant)
    return NO_CONTENT


def _key(call: Call, key_id: str) -> Credential | Missing:
    """A key of the caller's organisation by id."""
    found = call.state.credentials.get(key_id)
    if found is None or found.org_id != call.session.caller.org_id:
        return Missing("Credential", key_id if is_id(key_id) else "-")
    return found


def _shape(key: Credential) -> dict[str, object]:
    return {"id": key.id, "name": key.name, "created_at": stamp(key.created_at), "expires_at": optional_stamp(key.expires_at)}


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "key.list",
        "GET",
        "/v1/auth/api-keys",
        "List one's own keys, without their secrets.",
        list_keys,
        actions=("key.list",),
        strict=True,
        answers={200: wire.OWN_KEYS},
    ),
    Operation(
        "key.create",
        "POST",
        "/v1/auth/api-keys",
        "Make a key for oneself; the secret is shown once.",
        create,
        actions=("key.create",),
        fields={"name": wire.NAME, "expires_at": unset(FUTURE)},
        strict=True,
        answers={201: wire.MADE_KEY},
    ),
    Operation(
        "key.revoke",
        "DELETE",
        "/v1/auth/api-keys/{id}",
        "Revoke one of one's own keys, with the tokens exchanged from it.",
        revoke,
        actions=("key.revoke",),
        strict=True,
        answers={204: None},
    ),
)
