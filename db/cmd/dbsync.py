"""The command ingot-dbsync, which creates, upgrades and describes the schema of the database.

    ingot-dbsync [--config-file FILE] upgrade | expand [--revision REVISION]
    ingot-dbsync online_data_migrations [--max-count ROWS]
    ingot-dbsync contract
    ingot-dbsync version | stamp REVISION | revision MESSAGE

Exit status: 0 it is done; 1 it failed, and the message says why. Of ``online_data_migrations``: 0 nothing is left to
move, 1 there is more, run it again; 2 a migration failed, the log says which. 2 is also a wrong command line.
"""

import argparse
import importlib.metadata
import sys
from collections.abc import Callable, Sequence

from oslo_config import cfg
from oslo_log import log

from ingot.common import errors
from ingot.common.conf import loader
from ingot.db import conductors, schema
from ingot.db.cmd import online_data
from ingot.db.engine import Database

_Command = Callable[[Database, cfg.ConfigOpts], int]


def _upgrade(db: Database, conf: cfg.ConfigOpts) -> int:
    if conf.command.revision is None:
        schema.expand(db)
    else:
        schema.upgrade(db, conf.command.revision)
    return 0


def _contract(db: Database, conf: cfg.ConfigOpts) -> int:
    if schema.is_behind(db):
        raise errors.Conflict(reason="The schema lacks what this release needs: run ingot-dbsync expand first.")
    if conf.pin_release_version is not None:
        raise errors.ConfigurationError(
            option="pin_release_version",
            value=conf.pin_release_version,
            allowed="Unset it and restart all services first: after this, services of other releases are refused.",
        )
    if older := _list_older_conductors(db, conf.conductor.heartbeat_timeout):
        raise errors.Conflict(
            reason=f"Conductors of older releases are online, replace them first: {', '.join(older)}."
        )
    if left := online_data.list_unfinished(db):
        raise errors.Conflict(reason=f"Run ingot-dbsync online_data_migrations first; to do: {', '.join(left)}.")
    schema.upgrade(db)
    return 0


def _list_older_conductors(db: Database, timeout: float) -> list[str]:
    own = _series(importlib.metadata.version("ingot"))
    online = conductors.list_versions(db, timeout)
    return [f"{one.hostname} ({one.release})" for one in online if _series(one.release) < own]


def _series(release: str) -> tuple[int, ...]:
    """Return ``"0.10.3"`` as ``(0, 10)``: patches of a release differ in nothing that others see."""
    return tuple(int(part) for part in release.split(".")[:2])


def _version(db: Database, _conf: cfg.ConfigOpts) -> int:
    needed, head = schema.required_revision(), schema.head()
    print(f"{schema.version(db) or 'empty'} (this release: {needed}, after contract: {head})")
    return 0


def _stamp(db: Database, conf: cfg.ConfigOpts) -> int:
    schema.stamp(db, conf.command.revision)
    return 0


def _revision(db: Database, conf: cfg.ConfigOpts) -> int:
    print(schema.draft(db, conf.command.message))
    return 0


def _online_data_migrations(db: Database, conf: cfg.ConfigOpts) -> int:
    outcome = online_data.run(db, online_data.MIGRATIONS, conf.command.max_count)
    print(outcome.explanation)
    return int(outcome)


def _parse_rows(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rows: give 1 or more")
    return int(text)


def _add_parsers(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    def add(name: str, run: _Command, explanation: str, *aliases: str) -> argparse.ArgumentParser:
        parser = subparsers.add_parser(name, help=explanation, description=explanation, aliases=aliases)
        parser.set_defaults(run=run)
        return parser

    upgrade = add(
        "upgrade", _upgrade, "Create the schema, or add what this release needs. May run while services do.", "expand"
    )
    upgrade.add_argument("--revision", help="revision to stop at; default: the one that this release needs")
    add("contract", _contract, "End an upgrade: remove what only the release before needs. There is no way back.")
    add("version", _version, "Print the schema's revision and the one that this release needs.")
    stamp = add("stamp", _stamp, "Note a revision without changing tables, after a repair by hand.")
    stamp.add_argument("revision")
    revision = add("revision", _revision, "For developers: draft a migration from models to the current schema.")
    revision.add_argument("message", help="what it is for, in one sentence")
    online = add("online_data_migrations", _online_data_migrations, "Move data to its new places while services run.")
    online.add_argument("--max-count", type=_parse_rows, metavar="ROWS", help="move at most so many rows, then stop")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    :returns: the exit status, as the module's first lines say.
    """
    command = cfg.SubCommandOpt("command", title="commands", handler=_add_parsers)
    try:
        conf = loader.load(sys.argv[1:] if arguments is None else arguments, prog="ingot-dbsync", cli_opts=[command])
        log.setup(conf, "ingot")
        return int(conf.command.run(Database(conf), conf))
    except errors.IngotError as exc:
        print(f"ingot-dbsync: {exc}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
