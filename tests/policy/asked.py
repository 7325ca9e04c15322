"""Cases for the tests of the workbench, over the small store of `builders`."""

from __future__ import annotations

from typing import Any

from gateway.policy.bundle import Bundle
from gateway.policy.cases import Case
from tests.policy import builders as b

ORG = b.uid("Org", "o")


def the_org() -> dict[str, object]:
    return b.a_row("Org", "o")


def a_user(id_: str = "ann", *, level: int = 1, active: bool = True, groups: tuple[str, ...] = ()) -> dict[str, object]:
    parents = (ORG, *(b.uid("Group", group) for group in groups))
    return b.a_row("User", id_, *parents, org={"__entity": ORG}, active=active, level=level)


def a_doc(id_: str = "d", *, level: int = 1, owner: str = "ann", **attrs: object) -> dict[str, object]:
    return b.a_row("Doc", id_, ORG, org={"__entity": ORG}, owner={"__entity": b.uid("User", owner)}, level=level, **attrs)


def a_case(
    action: str = "read",
    *own: dict[str, object],
    cast: tuple[dict[str, object], ...] = (),
    who: str = "ann",
    context: dict[str, Any] | None = None,
) -> Case:
    """A case of a user and the document `d`; without entities of its own, ann and her document, both of level 1."""
    entities = own or (() if cast else (the_org(), a_user(), a_doc()))
    request = {"principal": f'User::"{who}"', "action": f'Action::"{action}"', "resource": 'Doc::"d"', "context": context or {}}
    return Case(
        file="t_test.json",
        number=1,
        name="",
        request=request,
        entities=(*entities, *cast),
        decision="allow",
        reason=frozenset(),
        num_errors=0,
        reason_exact=False,
        deny_kind=None,
        control="",
        raw={"entities": list(entities)},
    )


def a_bundle(*policies: str) -> Bundle:
    """A bundle of policies that need not keep the house rules, in one file, one a line."""
    return Bundle.from_text(b.SCHEMA, {"s.cedar": "\n".join(policies)}, house_rules=False)
