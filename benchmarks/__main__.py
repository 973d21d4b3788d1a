"""Measures Ingot beside others: ``devstack/services.py run -- python -m benchmarks``; README.md says more."""

import argparse
import asyncio
import contextlib
import dataclasses
import pathlib
import signal
import sys
import tempfile
import time
from collections.abc import Sequence

from benchmarks import comparison, loads, operations, report, servers, sides
from benchmarks.report import Sample
from benchmarks.sides import SETUPS, SIDES, Side
from tests.gate import cloud

OURS = "ingot"


def main() -> int:
    args = _parser().parse_args()
    # An exception unwinds the `with` blocks, which stop the services.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    setup = SETUPS[args.setup]
    chosen = operations.choose(args.only or setup.only)
    compared = [SIDES[name] for name in (OURS, *args.against) if name not in setup.without]
    compared[0] = compared[0]._replace(driver=args.driver)
    print(_measure(args, chosen, compared).read_text())
    return 0


def _measure(args: argparse.Namespace, chosen: Sequence[str], compared: Sequence[Side]) -> pathlib.Path:
    """Start the services and measure them; return where the report is, which is written whenever there is more."""
    setup = SETUPS[args.setup]
    facts = {"setup": setup.title, **report.circumstances()}
    name = f"{args.setup}-{args.driver}" if not setup.alone else args.setup
    names = [*(side.title for side in compared), report.AGAIN]
    page = pathlib.Path()
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        root = args.work or pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ingot-benchmark-")))
        mariadb = None if setup.alone else servers.MariaDB()
        keystone = stack.enter_context(cloud.Keystone()) if setup.authentication == "keystone" else None
        packages = {side.title: sides.packages(side) for side in compared}
        facts |= {f"version of {side.title}": packages[side.title][side.distribution] for side in compared}
        facts |= mariadb.versions if mariadb else {}
        subjects = [stack.enter_context(sides.run(side, setup, root, mariadb, keystone)) for side in compared]

        def keep(samples: Sequence[Sample]) -> None:
            nonlocal page
            facts.update({**report.pressure("after"), "minutes": round((time.monotonic() - began) / 60, 1)})
            problems = [
                {"side": one.name, "problem": text[:300]} for one in subjects for text in dict.fromkeys(one.problems)
            ]
            found = {**report.list_tables(samples, names), "Problems": problems[:20]}
            every = [sample._asdict() for sample in samples]
            page = report.keep(args.results, name, facts, found, packages=packages, samples=every)

        size = loads.QUICK if args.quick else dataclasses.replace(loads.Size(), seconds=args.seconds)
        asyncio.run(comparison.compare(subjects, chosen, size, args.rounds, keep))
    return page


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--setup", choices=SETUPS, default="cluster", help="; ".join(f"{k}: {v.title}" for k, v in SETUPS.items()))
    add("--only", metavar="WORDS", help="operations whose names contain one of these words, parted by commas")
    add("--against", type=lambda text: text.split(","), default=["ironic", "release"], help="ironic, release, or both")
    add("--driver", choices=("pymysql", "mysqldb"), default="pymysql", help="with which Ingot uses MariaDB")
    add("--rounds", type=int, default=3)
    add("--seconds", type=float, default=4, help="of each measurement of a read or a heartbeat")
    add("--quick", action="store_true", help="a tenth of the load: to see that it works, not how fast")
    add("--work", type=pathlib.Path, help="directory where configurations and logs stay (default: a temporary one)")
    add("--results", type=pathlib.Path, default=report.RESULTS, help="directory for the report")
    return parser


if __name__ == "__main__":
    sys.exit(main())
