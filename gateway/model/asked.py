"""What somebody asks of a policy store from outside: may a subject do an action on a resource?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Properties = Mapping[str, object]
#: Characters of questions that are answered before others get their turn, unless one question has more.
A_TURN_CHARACTERS = 64 * 1024
#: What a search looks for: the member of the question that it leaves open.
Sought = Literal["subject", "resource", "action"]


class Named(NamedTuple):
    """A subject or a resource as it is named from outside: a type, an id, and what was sent of it."""

    type: str
    id: str
    properties: Properties | None = None


class Asked(NamedTuple):
    """One question, its values as JSON has them; of a search, the id or the name that it looks for is empty."""

    subject: Named
    action: str
    resource: Named
    action_properties: Properties | None = None
    context: Properties | None = None

    def about(self, sought: Sought, found: str) -> Asked:
        """The question about one candidate of a search, of which nothing was sent."""
        match sought:
            case "subject":
                return self._replace(subject=Named(self.subject.type, found))
            case "resource":
                return self._replace(resource=Named(self.resource.type, found))
            case "action":
                return self._replace(action=found)


class Sizes:
    """How large questions are, in characters, a number being one; what several of them hold is looked at once."""

    def __init__(self) -> None:
        # By where it lies in memory, and so held: nothing else may come to lie there.
        self._known: dict[int, tuple[Properties, int]] = {}

    def of(self, asked: Asked) -> int:
        """The size of one question."""
        (subject_type, subject_id, of_subject), action, (type_, id_, of_resource), of_action, context = asked
        size = len(subject_type) + len(subject_id) + len(action) + len(type_) + len(id_)
        for sent in (of_subject, of_resource, of_action, context):
            if sent:
                size += self._of(sent)
        return size

    def _of(self, sent: Properties) -> int:
        known = self._known.get(id(sent))
        if known is None:
            known = self._known[id(sent)] = sent, _size(sent)
        return known[1]


def _size(value: object) -> int:
    """Depth is bounded where bodies are read."""
    match value:
        case str():
            return len(value)
        case Mapping():
            return sum(len(name) + _size(member) for name, member in value.items())
        case list():
            return len(value) + sum(map(_size, value))
        case _:
            return 1


class Unusable(ValueError):
    """A value that was sent cannot be what the schema says it is; `place` names it, and the message says why."""

    def __init__(self, place: str, why: str) -> None:
        super().__init__(f"`{place}` {why}")
        self.place = place
