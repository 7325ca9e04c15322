"""Who answers an AuthZEN client: the store that is served beside our own, or our own; and the record that it was asked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from gateway.model.asked import Asked, Sought, Unusable
from gateway.model.grant import Grant
from gateway.model.records import Org
from gateway.operations.authzen_own import OwnAnswers
from gateway.operations.call import Call
from gateway.policy.foreign.search import Found, search
from gateway.policy.foreign.store import ForeignStore, Ruled

Act = Literal["evaluate", "search"]


class Answers(Protocol):
    """Decides and searches, once what is asked about has been gathered. `version` is that of what it decides by."""

    @property
    def version(self) -> str: ...

    async def gather(self, asked: Iterable[Asked]) -> None: ...

    def decide_all(self, asked: Sequence[Asked]) -> list[Ruled | Unusable]: ...

    def search(self, sought: Sought, asked: Asked, start: int) -> Iterator[Found]: ...


@dataclass(frozen=True, slots=True)
class ForeignAnswers:
    """Answers of a foreign store."""

    store: ForeignStore

    @property
    def version(self) -> str:
        return self.store.hash

    async def gather(self, asked: Iterable[Asked]) -> None:
        """Nothing: a store is held whole."""

    def decide_all(self, asked: Sequence[Asked]) -> list[Ruled | Unusable]:
        return self.store.decide_all(asked)

    def search(self, sought: Sought, asked: Asked, start: int) -> Iterator[Found]:
        return search(self.store, sought, asked, start)


def ask(call: Call, act: Act) -> tuple[Grant[Org], Answers]:
    """Decide whether the caller may ask, and whom: asking is one decision, whatever is asked.

    Raises:
        Forbidden: the caller may not ask here.
    """
    foreign = call.services.foreign
    if foreign is not None:
        return call.access.authorize(call.session, f"authzen.{act}_store", call.org), ForeignAnswers(foreign.store)
    grant = call.access.authorize_first(call.session, (f"authzen.{act}", f"authzen.{act}_own"), call.org)
    return grant, OwnAnswers(call, grant, own=grant.action.endswith("_own"))


def record(call: Call, grant: Grant[Org], answers: Answers, asked: str, digested: Iterable[str], **facts: object) -> None:
    """Note on the decision to answer what was answered: a digest, which only this installation can make, and no id."""
    text = "\n".join(("peergate authzen", *digested)).encode("utf-8", "surrogatepass")
    # Keyed BLAKE2 and not an HMAC, for which OpenSSL lets go of the interpreter, so that a request waits for another thread.
    digest = hashlib.blake2b(text, key=call.services.cursor_key, digest_size=32).hexdigest()
    grant.note(asked=asked, version=answers.version, digest=digest, **facts)
