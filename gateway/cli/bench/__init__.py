"""`peergate bench`: figures of this machine, most of them ratios within one run; no test holds a machine to them."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Sequence
from typing import Any

from gateway.cli.bench.figure import FEWEST_ROUNDS, OVERLOAD_SECONDS, Figure, Plan, rounded
from gateway.cli.exits import DONE, FINDING, USAGE, CommandError
from gateway.cli.output import print_json, print_rows, progress

#: What can be asked for, in the order of running. The code is in `catalogue`, which other commands have no need to load.
NAMES = (
    "decision",
    "context",
    "rules",
    "rules-http",
    "observers",
    "start",
    "derive",
    "memory",
    "policies",
    "authzen",
    "overload",
    "kill",
)
COLUMNS = ("name", "value", "must", "aim", "met", "ratio")
ABOUT = """Measure this machine, on loopback and in temporary directories. Each figure says what it must be, or what is aimed
at; the exit code is 1 when one is not what it must be. Figures are medians: between machines compare ratios, not seconds."""


def add_command(commands: Any) -> None:
    """Put `bench` into a parser."""
    parser = commands.add_parser("bench", help="measure this machine against what the product is held to", description=ABOUT)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"what to measure (all): {', '.join(NAMES)}")
    parser.add_argument("--rounds", type=int, default=FEWEST_ROUNDS, help=f"rounds of each kind ({FEWEST_ROUNDS})")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it works; the figures mean little then")
    parser.add_argument("--seconds", type=float, default=OVERLOAD_SECONDS, help=f"of `overload` ({OVERLOAD_SECONDS:g})")
    parser.add_argument("--clients", choices=("own", "wrk"), help="what makes requests (wrk where it is installed, else own)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Measure what is asked for and print it; 1 when something is not what it must be.

    Raises:
        CommandError: a name that is unknown, too few rounds, clients that are not installed, or a child that did not start.
    """
    from gateway.cli.bench.clients import choose

    for name in given.names:
        if name not in NAMES:
            raise CommandError(f"`{name}` cannot be measured; known are {', '.join(NAMES)}", USAGE)
    if given.rounds < FEWEST_ROUNDS:
        raise CommandError(f"`--rounds` must be at least {FEWEST_ROUNDS}, got `{given.rounds}`", USAGE)
    plan = Plan(given.rounds, given.quick, choose(given.clients), given.seconds)
    figures = measure(given.names or NAMES, plan)
    if given.json:
        shown = [figure.as_json() for figure in figures]
        print_json({"machine": machine(), "rounds": plan.rounds, "quick": plan.quick, "figures": shown})
    else:
        _print(figures, quick=plan.quick)
    return DONE if all(figure.met for figure in figures) else FINDING


def measure(names: Sequence[str], plan: Plan) -> list[Figure]:
    """The figures of these names, one after the other."""
    from gateway.cli.bench.catalogue import CATALOGUE

    figures: list[Figure] = []
    for name in names:
        with progress(f"measuring {name}, round") as shown:
            figures += CATALOGUE[name](plan, shown)
    return figures


def machine() -> dict[str, object]:
    """What was measured on."""
    where = {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()}
    return {**where, "python": platform.python_version()}


def _print(figures: Sequence[Figure], *, quick: bool) -> None:
    print_rows([_row(figure) for figure in figures], COLUMNS)
    for figure in figures:
        print(f"\n{figure.name}: {figure.what}")
        for name, value in figure.measured.items():
            print(f"  {name}  {rounded(value) if isinstance(value, float) else value}")
    if quick:
        print("\nquick: the sizes were small, and these figures say only that the measuring works")


def _row(figure: Figure) -> dict[str, object]:
    return {
        "name": figure.name,
        "value": f"{rounded(figure.value):g} {figure.unit}",
        "must": None if figure.must is None else str(figure.must),
        "aim": None if figure.aim is None else str(figure.aim),
        "met": "reported" if figure.must is None else "yes" if figure.met else "NO",
        "ratio": None if figure.ratio is None else f"{rounded(figure.ratio):g}",
    }
