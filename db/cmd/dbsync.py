"""The command ingot-dbsync, which creates, upgrades and describes the schema of the database.

    ingot-dbsync [--config-file FILE] upgrade | expand [--revision REVISION]
    ingot-dbsync online_data_migrations [--max-count ROWS]
    ingot-dbsync add_key
    ingot-dbsync contract
    ingot-dbsync restored [--dry-run] | confirm [--all | NODE ...]
    ingot-dbsync version | stamp REVISION | revision MESSAGE
    ingot-dbsync import-ironic --from ADDRESS | export-ironic --to ADDRESS

Exit status: 0 it is done; 1 it failed, and the message says why; 75 the database is away; 78 the configuration is
to be corrected. Of ``online_data_migrations``: 0 nothing is left to
move, 1 there is more, run it again; 2 a migration failed, the log says which. 2 is also a wrong command line.
"""

import argparse
import enum
import importlib.metadata
import logging
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from oslo_config import cfg

from ingot.common import errors
from ingot.common.conf import start
from ingot.db import conductors, migrate, schema, secrets
from ingot.db.cmd import moving, restoring
from ingot.db.engine import Database

LOG = logging.getLogger(__name__)

_BATCH = 500  # rows moved at a time


class Migration(NamedTuple):
    """Data that a release moves while its services run: migrations of the schema only add, and this may take hours.

    A later release drops the old place, after ``ingot-status upgrade check`` found nothing left to move.

    :param name: what an operator sees.
    :param left: how many rows are still to be moved.
    :param move: moves at most that many rows and says how many it did; each call is a transaction of its own.
    """

    name: str
    left: Callable[[Database], int]
    move: Callable[[Database, int], int]


MIGRATIONS: Sequence[Migration] = (
    # Either way: encrypted, with the first key, or in plain, as [secrets] says.
    Migration("secrets", secrets.count_pending, secrets.rewrite_pending),
)
"""In order."""


class Outcome(enum.IntEnum):
    """The outcome of ``online_data_migrations``; its value is the exit status."""

    DONE = 0
    MORE = 1
    FAILED = 2


_EXPLANATIONS = {
    Outcome.DONE: "Nothing is left to move.",
    Outcome.MORE: "There is more to move: run it again.",
    Outcome.FAILED: "A migration failed: see the log.",
}


def list_unfinished(db: Database) -> list[str]:
    """Return the names of the migrations that have something left to move."""
    return [migration.name for migration in MIGRATIONS if migration.left(db)]


def move_rows(db: Database, migrations: Sequence[Migration], max_count: int | None) -> Outcome:
    """Move what is left.

    :param max_count: rows to move at most in all; None moves everything.
    :returns: FAILED if a migration raised an error; it is logged, and those after it were still run.
    """
    outcome = Outcome.DONE
    budget = sys.maxsize if max_count is None else max_count
    for migration in migrations:
        before = budget
        try:
            while batch := migration.move(db, min(_BATCH, budget)):
                budget -= batch
            unfinished = migration.left(db) > 0
        except Exception:
            LOG.exception("Migration %s failed; correct the cause and run it again", migration.name)
            outcome = Outcome.FAILED
            continue
        LOG.info("Migration %s moved %d rows", migration.name, before - budget)
        outcome = max(outcome, Outcome.MORE if unfinished else Outcome.DONE)
    return outcome


def _contract(db: Database, conf: cfg.ConfigOpts) -> None:
    if schema.is_behind(db):
        raise errors.Conflict(reason="The schema lacks what this release needs: run ingot-dbsync expand first.")
    if conf.pin_release_version is not None:
        raise errors.ConfigurationError(
            option="pin_release_version",
            value=conf.pin_release_version,
            allowed="Unset it and restart all services first: after this, services of other releases are refused.",
        )
    _refuse_older(db, conf)
    if left := list_unfinished(db):
        raise errors.Conflict(reason=f"Run ingot-dbsync online_data_migrations first; to do: {', '.join(left)}.")
    migrate.upgrade(db)


def list_older(db: Database, conf: cfg.ConfigOpts) -> list[str]:
    """Return the conductors of older releases that are online, with their releases."""
    own = _series(importlib.metadata.version("ingot"))
    online = conductors.list_versions(db, conf.conductor.heartbeat_timeout)
    return [f"{one.hostname} ({one.release})" for one in online if _series(one.release) < own]


