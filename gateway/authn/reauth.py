"""Proofs that a human just confirmed who they are: `rat_` tokens, in memory only, each good once for one purpose."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from gateway import limits
from gateway.authn.keys import REAUTH, hash_secret, mint_key
from gateway.model.records import Human

Purpose = Literal["peer.export", "peer.erase", "approval.decide", "policy.update", "totp.enrol"]
PURPOSES: tuple[Purpose, ...] = ("peer.export", "peer.erase", "approval.decide", "policy.update", "totp.enrol")
Factor = Literal["password", "totp"]

LIFETIME = timedelta(seconds=limits.REAUTH_SECONDS)
#: Proofs held at once; past it the oldest goes, and its holder confirms again.
HELD = 10_000


@dataclass(frozen=True, slots=True)
class _Proof:
    human_id: str
    generation: int
    purpose: Purpose
    factor: Factor
    ends_at: datetime


class Reauth:
    """Issues proofs and takes them back. A restart forgets them all, which costs a confirmation and no more."""

    def __init__(self) -> None:
        self._proofs: OrderedDict[str, _Proof] = OrderedDict()

    def issue(self, human: Human, purpose: Purpose, factor: Factor, now: datetime) -> str:
        """A fresh token for one purpose of one human, who has just shown `factor`."""
        token, hashed = mint_key(REAUTH)
        self._proofs[hashed] = _Proof(human.id, human.generation, purpose, factor, now + LIFETIME)
        if len(self._proofs) > HELD:
            self._proofs.popitem(last=False)
        return token

    def take(self, token: str, human: Human, purpose: Purpose, now: datetime, *, factors: Collection[Factor]) -> Factor | None:
        """Use a token up and return its factor; None, and nothing used up, when it is not for exactly this."""
        hashed = hash_secret(token)
        proof = self._proofs.get(hashed)
        if proof is None:
            return None
        if now >= proof.ends_at:
            del self._proofs[hashed]
            return None
        holder = (proof.human_id, proof.generation) == (human.id, human.generation)
        if not holder or proof.purpose != purpose or proof.factor not in factors:
            return None
        del self._proofs[hashed]
        return proof.factor

    def forget(self, human_id: str) -> None:
        """End every proof of a human, for when one of their factors changes."""
        for hashed in [hashed for hashed, proof in self._proofs.items() if proof.human_id == human_id]:
            del self._proofs[hashed]
