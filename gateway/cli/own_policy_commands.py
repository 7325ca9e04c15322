"""The client commands about an organisation's own policies: written, tried in the shadow, promoted, taken back."""

from __future__ import annotations

from gateway.cli import own_policy_answers as answers
from gateway.cli.command import Argument, Command, command
from gateway.cli.own_policy_cases import check_new, check_own

PATH = "/v1/org/cedar-policies"
FILE = Argument("cedar_text", "a file of Cedar text", "file", required=True, positional=True)
NAME = Argument("name", "what people call it")
ABOUT = Argument("description", "what it is for")
DIR = Argument("dir", "the policies that the cases are asked beside (default: the shipped)", "local")
VERSION = Argument(
    "version", "the version that you have read: a policy that is at another by now stays as it is", kind=int, required=True
)
BESIDE = Argument("cases", "the file of cases (default: that beside the file)", "local")
CONFIRM = Argument("confirm", "a rat_ token; a password is asked for, or taken from PEERGATE_CONFIRM", "confirm")
COLUMNS = "id name enforcement_status version enforced_version updated_at"
CASES = """Cases lie beside the file: those of own.cedar in own_test.json. They are asked first, here, as if the text were in
force over the policies in --dir; where one fails, or the text does not load, nothing is sent. They name a policy by its own @id.
Without cases a note says so.

  peergate policy add own.cedar --name "no agents at night"
  peergate policy shadow-report
  peergate policy promote ID --version 1"""
STEPS = "exit codes: 0 done, 1 refused, 2 bad usage."
TRIED = """exit codes: 0 nobody gains, 1 refused, 2 bad usage, 3 somebody gains, or is shown rows under another condition."""
ASKED = "exit codes: 0 it would be allowed, 1 it would be denied, or the gateway refuses to say, 2 bad usage."
SENT = "exit codes: 0 done, 1 a case fails, the text does not load, or the gateway refuses it, 2 bad usage."

OWN_POLICIES: tuple[Command, ...] = (
    command(
        "policy list",
        f"GET {PATH}",
        "list the organisation's own policies",
        rows="policies",
        columns=COLUMNS,
        about=STEPS,
    ),
    command(
        "policy read",
        f"GET {PATH}/{{policy_id}}",
        "show one of the organisation's own with its text",
        shows=answers.show_policy,
        about=STEPS,
    ),
    command(
        "policy add",
        f"POST {PATH}",
        "give the organisation a policy of its own; it starts in the shadow, where it decides nothing",
        FILE,
        Argument("name", "what people call it (the name of the file)"),
        ABOUT,
        Argument("mode", "shadow, or enforce for whoever may promote (shadow)", choices=("shadow", "enforce")),
        BESIDE,
        DIR,
        CONFIRM,
        checks=check_new,
        shows=answers.show_step,
        about=f"{CASES}\n\n{SENT}",
    ),
    command(
        "policy edit",
        f"PUT {PATH}/{{policy_id}}",
        "write a new version of one of the organisation's own, into the shadow",
        FILE,
        NAME,
        ABOUT,
        BESIDE,
        DIR,
        checks=check_own,
        shows=answers.show_step,
        about=f"{CASES}\n\n{SENT}",
    ),
    command(
        "policy versions",
        f"GET {PATH}/{{policy_id}}/versions",
        "list the versions of one of the organisation's own",
        rows="versions",
        columns="version enforcement_status enforced_version current written_by",
        about=STEPS,
    ),
    command(
        "policy shadow-report",
        "GET /v1/org/policy-shadow-report",
        "who would gain and who would lose by what is in the shadow",
        shows=answers.show_report,
        about=STEPS,
    ),
    command(
        "policy try",
        f"POST {PATH}/replay",
        "decide what a running gateway has recorded again, with a text added; nothing is kept",
        FILE,
        Argument("since", "only what was recorded at this RFC 3339 time or later"),
        Argument("limit", "decisions at most, the newest first (10000)", kind=int),
        shows=answers.show_replay,
        ends=answers.replay_ends,
        about=TRIED,
    ),
    command(
        "policy promote",
        f"POST {PATH}/{{policy_id}}/promote",
        "put the version of one that is in the shadow in force",
        VERSION,
        CONFIRM,
        shows=answers.show_step,
        about=STEPS,
    ),
    command(
        "policy rollback",
        f"POST {PATH}/{{policy_id}}/rollback",
        "take the last step of one of the organisation's own back",
        VERSION,
        CONFIRM,
        shows=answers.show_step,
        about=STEPS,
    ),
    command(
        "policy delete",
        f"DELETE {PATH}/{{policy_id}}",
        "remove one of the organisation's own with all its versions",
        CONFIRM,
        about=STEPS,
    ),
    command(
        "policy ask",
        f"POST {PATH}/test",
        "ask a gateway what it would answer, also with a text that is tried",
        Argument("principal", 'who asks, such as Agent::"ID"', required=True),
        Argument("action", "the action, such as peer.read", required=True),
        Argument("resource", 'about what, such as Peer::"ID"', required=True),
        Argument("cedar_text", "a file of Cedar text that is tried beside them", "file", flagged="--file"),
        ends=answers.asking_ends,
        about=ASKED,
    ),
)
