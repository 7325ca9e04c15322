"""The application with everything that a server answers."""

from __future__ import annotations

from gateway.operations.call import Services
from gateway.web.app import Application, create_app
from gateway.wiring import OPERATIONS


def whole_app(services: Services) -> Application:
    """The routes of the table, and MCP beside them."""
    from gateway.mcp.surface import Surface  # its library takes as long to load as all the rest, and only servers need it

    return create_app(services, OPERATIONS, (Surface(services, OPERATIONS),))
