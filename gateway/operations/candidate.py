"""A candidate: a text that is tried as if it were a policy of the organisation, and kept nowhere."""

from __future__ import annotations

import asyncio
from functools import partial

from gateway.operations.call import Services
from gateway.operations.policy_shape import refused
from gateway.policy import sandbox
from gateway.policy.bundle import Bundle
from gateway.policy.finding import PolicyError
from gateway.policy.organisation import extend

#: What it is called where a stored policy has its id.
CANDIDATE = "candidate"


def lay_over(base: Bundle, text: str) -> Bundle:
    """What a text makes of some policies; raises `PolicyError`."""
    return extend(base, {CANDIDATE: text})


async def try_over(services: Services, base: Bundle, text: str) -> Bundle:
    """The same, of a text that came over the network, away from the event loop.

    Raises:
        Invalid: the text does not load.
        Unavailable: too many texts are being checked.
    """
    try:
        await services.texts.run(partial(sandbox.check, base.schema_text, {CANDIDATE: text}))
        return await asyncio.to_thread(lay_over, base, text)
    except PolicyError as error:
        raise refused(error) from error
