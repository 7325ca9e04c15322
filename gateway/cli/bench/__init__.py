"""`peergate bench`: figures of this machine, as ratios within one run; no figure is a time limit."""

from __future__ import annotations

import argparse
import os
import platform
from typing import Any

from gateway.cli.bench.figure import FEWEST_ROUNDS, Figure, Plan
from gateway.cli.exits import DONE, FINDING, USAGE, CommandError
from gateway.cli.output import print_json, print_rows, progress

#: What can be asked for, in the order of running; `catalogue` has the code, which is read only when it is needed.
NAMES = ("decision", "context", "rules", "observers", "start", "derive", "kill")
COLUMNS = ("name", "value", "must", "aim", "met", "ratio", "measured")


def add_command(commands: Any) -> None:
    parser = commands.add_parser(
        "bench",
        help="measure this machine against the figures the product is held to",
        description="Measure, on loopback and in temporary directories. Each figure says what it must be; exit 1 when one is not.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"figures to measure (default: all): {', '.join(NAMES)}")
    parser.add_argument("--rounds", type=int, default=FEWEST_ROUNDS, help=f"rounds of each kind, whose median counts ({FEWEST_ROUNDS})")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it works; the figures mean little then")
    parser.add_argument("--clients", choices=("own", "wrk"), default="own", help="what makes the requests (own)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Measure what is asked for and print it; 1 when something is not what it must be."""
    unknown = [name for name in given.names if name not in NAMES]
    if unknown:
        raise CommandError(f"no figure `{unknown[0]}`; known are {', '.join(NAMES)}", USAGE)
    if given.rounds < FEWEST_ROUNDS:
        raise CommandError(f"`--rounds` must be at least {FEWEST_ROUNDS}, got `{given.rounds}`", USAGE)
    plan = Plan(given.rounds, given.quick, given.clients)
    figures = measure(given.names or NAMES, plan)
    if given.json:
        print_json({"machine": machine(), "rounds": plan.rounds, "quick": plan.quick, "figures": [figure.as_json() for figure in figures]})
    else:
        _print(figures)
    return DONE if all(figure.met for figure in figures) else FINDING


def measure(names: Any, plan: Plan) -> list[Figure]:
    """The figures of these names, one after the other."""
    from gateway.cli.bench.catalogue import CATALOGUE

    figures: list[Figure] = []
    for name in names:
        with progress(f"measuring {name}, round") as shown:
            figures += CATALOGUE[name](plan, shown)
    return figures


def machine() -> dict[str, object]:
    return {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()}


def _print(figures: list[Figure]) -> None:
    for figure in figures:
        print(f"{figure.name}: {figure.what}")
