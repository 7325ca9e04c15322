"""Evaluations of the AuthZEN Authorization API 1.0: one question, or many, each answered with a decision."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from gateway import limits
from gateway.errors import Invalid
from gateway.model.asked import A_TURN_CHARACTERS, Asked, Unusable
from gateway.operations import authzen_metadata, authzen_search
from gateway.operations.authzen_answers import Answers, ask, record
from gateway.operations.authzen_request import Batch, Semantic, read_batch, read_question
from gateway.operations.call import Call
from gateway.operations.operation import Operation, Reply
from gateway.operations.wire import authzen as wire
from gateway.policy.foreign.store import Ruled

#: Questions that are answered before others get their turn, if they are small.
A_TURN = 100
ACTIONS = ("authzen.evaluate", "authzen.evaluate_own", "authzen.evaluate_store")
Answer = Ruled | Unusable | Invalid


async def evaluate(call: Call) -> Reply:
    """The decision on one question."""
    return await _one(call, read_question(call.body.members))


async def evaluate_all(call: Call) -> Reply:
    """The decisions on many questions, in their order; on none, that on the body itself."""
    batch = read_batch(call.body.members)
    if batch is None:
        return await _one(call, read_question(call.body.members))
    grant, answers = ask(call, "evaluate")
    answered = await _answered(answers, batch)
    decisions = [isinstance(one, Ruled) and one.allowed for one in answered]
    digested = _digested(batch.items, decisions)
    record(call, grant, answers, "evaluations", digested, count=len(decisions), decisions=decisions)
    return Reply({"evaluations": [_shape(one) for one in answered]})


async def _one(call: Call, asked: Asked) -> Reply:
    grant, answers = ask(call, "evaluate")
    await answers.gather([asked])
    [ruled] = answers.decide_all([asked])
    decision = isinstance(ruled, Ruled) and ruled.allowed
    policies = list(ruled.policies) if isinstance(ruled, Ruled) else []
    digested = _digested([asked], [decision])
    record(call, grant, answers, "evaluation", digested, count=1, decisions=[decision], answered_by=policies)
    if isinstance(ruled, Unusable):
        raise Invalid(str(ruled), field=ruled.place) from ruled
    return Reply({"decision": decision})


async def _answered(answers: Answers, batch: Batch) -> list[Answer]:
    """The answers up to where the semantic ends them."""
    answered: list[Answer] = []
    for start, end in _turns(batch.sizes):
        if start:
            await asyncio.sleep(0)
        for one in await _chunk(answers, batch.items[start:end]):
            answered.append(one)
            if _ends(batch.semantic, one):
                return answered
    return answered


def _turns(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Where each turn begins and ends."""
    start = held = 0
    for at, size in enumerate(sizes):
        if at > start and (at - start == A_TURN or held + size > A_TURN_CHARACTERS):
            yield start, at
            start, held = at, 0
        held += size
    yield start, len(sizes)


async def _chunk(answers: Answers, items: Sequence[Asked | Invalid]) -> list[Answer]:
    asked = [item for item in items if isinstance(item, Asked)]
    await answers.gather(asked)
    decided = iter(answers.decide_all(asked))
    return [next(decided) if isinstance(item, Asked) else item for item in items]


def _ends(semantic: Semantic, answer: Answer) -> bool:
    allowed = isinstance(answer, Ruled) and answer.allowed
    match semantic:
        case "execute_all":
            return False
        case "deny_on_first_deny":
            return not allowed
        case "permit_on_first_permit":
            return allowed


def _shape(answer: Answer) -> dict[str, object]:
    if isinstance(answer, Ruled):
        return {"decision": answer.allowed}
    return {"decision": False, "context": {"error": {"status": 400, "message": str(answer)}}}


def _digested(items: Sequence[Asked | Invalid], decisions: Sequence[bool]) -> Iterator[str]:
    for item, decision in zip(items, decisions, strict=False):  # a semantic may have ended the answers
        if isinstance(item, Asked):
            subject, resource = item.subject, item.resource
            yield repr((subject.type, subject.id, item.action, resource.type, resource.id, decision))
        else:
            yield repr(decision)


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "authzen.evaluate",
        "POST",
        "/access/v1/evaluation",
        "Decide whether a subject may do an action on a resource (AuthZEN).",
        evaluate,
        actions=ACTIONS,
        fields=wire.ONE,
        answers={200: wire.DECISION},
    ),
    Operation(
        "authzen.evaluate_all",
        "POST",
        "/access/v1/evaluations",
        "Decide many such questions at once (AuthZEN).",
        evaluate_all,
        actions=ACTIONS,
        fields=wire.MANY,
        body_bytes=limits.LARGE_BODY_BYTES,
        answers={200: wire.DECISIONS},
    ),
    *authzen_search.OPERATIONS,
    *authzen_metadata.OPERATIONS,
)
