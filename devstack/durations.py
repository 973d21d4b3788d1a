#!/usr/bin/env python3
"""How long slow tests take, so that stestr gives each of its workers as much to do as the others.

    devstack/durations.py tell REPOSITORY        make a repository of stestr that knows devstack/durations.txt
    devstack/durations.py write REPOSITORY...    write devstack/durations.txt anew, from the latest runs in these

stestr gives the slowest tests away first, each to the worker that has the least to do so far. It knows durations from
the runs in its repository, and devstack/gate.sh begins each run with a new one. A test that is missing in the file
costs nothing but balance. After a whole gate on a quiet machine write the file anew:

    cd .gate/results && ../../devstack/durations.py write unit functional console-tests real-machine pages packaging \
        clients upgrade
"""

import argparse
import datetime
import io
import pathlib
import subprocess
import sys
from typing import Any

import subunit
import testtools

FILE = pathlib.Path(__file__).with_suffix(".txt")

SHORT_S = 2.0
"""Tests below this duration are not in the file: stestr deals them out by number, which evens them out, too."""


def read() -> dict[str, float]:
    """Return the seconds of each test in the file."""
    pairs = (line.split() for line in FILE.read_text().splitlines())
    return {name: float(seconds) for seconds, name in pairs}


def stream_of(durations: dict[str, float]) -> bytes:
    """Return a run as subunit has it, in which tests took this long."""
    began = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
    output = io.BytesIO()
    stream = subunit.v2.StreamResultToBytes(output)
    for name, seconds in durations.items():
        stream.status(name, "inprogress", timestamp=began)
        stream.status(name, "success", timestamp=began + datetime.timedelta(seconds=seconds))
    return output.getvalue()


def stestr(repository: str, *words: str, given: bytes = b"") -> bytes:
    command = [sys.executable, "-m", "stestr", "--repo-url", repository, *words]
    return subprocess.run(command, input=given, stdout=subprocess.PIPE, check=True).stdout


def tell(repository: str) -> None:
    """Make a repository that knows the durations, and no run: none of these tests has run yet."""
    stestr(repository, "load", "--force-init", given=stream_of(read()))
    stestr(repository, "history", "remove", "all")


def measured(repository: str) -> list[tuple[str, float]]:
    """Return test and seconds of the latest run in a repository."""
    found: list[tuple[str, float]] = []

    def note(test: Any) -> None:
        began, ended = test["timestamps"]
        if test["status"] == "success":
            found.append((test["id"], (ended - began).total_seconds()))

    result = testtools.StreamToDict(note)
    result.startTestRun()
    subunit.ByteStreamToStreamResult(io.BytesIO(stestr(repository, "last", "--subunit"))).run(result)
    result.stopTestRun()
    return found


def write(repositories: list[str]) -> None:
    found = (pair for repository in repositories for pair in measured(repository))
    FILE.write_text("".join(f"{seconds:.0f} {name}\n" for name, seconds in sorted(found) if seconds >= SHORT_S))


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("tell", help="make a repository that knows them").add_argument("repository")
    actions.add_parser("write", help="write the file").add_argument("repositories", nargs="+")
    options = parser.parse_args(arguments)
    if options.action == "tell":
        tell(options.repository)
    else:
        write(options.repositories)


if __name__ == "__main__":
    main(sys.argv[1:])
