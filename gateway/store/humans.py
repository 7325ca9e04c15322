"""People: members of an organisation, their roles and their second factors."""

from __future__ import annotations

from dataclasses import replace

from gateway.errors import Conflict, NotFound
from gateway.model.entity import EntityUid
from gateway.model.grant import Grant
from gateway.model.records import Human, HumanRole, Org
from gateway.store.credentials import end_claims, end_credentials
from gateway.store.rows import Tx

INSERT = """INSERT INTO humans (id, org_id, email, display_name, role, password_hash, totp_secret, totp_confirmed,
  totp_last_step, generation, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"""
DELETE = "DELETE FROM humans WHERE id = $1"
SET_ROLE = "UPDATE humans SET role = $2, generation = $3 WHERE id = $1"
SET_PASSWORD = "UPDATE humans SET password_hash = $2, generation = $3 WHERE id = $1"  # noqa: S105  # a statement, not a password
SET_TOTP = "UPDATE humans SET totp_secret = $2, totp_confirmed = $3, totp_last_step = $4 WHERE id = $1"

LAST_OWNER = "this is the last owner of the organisation: make another member owner first"


def insert_human(tx: Tx, human: Human) -> None:
    """Add a person whose e-mail address is normal; part of a larger change, which has its grant.

    Raises:
        Conflict: the address is in use, in whichever organisation: it is what one signs in with.
    """
    if tx.state.human_with_email(human.email) is not None:
        raise Conflict("`email` is in use already")
    h = human
    head = (h.id, h.org_id, h.email, h.display_name, h.role, h.password_hash)
    tx.run(INSERT, *head, h.totp_secret, h.totp_confirmed, h.totp_last_step, h.generation, h.created_at)
    tx.after_commit(lambda: tx.state.put_human(human))


# -- members


def add_member(tx: Tx, grant: Grant[Org], human: Human) -> None:
    """Add a member."""
    insert_human(tx, human)
    tx.append(grant.audit("member.added", {"role": human.role}, resource=EntityUid("Human", human.id)))


def change_role(tx: Tx, grant: Grant[Human], role: HumanRole) -> Human:
    """Give a member another role and end every key, token and claim they hold; the same role changes nothing.

    Raises:
        Conflict: they are the last owner.
    """
    member = _present(tx, grant)
    if member.role == role:
        return member
    _keep_an_owner(tx, member)
    changed = replace(member, role=role, generation=member.generation + 1)
    tx.run(SET_ROLE, member.id, role, changed.generation)
    end_credentials(tx, "Human", member.id)
    end_claims(tx, member.id)
    tx.after_commit(lambda: tx.state.put_human(changed))
    tx.append(grant.audit("member.role_changed", {"role": role, "role_before": member.role}))
    return changed


def remove_member(tx: Tx, grant: Grant[Human]) -> None:
    """Remove a member with every key, token and claim.

    Agents they registered stay, as do their approvals, which an owner or admin decides from now on.

    Raises:
        Conflict: they are the last owner.
    """
    member = _present(tx, grant)
    _keep_an_owner(tx, member)
    end_credentials(tx, "Human", member.id)
    end_claims(tx, member.id)
    tx.run(DELETE, member.id)
    tx.after_commit(lambda: tx.state.drop_human(member.id))
    tx.append(grant.audit("member.removed", {"role": member.role}))


def _present(tx: Tx, grant: Grant[Human]) -> Human:
    """The member as committed now; the grant's is from before the queue."""
    member = tx.state.humans.get(grant.target.id)
    if member is None:
        raise NotFound
    return member


def _keep_an_owner(tx: Tx, member: Human) -> None:
    """INVARIANT: an organisation has an owner. Looked at with nothing else in the transaction, so two cannot both go."""
    if member.role != "owner":
        return
    if not any(h.org_id == member.org_id and h.role == "owner" and h.id != member.id for h in tx.state.humans.values()):
        raise Conflict(LAST_OWNER)


def change_password(tx: Tx, grant: Grant[Org], shown: str | None, password_hash: str) -> None:
    """Replace the password whose hash was `shown` and end every session token; keys stay.

    Raises:
        Conflict: it was changed in the meantime.
    """
    human = _caller(tx, grant)
    if human.password_hash != shown:
        raise Conflict("the password was changed in the meantime")
    changed = replace(human, password_hash=password_hash, generation=human.generation + 1)
    tx.run(SET_PASSWORD, human.id, password_hash, changed.generation)
    tx.after_commit(lambda: tx.state.put_human(changed))
    tx.append(grant.audit("password.changed", {}, resource=EntityUid("Human", human.id)))


# -- second factors. Each names the secret that the code was checked against, so that a change in between is noticed.


def start_totp(tx: Tx, grant: Grant[Org], secret: str) -> None:
    """Keep the secret of a second factor that counts once a code has confirmed it.

    Raises:
        Conflict: there is a confirmed one.
    """
    human = _caller(tx, grant)
    if human.totp_confirmed:
        raise Conflict("a second factor is enrolled already: remove it first")
    _set_totp(tx, replace(human, totp_secret=secret, totp_confirmed=False, totp_last_step=None))
    tx.append(grant.audit("totp.started", {}, resource=EntityUid("Human", human.id)))


def confirm_totp(tx: Tx, grant: Grant[Org], secret: str, step: int) -> None:
    """Make the second factor count; the code that confirms it is used up.

    Raises:
        Conflict: it was confirmed, replaced or removed in the meantime.
    """
    human = _caller(tx, grant)
    if human.totp_confirmed or human.totp_secret != secret:
        raise Conflict("there is no second factor that waits to be confirmed with this code")
    _set_totp(tx, replace(human, totp_confirmed=True, totp_last_step=step))
    tx.append(grant.audit("totp.enrolled", {}, resource=EntityUid("Human", human.id)))


def use_totp(tx: Tx, grant: Grant[Org], secret: str, step: int) -> bool:
    """Use a code up; False when it, or a later one, was used before."""
    human = _caller(tx, grant)
    if not _fresh(human, secret, step):
        return False
    _set_totp(tx, replace(human, totp_last_step=step))
    return True


def remove_totp(tx: Tx, grant: Grant[Org], secret: str, step: int | None) -> bool:
    """Remove the second factor, a confirmed one against a fresh code; False when the code was used or is missing."""
    human = _caller(tx, grant)
    if human.totp_secret != secret or (human.totp_confirmed and (step is None or not _fresh(human, secret, step))):
        return False
    _set_totp(tx, replace(human, totp_secret=None, totp_confirmed=False, totp_last_step=None))
    if human.totp_confirmed:
        tx.append(grant.audit("totp.removed", {}, resource=EntityUid("Human", human.id)))
    return True


def _caller(tx: Tx, grant: Grant[Org]) -> Human:
    human = tx.state.humans.get(grant.caller.id)
    if human is None:
        raise NotFound
    return human


def _fresh(human: Human, secret: str, step: int) -> bool:
    return human.totp_confirmed and human.totp_secret == secret and (human.totp_last_step is None or step > human.totp_last_step)


def _set_totp(tx: Tx, human: Human) -> None:
    tx.run(SET_TOTP, human.id, human.totp_secret, human.totp_confirmed, human.totp_last_step)
    tx.after_commit(lambda: tx.state.put_human(human))
