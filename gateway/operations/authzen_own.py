"""Answers about the gateway's own store: its people, agents and what they act on, by the policies of the organisation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from gateway.model.asked import Asked, Named, Sought, Unusable
from gateway.model.caller import Caller, PrincipalType
from gateway.model.decision import DenyKind
from gateway.model.grant import Grant
from gateway.model.org_policy import OrgPolicy
from gateway.model.records import Agent, ApprovalHeader, Credential, Human, Org, Peer, PlatformApp, PlatformConnection
from gateway.operations.call import Call
from gateway.operations.fields import is_id
from gateway.policy.foreign.search import AT_ONCE, Found, chunks
from gateway.policy.foreign.store import INVALID, Ruled
from gateway.store import approvals, evidence
from gateway.store.entities import LogEntry, Target
from gateway.store.rows import Rows
from gateway.store.state import State

SUBJECTS: tuple[PrincipalType, ...] = ("Human", "Agent", "Platform", "Connection")
NOT_THEIRS = Ruled(False, DenyKind.NOT_PERMITTED)
#: Asked within reads. Whether it is a yes tells that the person has paused reading, which an agent is to take for no history.
NOT_FOR_AGENTS = "peer.see_content"
#: What the state holds of one organisation, by an id that is nobody else's.
Row = Human | Agent | Peer | PlatformApp | PlatformConnection | OrgPolicy | Credential


@dataclass(frozen=True, slots=True)
class OwnAnswers:
    """Decides over what the state holds of the caller's organisation; what was sent of a subject or resource counts nothing.

    With `own`, only what `authzen.about_self` and `authzen.about_person` leave to the caller is answered, and all else is no.
    """

    call: Call
    grant: Grant[Org]
    own: bool
    read: dict[tuple[str, str], ApprovalHeader | LogEntry] = field(default_factory=dict)

    @property
    def version(self) -> str:
        return self.call.access.engines.of(self.call.org.id).bundle.hash

    async def gather(self, asked: Iterable[Asked]) -> None:
        """Read what is asked about and not held in memory: approvals and recorded decisions, of any organisation."""
        named = {(one.resource.type, one.resource.id) for one in asked if one.resource.type in READ and is_id(one.resource.id)}
        if wanted := sorted(named - self.read.keys()):
            self.read.update(await self.call.services.database.read(partial(_read, wanted=wanted)))

    def decide_all(self, asked: Sequence[Asked]) -> list[Ruled | Unusable]:
        """A verdict a question, in their order."""
        return [self._decide(one) for one in asked]

    def search(self, sought: Sought, asked: Asked, start: int) -> Iterator[Found]:
        """What is found from a place among the candidates on, by some candidates at a time."""
        candidates = self._candidates(sought, asked)
        kept = self._planned(asked) if sought == "resource" else None
        keeps = kept.__contains__ if kept is not None else None
        for chunk in chunks(candidates, keeps, range(start, len(candidates)), AT_ONCE):
            pairs = ((at, candidates[at]) for at in chunk)
            yield Found(tuple((at, found) for at, found in pairs if self._decide(asked.about(sought, found)).allowed))

    def _planned(self, asked: Asked) -> frozenset[str] | None:
        """The peers that a plan keeps of those that are searched for; None where there is no plan."""
        subject = self._subject(asked.subject)
        if subject is None or asked.resource.type != "Peer":
            return None
        return self.call.access.could_be_allowed(self.grant, subject, asked.action)

    def _decide(self, asked: Asked) -> Ruled:
        subject, resource = self._subject(asked.subject), self._target(asked.resource)
        if subject is None or resource is None:
            return INVALID
        if self.own and not self._may_ask_about(subject, resource):
            return NOT_THEIRS
        if asked.action == NOT_FOR_AGENTS and self.call.session.caller.type == "Agent":
            return NOT_THEIRS
        verdict = self.call.access.answer(self.grant, subject, asked.action, resource)
        return Ruled(verdict.allowed, verdict.deny_kind, verdict.policies)

    def _may_ask_about(self, subject: Caller, resource: Target) -> bool:
        """Whether the subject, or else the resource, is the caller's own to ask about."""
        access, caller = self.call.access, self.call.session.caller
        itself = self._target(Named(subject.type, subject.id))
        if isinstance(itself, Agent) and access.answer(self.grant, caller, "authzen.about_self", itself).allowed:
            return True
        return isinstance(resource, Peer) and access.answer(self.grant, caller, "authzen.about_person", resource).allowed

    def _subject(self, named: Named) -> Caller | None:
        kind = next((known for known in SUBJECTS if known == named.type), None)
        if kind is None or self._target(named) is None:
            return None
        return Caller(kind, named.id, self.call.org.id, "")

    def _target(self, named: Named) -> Target | None:
        """What is named, in the caller's organisation; another organisation's is as good as none."""
        org = self.call.org
        found: Row | ApprovalHeader | LogEntry | None
        match named.type:
            case "Org":
                return org if named.id == org.id else None
            case "Connection":
                return self.call.state.remote_connections.get((org.id, named.id))
            case type_ if type_ in TABLES:
                found = TABLES[type_](self.call.state).get(named.id)
            case type_:
                found = self.read.get((type_, named.id))
        return found if found is not None and found.org_id == org.id else None

    def _candidates(self, sought: Sought, asked: Asked) -> list[str]:
        """The ids of a type, or the names of all actions; none when something that the question names is unknown."""
        known = (sought == "subject" or self._subject(asked.subject)) and (sought == "resource" or self._target(asked.resource))
        if not known:
            return []
        if sought == "action":
            return sorted(self.call.access.engine.bundle.actions)
        return self._ids(asked.subject.type if sought == "subject" else asked.resource.type)

    def _ids(self, type_: str) -> list[str]:
        state, org_id = self.call.state, self.call.org.id
        match type_:
            case "Org":
                return [org_id]
            case "Connection":
                return sorted(id_ for org, id_ in list(state.remote_connections) if org == org_id)
            case _ if type_ in TABLES:
                return sorted(row.id for row in list(TABLES[type_](state).values()) if row.org_id == org_id)
            case _:
                return []


def _read(rows: Rows, wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], ApprovalHeader | LogEntry]:
    found = {(type_, id_): READ[type_](rows, id_) for type_, id_ in wanted}
    return {named: target for named, target in found.items() if target is not None}


def _log_entry(rows: Rows, decision_id: str) -> LogEntry | None:
    org_id = evidence.decision_org(rows, decision_id)
    return LogEntry(decision_id, org_id) if org_id is not None else None


#: What is held in memory of each type, by id. What an `Org` and a `Connection` are is told by the organisation that asks.
TABLES: Mapping[str, Callable[[State], Mapping[str, Row]]] = {
    "Human": lambda state: state.humans,
    "Agent": lambda state: state.agents,
    "Peer": lambda state: state.peers,
    "Platform": lambda state: state.apps,
    "PlatformConnection": lambda state: state.connections,
    "Policy": lambda state: state.org_policies,
    "Credential": lambda state: state.credentials,
}
READ: Mapping[str, Callable[[Rows, str], ApprovalHeader | LogEntry | None]] = {
    "Approval": approvals.header,
    "Decision": _log_entry,
}
