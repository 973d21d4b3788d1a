"""Measures Ingot beside others: ``devstack/services.py run -- python -m benchmarks``; README.md says more."""

import argparse
import asyncio
import contextlib
import pathlib
import shlex
import signal
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

from benchmarks import comparison, loads, operations, report, servers, sides
from benchmarks.sides import SETUPS, SIDES, Side, Site
from tests.gate import cloud, environments

OURS = "ingot"


def main() -> int:
    args = _parser().parse_args()
    # An exception unwinds the `with` blocks, which stop the services.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    chosen = operations.choose(args.only or SETUPS[args.setup].only)
    known = [name for name in (OURS, *args.against) if name not in SETUPS[args.setup].without]
    compared: dict[str, Side] = {name: SIDES[name] for name in known}
    compared[OURS] = compared[OURS]._replace(driver=args.driver)
    if args.release and "release" in compared:
        programs = sides.release_programs(_requirement(args.release))
        compared["release"] = compared["release"]._replace(programs=lambda: programs)
    page = _measure(args, chosen, compared)
    print(page.read_text())
    print(page)
    return 0


def _requirement(release: str) -> str:
    """Return what pip installs of a release: a wheel, or the commit of a tag of this checkout."""
    if (wheel := pathlib.Path(release)).is_file():
        return f"{wheel.resolve()}[mysql]"
    revision = environments.run("git", "rev-parse", "--verify", f"{release}^{{commit}}", cwd=environments.ROOT)
    return f"ingot[mysql] @ git+file://{environments.ROOT}@{revision.strip()}"


def _measure(args: argparse.Namespace, chosen: list[str], compared: Mapping[str, Side]) -> pathlib.Path:
    """Start the services, measure them, and write the report."""
    setup = SETUPS[args.setup]
    size = loads.QUICK if args.quick else loads.Size()
    command = f"devstack/services.py run -- python -m benchmarks {shlex.join(sys.argv[1:])}".rstrip()
    facts: dict[str, Any] = {"command": command, "setup": setup.title}
    facts |= report.circumstances()
    with contextlib.ExitStack() as stack:
        root = args.work or pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ingot-benchmark-")))
        mariadb = None if setup.alone else servers.MariaDB()
        keystone = stack.enter_context(cloud.Keystone()) if setup.authentication == "keystone" else None
        subjects = []
        for name, side in compared.items():
            database = mariadb.create(f"benchmark_{name}", side.charset, side.driver) if mariadb else ""
            database = database or f"sqlite:///{root / name / 'service.sqlite'}"
            site = Site(setup, root / name, database, keystone, more=side.more)
            subjects.append(stack.enter_context(sides.run(side, site, mariadb)))
        samples = asyncio.run(comparison.compare(subjects, chosen, size, args.rounds))
    facts |= {**report.pressure("after"), **(mariadb.versions if mariadb else {})}
    packages = {side.title: sides.packages(side) for side in compared.values()}
    facts |= {f"version of {side.title}": packages[side.title][side.distribution] for side in compared.values()}
    return report.Report(
        name=args.setup,
        title=f"Ingot beside {' and '.join(side.title for side in list(compared.values())[1:])}: {setup.title}",
        sides=[*(subject.name for subject in subjects), report.AGAIN],
        facts=facts,
        packages=packages,
        samples=samples,
        problems={subject.name: subject.problems for subject in subjects},
    ).write(args.results)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--setup", choices=SETUPS, default="cluster", help="; ".join(f"{k}: {v.title}" for k, v in SETUPS.items()))
    add("--only", metavar="WORDS", help="operations whose names contain one of these words, parted by commas")
    add("--against", type=lambda text: text.split(","), default=["ironic", "release"], help="ironic, release, or both")
    add("--driver", choices=("pymysql", "mysqldb"), default="pymysql", help="with which Ingot uses MariaDB")
    add("--rounds", type=int, default=3)
    add("--quick", action="store_true", help="a tenth of the load: to see that it works, not how fast")
    add("--release", metavar="WHEEL|TAG", help="the last release (default: the wheel in tests/gate/releases)")
    add(
        "--work",
        type=lambda given: pathlib.Path(given).resolve(),
        help="directory where configurations and logs stay (default: a temporary one)",
    )
    add("--results", type=pathlib.Path, default=report.RESULTS, help="directory for the report")
    return parser


if __name__ == "__main__":
    sys.exit(main())
