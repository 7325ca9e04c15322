"""A swap: policies that were built aside take the place of those that decide, with the commit of what they are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from gateway.errors import Stale
from gateway.model.grant import Grant
from gateway.store.entities import Installation
from gateway.store.installation import keep_bundle, keep_deciding
from gateway.store.rows import Tx
from gateway.store.state import State


@dataclass(frozen=True, slots=True)
class Swap:
    """What was built aside, and `put` puts in place, while `fits` says of the state that what it was built from stands.

    `bundles` are the hashes and bodies of all that will decide or be asked beside; `deciding` is the hash of what everybody
    is decided by from then on, None where that stays.
    """

    fits: Callable[[State], bool]
    bundles: Sequence[tuple[str, str]]
    put: Callable[[], None]
    deciding: str | None = None


def apply(tx: Tx, swap: Swap, now: datetime) -> None:
    """Keep the bundles of a swap, and put it in place after the commit, before whatever is published later.

    Raises:
        Stale: what it was built from does not stand any more.
    """
    if not swap.fits(tx.state):
        raise Stale
    for hash_, body in swap.bundles:
        keep_bundle(tx, hash_, body, now)
    if swap.deciding is not None:
        keep_deciding(tx, swap.deciding)
    tx.after_commit(swap.put)


def load(tx: Tx, grant: Grant[Installation], swap: Swap, *, loaded: str, previous: str) -> None:
    """Let the policies of the product that were loaded decide, or wait in the shadow; both are named by their hashes.

    Raises:
        Stale: as for `apply`.
    """
    apply(tx, swap, grant.now)
    action = "admin.policies_staged" if swap.deciding is None else "admin.policies_reloaded"
    tx.append(grant.audit(action, {"bundle": loaded, "previous": previous}))
