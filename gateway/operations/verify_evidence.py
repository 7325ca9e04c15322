"""Checks evidence with Python's standard library alone: `python verify.py`. Exit 0 when it holds, 1 when it does not."""

import hashlib
import json
import pathlib
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
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
        try:
            row = json.loads(line)
        except ValueError:
            sys.exit(f"row {seq + 1} is not JSON: it was changed")
        if row["seq"] != seq + 1:
            sys.exit(f"row {seq + 1} is missing")
        seq, last = row["seq"], hashlib.sha256(last.encode() + b"\n" + line).hexdigest()
        rows[row["id"]] = row
    if (seq, last) != (ends["head"]["seq"], ends["head"]["hash"]):
        sys.exit("the chain does not end in its head: a row was changed, removed or added")
    return rows


def written(row: Any) -> Iterator[dict[str, Any]]:
    """The cases that a row can be, whole but for their entities: one an answer that it holds."""
    errors = len(row["details"].get("errors", []))
    kind = None if row["deny_kind"] is None else {"deny_kind": row["deny_kind"].replace("paused", "forbidden")}
    yield case(row, row["action"], row["outcome"], row["policies"], errors, kind)
    if errors and row["outcome"] == "deny" and row["policies"]:
        # Where a policy erred the gateway denied, whatever Cedar made of the others.
        yield case(row, row["action"], "allow", row["policies"], errors, kind)
    for also in row["details"].get("also", []):
        yield case(row, also["action"], "allow", also["policies"], 0, None)
    for wider in row["details"].get("not_allowed", []):
        yield case(row, wider, "deny", None, 0, None)


def case(row: Any, action: str, decision: str, policies: Any, errors: int, kind: Any) -> dict[str, Any]:
    shown = row["details"].get("context", {})
    return {
        "name": row["id"],
        "description": f"row {row['seq']} of the chain, {row['at']}",
        "request": {
            "principal": uid(row["principal_type"], row["principal_id"]),
            "action": uid("Action", action),
            "resource": uid(row["resource_type"], row["resource_id"]),
            "context": {**shown, "now": {"__extn": {"fn": "datetime", "arg": moment(shown["now"])}}} if shown else {},
        },
        "decision": decision,
        "reason": policies or [],
        "num_errors": errors,
        **({} if policies is None else {"reason_exact": True}),
        **(kind or {}),
    }


def uid(type_: str, id_: str) -> str:
    escaped = id_.replace("\\", "\\\\").replace('"', '\\"')
    return f'{type_}::"{escaped}"'


def moment(text: str) -> str:
    """A time as Cedar is given it: in UTC, to the millisecond."""
    at = datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(timezone.utc)  # noqa: UP017  # older Pythons too
    return at.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def held(folder: pathlib.Path) -> None:
    """The schema and the policies of a directory are those that its name, the hash of a bundle, stands for."""
    text = (folder / "bundle.json").read_bytes()
    schema, policies = json.loads(text)
    whole = "\n\n".join([policy for _, policy in policies]) + "\n"
    found = (folder / "policies.cedar").read_bytes().decode()
    # The grants of a remote agent follow: they are in no bundle.
    same = found.startswith(whole) if folder.name[64:] else found == whole
    if hashlib.sha256(text).hexdigest() != folder.name[:64] or not same:
        sys.exit(f"the policies of {folder.name} are not those that its name stands for")
    if (folder / "schema.cedarschema").read_bytes().decode() != schema:
        sys.exit(f"the schema of {folder.name} is not the one that its name stands for")


def main(here: pathlib.Path) -> None:
    rows = chain(here)
    count = 0
    for folder in sorted((here / "decisions").glob("*")):
        held(folder)
        for path in sorted(folder.glob("tests-*.json")):
            for found in json.loads(path.read_bytes()):
                row = rows.get(found["name"])
                bare = {key: value for key, value in found.items() if key != "entities"}
                if row is None or row["bundle"] != folder.name[:64] or bare not in list(written(row)):
                    sys.exit(f"decision {found['name']} is not what the chain says")
                count += 1
    sys.stdout.write(f"{len(rows)} rows hold; {count} cases are decisions of the chain\n")


if __name__ == "__main__":
    main(pathlib.Path(__file__).resolve().parent)
