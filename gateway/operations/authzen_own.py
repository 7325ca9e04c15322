"""Answers about the gateway's own store: its people, agents and what they act on, by the policies of the organisation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gateway.model.asked import Asked, Named, Sought, Unusable
from gateway.model.caller import Caller, PrincipalType
from gateway.model.decision import DenyKind
from gateway.model.grant import Grant
from gateway.model.records import Agent, Org, Peer
from gateway.operations.call import Call
from gateway.policy.foreign.search import AT_ONCE, Found
from gateway.policy.foreign.store import INVALID, Ruled
from gateway.store.entities import Missing, Target

SUBJECTS: tuple[PrincipalType, ...] = ("Human", "Agent", "Platform", "Connection")
NOT_THEIRS = Ruled(False, DenyKind.NOT_PERMITTED)
#: Asked within reads. Whether it is a yes tells that the person has paused reading, which an agent is to take for no history.
NOT_FOR_AGENTS = "peer.see_content"


@dataclass(frozen=True, slots=True)
class OwnAnswers:
    """Decides over what the state holds of the caller's organisation; what was sent of a subject or resource counts nothing.

    With `own`, only what `authzen.about_self` and `authzen.about_person` leave to the caller is answered, and all else is no.
    """

    call: Call
    grant: Grant[Org]
    own: bool

    @property
    def version(self) -> str:
        return self.call.access.engines.of(self.call.org.id).bundle.hash

    def decide_all(self, asked: Sequence[Asked]) -> list[Ruled | Unusable]:
        """A verdict a question, in their order."""
        return [self._decide(one) for one in asked]

    def search(self, sought: Sought, asked: Asked, start: int) -> Iterator[Found]:
        """What is found from a place among the candidates on, by some candidates at a time."""
        candidates = self._candidates(sought, asked)
        for first in range(start, len(candidates), AT_ONCE):
            chunk = [(at, candidates[at]) for at in range(first, min(first + AT_ONCE, len(candidates)))]
            yield Found(tuple((at, found) for at, found in chunk if self._decide(_with(asked, sought, found)).allowed))

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
        state, org_id = self.call.state, self.call.org.id
        found: Target | None
        match named.type:
            case "Org":
                found = self.call.org if named.id == org_id else None
                return found
            case "Human":
                found = state.humans.get(named.id)
            case "Agent":
                found = state.agents.get(named.id)
            case "Peer":
                found = state.peers.get(named.id)
            case "Platform":
                found = state.apps.get(named.id)
            case "PlatformConnection":
                found = state.connections.get(named.id)
            case "Connection":
                found = state.remote_connections.get((org_id, named.id))
            case "Policy":
                found = state.org_policies.get(named.id)
            case "Credential":
                found = state.credentials.get(named.id)
            case _:
                return None
        return found if found is not None and not isinstance(found, Missing) and found.org_id == org_id else None

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
        tables = {
            "Human": state.humans,
            "Agent": state.agents,
            "Peer": state.peers,
            "Platform": state.apps,
            "PlatformConnection": state.connections,
            "Policy": state.org_policies,
            "Credential": state.credentials,
        }
        return sorted(row.id for row in list(tables.get(type_, {}).values()) if row.org_id == org_id)  # type: ignore[attr-defined]


def _with(asked: Asked, sought: Sought, found: str) -> Asked:
    match sought:
        case "subject":
            return replace(asked, subject=Named(asked.subject.type, found))
        case "resource":
            return replace(asked, resource=Named(asked.resource.type, found))
        case "action":
            return replace(asked, action=found)
