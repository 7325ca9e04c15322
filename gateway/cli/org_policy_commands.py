"""The client commands about an organisation's own policies: written, tried in the shadow, promoted, taken back."""

from __future__ import annotations

from gateway.cli import org_policy_answers as answers
from gateway.cli.command import Argument, Command, command

PATH = "/v1/org/cedar-policies"
TEXT = Argument("cedar_text", 'the Cedar text, such as "$(cat own.cedar)"', required=True, flagged="--text")
NAME = Argument("name", "what people call it")
ABOUT = Argument("description", "what it is for")
VERSION = Argument(
    "version", "the version that you have read; a policy that is at another by now is left alone", kind=int, required=True
)
CONFIRM = Argument("confirm", "a rat_ token; a password is asked for, or taken from PEERGATE_CONFIRM", "confirm")
COLUMNS = "id name enforcement_status version enforced_version updated_at"

ORG_POLICIES: tuple[Command, ...] = (
    command("org-policy list", f"GET {PATH}", "list the organisation's own policies", rows="policies", columns=COLUMNS),
    command("org-policy show", f"GET {PATH}/{{policy_id}}", "show one of them with its text", shows=answers.show_policy),
    command(
        "org-policy add",
        f"POST {PATH}",
        "write a policy; it starts in the shadow, where it decides nothing",
        TEXT,
        NAME,
        ABOUT,
        Argument("mode", "shadow, or enforce for whoever may promote (shadow)", choices=("shadow", "enforce")),
        CONFIRM,
        shows=answers.show_step,
    ),
    command(
        "org-policy edit",
        f"PUT {PATH}/{{policy_id}}",
        "write a new version, into the shadow",
        TEXT,
        NAME,
        ABOUT,
        shows=answers.show_step,
    ),
    command(
        "org-policy versions",
        f"GET {PATH}/{{policy_id}}/versions",
        "list the versions of a policy",
        rows="versions",
        columns="version enforcement_status enforced_version current written_by",
    ),
    command(
        "org-policy promote",
        f"POST {PATH}/{{policy_id}}/promote",
        "put the version in the shadow in force",
        VERSION,
        CONFIRM,
        shows=answers.show_step,
    ),
    command(
        "org-policy rollback",
        f"POST {PATH}/{{policy_id}}/rollback",
        "take the last step of a policy back",
        VERSION,
        CONFIRM,
        shows=answers.show_step,
    ),
    command("org-policy delete", f"DELETE {PATH}/{{policy_id}}", "remove a policy with all its versions", CONFIRM),
    command(
        "org-policy shadow-report",
        "GET /v1/org/policy-shadow-report",
        "who would gain and who would lose by what is in the shadow",
        shows=answers.show_report,
    ),
    command(
        "org-policy replay",
        f"POST {PATH}/replay",
        "decide what a running gateway has recorded again, with a text added; nothing is kept",
        TEXT,
        Argument("since", "only what was recorded at this RFC 3339 time or later"),
        Argument("limit", "decisions at most, the newest first (10000)", kind=int),
        shows=answers.show_replay,
    ),
    command(
        "org-policy test",
        f"POST {PATH}/test",
        "ask what the policies would answer, with a text that is tried",
        Argument("principal", 'who asks, such as Agent::"ID"', required=True),
        Argument("action", "the action, such as peer.read", required=True),
        Argument("resource", 'about what, such as Peer::"ID"', required=True),
        Argument("cedar_text", "a text that is tried beside them", flagged="--text"),
    ),
)
