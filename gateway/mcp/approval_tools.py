"""Tools to ask a human before acting, and to see what became of it. None of them decides."""

from __future__ import annotations

from gateway import limits
from gateway.mcp.argument import Argument, an_id, text, whole, word
from gateway.mcp.person_tools import PAYLOAD, action_name
from gateway.mcp.shown import as_json
from gateway.mcp.tool import Tool
from gateway.operations.wire.approvals import KIND_CHARACTERS, STATUSES, SUMMARY_CHARACTERS

APPROVAL = an_id("The approval, as `request_approval` answers it under `id`.")
#: A page of these fits the window of a model.
LISTED = 20

TOOLS: tuple[Tool, ...] = (
    Tool(
        "request_approval",
        "approval.request",
        "Ask a human before you act. Answers at once, mostly with the status pending, and with an `id`: do nothing yet, and "
        "look with `get_approval_status` until it is approved. What the human is shown, and how hard it is to approve, comes "
        "from `action` and `payload`, so put the true amount and recipient there. Do not ask twice for one thing.",
        (
            Argument("action", action_name("What you mean to do."), required=True),
            Argument(
                "target_type", text("What kind of thing it is done to, such as order or ticket.", KIND_CHARACTERS), required=True
            ),
            Argument("target_id", text("Which one it is, in the words of its own system.", limits.REF_CHARACTERS), required=True),
            Argument(
                "summary",
                {
                    "description": "What you want and why, for the human: a sentence, or an object with `title`, `body` and "
                    "`fields`.",
                    "anyOf": [
                        {"type": "string", "minLength": 1, "maxLength": SUMMARY_CHARACTERS},
                        {
                            "type": "object",
                            "properties": {
                                "title": {"type": "string", "maxLength": SUMMARY_CHARACTERS},
                                "body": {"type": "string", "maxLength": SUMMARY_CHARACTERS},
                                "fields": {"type": "array", "items": {"type": "object"}, "maxItems": limits.PAGE},
                            },
                        },
                    ],
                },
                required=True,
            ),
            Argument("payload", PAYLOAD),
            Argument("reason", text("What made you ask, if the summary does not say it.", limits.TEXT_CHARACTERS)),
            Argument(
                "declared_risk_tier",
                whole("How risky you hold it to be, 3 the riskiest. It only raises what the gateway finds itself.", 1, 3),
            ),
        ),
        as_json,
    ),
    Tool(
        "get_approval_status",
        "approval.status",
        "Say where an approval of yours stands: pending, approved, rejected, expired or cancelled. Act only when it is approved.",
        (Argument("approval_id", APPROVAL, "path", required=True),),
        as_json,
        output={
            "type": "object",
            "properties": {"status": {"type": "string", "enum": [*STATUSES]}, "expires_at": {"type": "string"}},
            "required": ["status", "expires_at"],
        },
        reads=True,
    ),
    Tool(
        "list_approvals",
        "approval.list",
        "List the approvals that you asked for, newest first: to find one whose id you have lost, or what is still open.",
        (
            Argument("status", word("Only those that stand so. Leave it out for all.", STATUSES), "query"),
            Argument("limit", whole(f"How many; {LISTED} when left out.", 1, limits.PAGE), "query", otherwise=str(LISTED)),
            Argument("offset", whole("How many to pass over, to get the next page.", 0, 10**9), "query"),
        ),
        as_json,
        reads=True,
    ),
    Tool(
        "cancel_approval",
        "approval.cancel",
        "Take back an approval that you asked for and that nobody has decided, because it is not needed any more. One that is "
        "decided stays as it is: the answer says how it stands.",
        (
            Argument("approval_id", APPROVAL, "path", required=True),
            Argument("reason", text("Why it is not needed any more.", limits.TEXT_CHARACTERS)),
        ),
        as_json,
        repeatable=True,
    ),
)
