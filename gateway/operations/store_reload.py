"""Reload of the store that is served beside our own: what has changed on the disk is loaded aside and takes its place."""

from __future__ import annotations

import logging

from gateway.operations.call import Services
from gateway.operations.reload import FINDINGS
from gateway.policy.finding import PolicyError

_log = logging.getLogger("gateway.operations")


async def reload_store(services: Services) -> None:
    """Load the store again, where one is served; one that does not load is logged and kept for `/health`, and changes nothing.

    Raises:
        Unavailable: too many reloads are under way.
    """
    served = services.foreign
    if served is None:
        return
    try:
        await services.reloads.run(served.load_again)
    except PolicyError as refused:
        told = "\n".join(map(str, refused.findings[:FINDINGS]))
        _log.error("the store was not loaded again, and the one before answers on; %d findings:\n%s", len(refused.findings), told)
    else:
        _log.info("the store was loaded again: %s", served.store.hash)
