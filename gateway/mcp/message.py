"""The JSON-RPC messages of MCP: what one may be, and how a request is refused that never became one."""

from __future__ import annotations

from gateway.errors import GatewayError, Invalid
from gateway.operations.fields import Fields
from gateway.web.answer import Answer, answer
from gateway.web.json_body import parse_object
from gateway.web.problems import problem_details, problem_headers

#: JSON-RPC's own code for a message that is none, and ours for everything else that stops one at the door.
NO_MESSAGE, STOPPED = -32600, -32000


def read_arguments(body: bytes) -> Fields:
    """The arguments in a message, with numbers as they were written; empty where it has none. The library reads the same bytes
    again and finds the same in them: what two readers may take differently is refused here.

    Raises:
        Invalid: not one JSON-RPC message.
    """
    sent = parse_object(body)
    fields = Fields(sent)
    if sent.get("jsonrpc") != "2.0":
        raise fields.wrong("jsonrpc", "`2.0`")
    fields.text("method", longest=128)
    named = sent.get("id", 0)
    if isinstance(named, bool) or not isinstance(named, int | str):
        raise fields.wrong("id", "a string or a whole number")
    params = fields.object("params") if "params" in sent else {}
    arguments = params.get("arguments")
    if arguments is not None and not isinstance(arguments, dict):
        raise Invalid("`params.arguments` must be an object", field="params.arguments")
    return Fields(arguments or {})


def refusal(error: GatewayError, metadata: str | None) -> Answer:
    """The answer that an error is: problem details as everywhere, and beside them the same for a client of MCP.

    `metadata` is where a client that lacks a token reads who issues them.
    """
    told = problem_details(error)
    code = NO_MESSAGE if isinstance(error, Invalid) else STOPPED
    rpc = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": error.detail}}
    return answer(error.status, {**told, **rpc}, problem_headers(error, metadata))
