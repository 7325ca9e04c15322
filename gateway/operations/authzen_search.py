"""Searches of the AuthZEN Authorization API 1.0: the subjects, resources or actions of which a decision would be yes."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from functools import partial

from gateway.errors import Invalid
from gateway.model.asked import Asked, Sought, Unusable
from gateway.operations import authzen_page as pages
from gateway.operations.authzen_answers import Answers, ask, record
from gateway.operations.authzen_page import Start
from gateway.operations.authzen_request import read_question
from gateway.operations.call import Call
from gateway.operations.operation import Operation, Reply
from gateway.operations.wire.authzen import RESULTS, SEARCHES
from gateway.store.canonical import canonical

MEMBERS: Mapping[Sought, tuple[str, ...]] = {
    "subject": ("subject", "action", "resource", "context"),
    "resource": ("subject", "action", "resource", "context"),
    "action": ("subject", "resource", "context"),
}


async def search(call: Call, sought: Sought) -> Reply:
    """A page of what is found, in the order of ids; without a limit in the request, as many as one answer takes."""
    asked, page = read_question(call.body.members, sought), pages.read_page(call.body.members.get("page"))
    grant, answers = ask(call, "search")
    await answers.gather([asked])
    bound = _bound(call, answers, sought, page)
    start = pages.start_of(call.services.cursor_key, bound, page, call.now)
    try:
        found, following = await _page(answers, sought, asked, start)
    except Unusable as unusable:
        raise Invalid(str(unusable), field=unusable.place) from unusable
    digested = (repr((sought, *_named(asked, sought))), *found)
    record(call, grant, answers, "search", digested, sought=sought, count=len(found))
    token = ""
    if following is not None:
        token = pages.token_of(call.services.cursor_key, bound, Start(following, start.limit), call.now)
    shape = _shapes(asked)[sought]
    return Reply({"page": {"next_token": token, "count": len(found)}, "results": [shape(each) for each in found]})


async def _page(answers: Answers, sought: Sought, asked: Asked, start: Start) -> tuple[list[str], int | None]:
    """What is found within the limit, and the place of what would be next."""
    found: list[str] = []
    for some in answers.search(sought, asked, start.place):
        for place, each in some.allowed:
            if len(found) == start.limit:
                return found, place
            found.append(each)
        await asyncio.sleep(0)
    return found, None


def _bound(call: Call, answers: Answers, sought: Sought, page: pages.RequestedPage) -> bytes:
    """What a token is good for: who asks, what, of which store by which policies."""
    members = {name: value for name, value in call.body.members.items() if name in MEMBERS[sought]}
    parts = [str(call.session.caller.uid), call.org.id, answers.version, sought, members, page.properties]
    return hashlib.sha256(canonical(parts).encode()).digest()


def _named(asked: Asked, sought: Sought) -> tuple[str, ...]:
    whole = (asked.subject.type, asked.subject.id, asked.action, asked.resource.type, asked.resource.id)
    return whole if sought == "action" else tuple(part for part in whole if part)


def _shapes(asked: Asked) -> dict[Sought, Callable[[str], dict[str, object]]]:
    return {
        "subject": lambda found: {"type": asked.subject.type, "id": found},
        "resource": lambda found: {"type": asked.resource.type, "id": found},
        "action": lambda found: {"name": found},
    }


def _operation(sought: Sought, summary: str) -> Operation:
    return Operation(
        f"authzen.search_{sought}s",
        "POST",
        f"/access/v1/search/{sought}",
        summary,
        partial(search, sought=sought),
        actions=("authzen.search", "authzen.search_own", "authzen.search_store"),
        fields=SEARCHES[sought],
        answers={200: RESULTS[sought]},
    )


OPERATIONS: tuple[Operation, ...] = (
    _operation("subject", "Find the subjects of a type that may do an action on a resource (AuthZEN)."),
    _operation("resource", "Find the resources of a type on which a subject may do an action (AuthZEN)."),
    _operation("action", "Find the actions that a subject may do on a resource (AuthZEN)."),
)
