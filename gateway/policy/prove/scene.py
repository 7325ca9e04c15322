"""A scene: one kind of question, and when a bundle allows it, over every request and every store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import z3
from cedarpy import pst

from gateway.model.memory import MEMORY_ACTIONS
from gateway.policy import grants, guard
from gateway.policy.bundle import Bundle
from gateway.policy.prove.encoding import Encoder, Judged
from gateway.policy.prove.logic import FALSE, Term, every, no, some
from gateway.policy.prove.schema import Unprovable
from gateway.policy.prove.symbols import Symbols
from gateway.policy.schema import Question, Schema

#: What every grant asks of a row. The rest differs, and may be anything: each project and each tier can be granted.
COVERED = """permit (principal is Connection, action, resource is Memory) when {
  resource.agent == principal.agent && resource in principal.org && principal.active && resource has project &&
  !resource.retracted && !resource.superseded && (action == Action::"memory.remember" || !resource.expired)
};"""


class Scene:
    """Encodes the policies of bundles of one schema for one kind of question; what two bundles share is encoded once.

    `assumed` names each policy that cannot be encoded here, and why: it is taken to answer anything, which keeps a proof
    sound. `granted` is whether the answer rests on grants too, and `covered` then, whether one covers the row.
    """

    def __init__(self, bundle: Bundle, question: Question, types: Schema) -> None:
        self.question = question
        self.types = types
        self.symbols = Symbols(types)
        self.assumed: dict[str, str] = {}
        action = bundle.action_uids[question.action]
        context = types.actions[question.action].context
        self.encoder = Encoder(self.symbols, question.principal, action, question.resource, context)
        self.granted = grants.GROUP in bundle.action_uids and (question.principal, question.resource) == (
            grants.HOLDER,
            grants.ROW,
        )
        self.covered = FALSE
        opened = {uid.id for uid in types.groups[action]}
        if self.granted and grants.GROUP in opened and question.action in {f"memory.{name}" for name in MEMORY_ACTIONS}:
            self.covered = every(z3.Bool("covered by a grant"), self.encoder.policy(guard.parse(COVERED)).satisfied)
        self._closed = no(self.covered) if self.granted and grants.GROUP in opened else FALSE
        self._judged: dict[tuple[object, ...], Judged] = {}

    def allowed(self, bundle: Bundle) -> Term:
        """Returns when a bundle allows: some permit, no forbid, no error; a connection with whatever grants it has."""
        judged = [(tree.effect, self._judge(id_, tree)) for id_, tree in self.trees(bundle)]
        return every(
            some(self.covered, *(found.satisfied for effect, found in judged if effect == "permit")),
            no(self._closed),
            *(no(found.satisfied) for effect, found in judged if effect == "forbid"),
            *(no(found.errs) for _, found in judged),
        )

    def open(self, bundle: Bundle) -> Term:
        """Returns when no forbid of a bundle is satisfied or errs: then it allows, if whatever else is written permits."""
        judged = [self._judge(id_, tree) for id_, tree in self.trees(bundle) if tree.effect == "forbid"]
        return every(*(every(no(found.satisfied), no(found.errs)) for found in judged))

    def trees(self, bundle: Bundle) -> Iterator[tuple[str, pst.Template]]:
        """Yields the policies of a bundle that could match the action."""
        return ((id_, bundle.trees[id_]) for id_ in bundle.members[self.question.action])

    def model(self, *terms: Term) -> Any | None:
        """Returns values under which all of some terms hold, or None when there are none; raises `Unprovable`."""
        goal = every(*terms)
        if goal.eq(FALSE):
            return None
        solver = z3.Solver()
        solver.add(goal, *self.symbols.axioms())
        answer = solver.check()
        if answer == z3.unknown:
            raise Unprovable(f"what the solver could not decide ({solver.reason_unknown()})")
        return solver.model() if answer == z3.sat else None

    def _judge(self, id_: str, tree: pst.Template) -> Judged:
        """Two policies that say the same are judged as one, whatever they are called."""
        said = (tree.principal, tree.action, tree.resource, tree.clauses)
        if said not in self._judged:
            try:
                self._judged[said] = self.encoder.policy(tree)
            except Unprovable as error:
                self.assumed[id_] = str(error)
                satisfied, errs = z3.Bools(f"satisfied:{len(self._judged)} errs:{len(self._judged)}")
                self._judged[said] = Judged(every(satisfied, no(errs)), errs)
        return self._judged[said]
