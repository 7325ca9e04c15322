"""The catalogue: every figure that can be measured, by the name that asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gateway.cli.bench.authzen import authzen
from gateway.cli.bench.context import context
from gateway.cli.bench.decision import decision
from gateway.cli.bench.derivation import derivation
from gateway.cli.bench.figure import Figure, Plan
from gateway.cli.bench.kill import kill
from gateway.cli.bench.memory import memory
from gateway.cli.bench.observers import observers
from gateway.cli.bench.overload import overload
from gateway.cli.bench.policies import policies
from gateway.cli.bench.rules import rules
from gateway.cli.bench.rules_http import rules_http
from gateway.cli.bench.start import start
from gateway.cli.output import Progress

CATALOGUE: Mapping[str, Callable[[Plan, Progress], list[Figure]]] = {
    "decision": decision,
    "context": context,
    "rules": rules,
    "rules-http": rules_http,
    "observers": observers,
    "start": start,
    "derive": derivation,
    "memory": memory,
    "policies": policies,
    "authzen": authzen,
    "overload": overload,
    "kill": kill,
}
