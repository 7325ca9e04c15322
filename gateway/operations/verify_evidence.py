"""Checks evidence with Python's standard library alone: `python verify.py`. Exit 0 when it holds, 1 when it does not."""

import hashlib
import json
import pathlib
import sys
from typing import Any

ORIGIN = hashlib.sha256(b"peergate log 1").hexdigest()


def chain(here: pathlib.Path) -> dict[str, Any]:
    """The rows by id, when each follows the one before it and the last is the head."""
    ends = json.loads((here / "head.json").read_bytes())
    seq, last = ends["after"]["seq"], ends["after"]["hash"]
    if seq == 0 and last != ORIGIN:
        sys.exit("the chain does not begin where every chain begins")
    rows: dict[str, Any] = {}
    for line in (here / "chain.jsonl").read_bytes().splitlines():
        row = json.loads(line)
        if row["seq"] != seq + 1:
            sys.exit(f"row {seq + 1} is missing")
        seq, last = row["seq"], hashlib.sha256(last.encode() + b"\n" + line).hexdigest()
        rows[row["id"]] = row
    if (seq, last) != (ends["head"]["seq"], ends["head"]["hash"]):
        sys.exit("the chain does not end in its head: a row was changed, removed or added")
    return rows


def agrees(case: Any, row: Any) -> bool:
    """Whether a case asks what the row says was asked, and expects what it says was answered."""
    said = {row["action"]: row["outcome"]}
    said |= {also["action"]: "allow" for also in row["details"].get("also", [])}
    said |= {wider: "deny" for wider in row["details"].get("not_allowed", [])}
    asked = case["request"]
    action = asked["action"].removeprefix('Action::"').removesuffix('"')
    about = [f'{row[role + "_type"]}::"{row[role + "_id"]}"' for role in ("principal", "resource")]
    # Where a policy erred the gateway denied, whatever Cedar made of the others.
    answered = action in said if case["num_errors"] else said.get(action) == case["decision"]
    return answered and [asked["principal"], asked["resource"]] == about


def main(here: pathlib.Path) -> None:
    rows = chain(here)
    cases = [case for path in sorted(here.glob("decisions/*/*.json")) for case in json.loads(path.read_bytes())]
    for case in cases:
        if case["name"] not in rows or not agrees(case, rows[case["name"]]):
            sys.exit(f"decision {case['name']} is not what the chain says")
    sys.stdout.write(f"{len(rows)} rows hold; {len(cases)} cases are decisions of the chain\n")


if __name__ == "__main__":
    main(pathlib.Path(__file__).resolve().parent)
