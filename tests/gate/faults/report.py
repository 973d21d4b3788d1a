"""What a run leaves for the record: a page that says what was played, where, and what came of it."""

import datetime
import os
import pathlib
import subprocess
from collections.abc import Iterator

from tests.gate.faults.scenarios import Outcome


def write(outcome: Outcome, directory: pathlib.Path) -> pathlib.Path:
    """Write the page of a run, named after date, command and commit.

    :returns: where it is.
    """
    words = [word for word in outcome.command.split() if not word.startswith("--")][:2]
    path = directory / f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}-{'-'.join(words)}-{_commit()}.md"
    directory.mkdir(parents=True, exist_ok=True)  # a run of minutes is not lost for it
    path.write_text("\n".join(page(outcome)) + "\n")
    return path


def page(outcome: Outcome) -> Iterator[str]:
    yield f"# {outcome.title}"
    yield ""
    yield f"    python -m tests.gate.faults {outcome.command}"
    yield ""
    yield f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC, commit {_commit()}, {_machine()}."
    yield ""
    yield "| what | how much |"
    yield "| --- | --- |"
    yield from (f"| {what} | {much.replace('|', '/')} |" for what, much in outcome.facts)
    yield ""
    yield "| invariant | broken |"
    yield "| --- | --- |"
    yield from (f"| {name.replace('_', ' ')} | {len(found)} times |" for name, found in outcome.broken.items())
    yield ""
    yield from (f"- {name}: {one}" for name, found in outcome.broken.items() for one in found)
    if outcome.faults:
        yield "Faults:"
        yield ""
        yield from (f"    {fault}" for fault in outcome.faults)


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    here = pathlib.Path(__file__).parent
    return subprocess.run(command, cwd=here, capture_output=True, text=True, check=True).stdout.strip()


def _machine() -> str:
    return f"{os.cpu_count()} processors, load {os.getloadavg()[1]:.1f} in the last five minutes"