def _refuse_older(db: Database, conf: cfg.ConfigOpts) -> None:
    if older := list_older(db, conf):
        raise errors.Conflict(
            reason=f"Conductors of older releases are online, replace them first: {', '.join(older)}."
        )


def _series(release: str) -> tuple[int, ...]:
    """Return ``"0.10.3"`` as ``(0, 10)``: patches of a release differ in nothing that others see."""
    return tuple(int(part) for part in release.split(".")[:2])


def _run(db: Database, conf: cfg.ConfigOpts) -> int:
    """Run the command that the command line names, and return its exit status."""
    command = conf.command
    match command.name:
        case "upgrade" | "expand" if command.revision is None:
            is_new = schema.version(db) is None
            migrate.expand(db)
            if is_new and db.keyring.seals and not db.keyring.exists():
                _add_key(db)
        case "upgrade" | "expand":
            migrate.upgrade(db, command.revision)
        case "contract":
            _contract(db, conf)
        case "version":
            needed, head = schema.required_revision(), schema.head()
            print(f"{schema.version(db) or 'empty'} (this release: {needed}, after contract: {head})")
        case "stamp":
            migrate.stamp(db, command.revision)
        case "revision":
            print(migrate.draft(db, command.message))
        case "add_key":
            _add_key(db)
        case "online_data_migrations":
            schema.require_current(db)
            _refuse_older(db, conf)  # they cannot read what is moved
            secrets.require_key(db, conf.host)
            outcome = move_rows(db, MIGRATIONS, command.max_count)
            print(_EXPLANATIONS[outcome])
            return outcome
    return 0


_FIRST_KEY = (
    "Copy the file to all hosts, for the user that services run as, and keep a copy apart from backups of the database."
)
_FURTHER_KEY = (
    "It encrypts nothing yet. Copy the file to all hosts, then move the new line to the top there, then run "
    "ingot-dbsync online_data_migrations. After that the former keys may be removed."
)


def _add_key(db: Database) -> None:
    is_first = not db.keyring.exists()
    db.keyring.add_key()
    print(f"Added a key to {db.keyring.path}. {_FIRST_KEY if is_first else _FURTHER_KEY}")


def _parse_rows(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rows: give 1 or more")
    return int(text)


def _add_parsers(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    def add(name: str, explanation: str, *aliases: str) -> argparse.ArgumentParser:
        return subparsers.add_parser(name, help=explanation, description=explanation, aliases=aliases)

    upgrade = add("upgrade", "Create the schema, or add what this release needs. May run while services do.", "expand")
    upgrade.add_argument("--revision", help="revision to stop at; default: the one that this release needs")
    add("contract", "End an upgrade: remove what only the release before needs. There is no way back.")
    add("version", "Print the schema's revision and the one that this release needs.")
    stamp = add("stamp", "Note a revision without changing tables, after a repair by hand.")
    stamp.add_argument("revision")
    revision = add("revision", "For developers: draft a migration from models to the current schema.")
    revision.add_argument("message", help="what it is for, in one sentence")
    add("add_key", "Add a key for secrets to [secrets] key_file: the first one, or one more to change keys.")
    online = add("online_data_migrations", "Move data to its new places while services run.")
    online.add_argument("--max-count", type=_parse_rows, metavar="ROWS", help="move at most so many rows, then stop")
    moving.add_parsers(add)
    restoring.add_parsers(add)


_DESCRIPTION = "Creates, upgrades and describes the schema of the database."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    :returns: the exit status, as the module's first lines say.
    """
    command = cfg.SubCommandOpt("command", title="commands", handler=_add_parsers)

    def run() -> int:
        begun = start.Start("ingot-dbsync", arguments, cli_opts=[command], description=_DESCRIPTION)
        conf = begun.finish(quiet=True)
        commands = {**moving.COMMANDS, **restoring.COMMANDS}
        return commands.get(conf.command.name, _run)(Database(conf), conf)

    return start.run("ingot-dbsync", run)


if __name__ == "__main__":
    sys.exit(main())
