"""Members of the organisation and their roles."""

from __future__ import annotations

from gateway import limits
from gateway.authn.emails import LONGEST, normal_email
from gateway.authn.keys import mint_password
from gateway.model.ids import new_id
from gateway.model.records import ROLES, Human
from gateway.operations.call import Call
from gateway.operations.fields import is_id, stamp
from gateway.operations.operation import NO_CONTENT, Operation, Reply
from gateway.operations.schema import text, unset
from gateway.operations.wire import people as wire
from gateway.store.entities import Missing
from gateway.store.humans import add_member, change_role, remove_member


async def list_members(call: Call) -> Reply:
    """Every member of the caller's organisation, oldest first."""
    grant = call.access.authorize(call.session, "member.list", call.org)
    return Reply({"members": [_shape(human) for human in call.state.members_of(grant.target.id)]})


async def add(call: Call) -> Reply:
    """Add a member with a password that is shown once, for the owner to hand over."""
    email = normal_email(call.body.text("email", longest=LONGEST))
    if email is None:
        raise call.body.wrong("email", "an e-mail address")
    role = call.body.choice("role", ROLES)
    display_name = call.body.optional_text("display_name", longest=limits.NAME_CHARACTERS)
    grant = call.access.authorize(call.session, "member.add", call.org)
    password = mint_password()
    member = Human(
        id=new_id(),
        org_id=grant.target.id,
        email=email,
        display_name=display_name,
        role=role,
        password_hash=await call.services.authenticator.passwords.hash(password),
        totp_secret=None,
        totp_confirmed=False,
        totp_last_step=None,
        generation=1,
        created_at=call.now,
    )
    await call.write_alone(add_member, grant, member)
    return Reply({"member": _shape(member), "password": password}, 201)


async def update(call: Call) -> Reply:
    """Change a member's role. Every key and token they hold has ended when this answers; the same role changes nothing."""
    role = call.body.choice("role", ROLES)
    grant = call.access.authorize(call.session, "member.update", _member(call, call.path["id"]))
    return Reply({"member": _shape(await call.write_alone(change_role, grant, role))})


async def remove(call: Call) -> Reply:
    """Remove a member. Every key and token they hold has ended when this answers; agents they registered stay."""
    grant = call.access.authorize(call.session, "member.remove", _member(call, call.path["id"]))
    await call.write_alone(remove_member, grant)
    return NO_CONTENT


def _member(call: Call, member_id: str) -> Human | Missing:
    """A human of the caller's organisation by id."""
    found = call.state.humans.get(member_id)
    if found is None or found.org_id != call.session.caller.org_id:
        return Missing("Human", member_id if is_id(member_id) else "-")
    return found


def _shape(human: Human) -> dict[str, object]:
    return {
        "id": human.id,
        "email": human.email,
        "display_name": human.display_name,
        "role": human.role,
        "totp_enabled": human.totp_confirmed,
        "created_at": stamp(human.created_at),
    }


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "member.list",
        "GET",
        "/v1/org/members",
        "List the members of the organisation.",
        list_members,
        actions=("member.list",),
        strict=True,
        answers={200: wire.MEMBERS},
    ),
    Operation(
        "member.add",
        "POST",
        "/v1/org/members",
        "Add a member; their first password is shown once.",
        add,
        actions=("member.add",),
        fields={"email": wire.NEW_EMAIL, "role": wire.ROLE, "display_name": unset(text(limits.NAME_CHARACTERS, 0))},
        strict=True,
        answers={201: wire.ADDED_MEMBER},
    ),
    Operation(
        "member.update",
        "PATCH",
        "/v1/org/members/{id}",
        "Change a member's role and end their keys and tokens.",
        update,
        actions=("member.update",),
        fields={"role": wire.ROLE},
        strict=True,
        answers={200: wire.ONE_MEMBER},
    ),
    Operation(
        "member.remove",
        "DELETE",
        "/v1/org/members/{id}",
        "Remove a member and end their keys and tokens.",
        remove,
        actions=("member.remove",),
        strict=True,
        answers={204: None},
    ),
)
