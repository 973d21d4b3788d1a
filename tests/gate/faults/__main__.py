"""Plays a scenario and writes a report: ``python -m tests.gate.faults storm --backend mysql``; see README.md."""

import argparse
import pathlib
import shutil
import sys

import fixtures

from tests.gate.faults import report, scenarios
from tests.gate.faults.scenarios import LONG, Outcome, Storm
from tests.gate.faults.site import DATABASES

RESULTS = pathlib.Path(__file__).parent / "results"


def main() -> int:
    args = _parser().parse_args()
    with fixtures.Fixture() as stage:
        outcome: Outcome = args.play(stage, args)
        for name, found in outcome.broken.items():
            print(name, *(found or ["holds"]), sep="\n    ")
        print(report.write(outcome, args.results))
        if args.logs:
            shutil.copytree(outcome.lab.directory, args.logs, ignore=shutil.ignore_patterns("files", "*.conf"))
    return 0 if outcome.is_good else 1


def _storm(stage: fixtures.Fixture, args: argparse.Namespace) -> Outcome:
    storm = Storm(machines=args.machines, deployments=args.deployments, faults=args.faults, every=args.every)
    return scenarios.storm(stage, args.backend, storm, args.seed)


def _kill(stage: fixtures.Fixture, args: argparse.Namespace) -> Outcome:
    return scenarios.kill(stage, args.backend, args.machines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.gate.faults", description=__doc__.partition("\n")[0])
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--backend", choices=sorted(DATABASES), required=True)
    common.add_argument("--results", type=pathlib.Path, default=RESULTS, help="directory for the report")
    common.add_argument("--logs", type=pathlib.Path, help="directory, not there yet, to which the logs are copied")
    commands = parser.add_subparsers(required=True)
    storm = commands.add_parser("storm", parents=[common], help="random faults during deployments and cleanings")
    storm.add_argument("--seed", type=int, default=1, help="of the schedule")
    storm.add_argument("--machines", type=int, default=LONG.machines)
    storm.add_argument("--deployments", type=int, default=LONG.deployments, help="how many must end well")
    storm.add_argument("--faults", type=int, default=LONG.faults)
    storm.add_argument("--every", type=float, default=LONG.every, help="seconds between two faults")
    storm.set_defaults(play=_storm)
    kill = commands.add_parser("kill", parents=[common], help="kill -9 of the conductor that deploys all machines")
    kill.add_argument("--machines", type=int, default=50)
    kill.set_defaults(play=_kill)
    return parser


if __name__ == "__main__":
    sys.exit(main())
