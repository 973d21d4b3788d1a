"""The commands that move a fleet between Ironic and Ingot, of ``ingot-dbsync``.

    ingot-dbsync import-ironic --from ADDRESS [--dry-run] [--replace FIELD=OLD:NEW ...] [--report FILE]
    ingot-dbsync export-ironic --to ADDRESS [--dry-run] [--replace FIELD=OLD:NEW ...] [--report FILE] [--delete]

ADDRESS is that of Ironic's database, or a configuration file of Ironic that has it: on a command line, all users of the
host can read a password.
"""

import argparse
import importlib.metadata
import logging
import pathlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson
from oslo_config import cfg

from ingot.common import errors
from ingot.db import conductors, schema, secrets
from ingot.db.engine import Database
from ingot.db.moving import exporting, importing, nodes, peer
from ingot.db.moving.report import Report
from ingot.db.moving.rows import Taker

LOG = logging.getLogger(__name__)


def add_parsers(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands to a command line.

    :param add: adds one, given its name and explanation.
    """
    taking = add(
        "import-ironic", "Take over the fleet of an Ironic: read its database, and write all of it or nothing."
    )
    taking.add_argument("--from", dest="address", required=True, metavar="ADDRESS", help=_ADDRESS)
    taking.add_argument(
        "--while-running", action="store_true", help="Do not refuse while Ironic's conductors run: for a rehearsal."
    )
    giving = add("export-ironic", "The way back: make the database of an Ironic say what Ingot's says.")
    giving.add_argument("--to", dest="address", required=True, metavar="ADDRESS", help=_ADDRESS)
    giving.add_argument("--delete", action="store_true", help="Delete nodes there that Ingot does not have any more.")
    for parser in (taking, giving):
        parser.add_argument("--dry-run", action="store_true", help="Write nothing; tell what would be done.")
        parser.add_argument("--report", type=pathlib.Path, metavar="FILE", help="Write all findings there, as JSON.")
        parser.add_argument(
            "--replace",
            action="append",
            default=[],
            type=_parse_replacement,
            metavar="FIELD=OLD:NEW",
            help=f"Give nodes another value: {', '.join(nodes.REPLACEABLE)}. Give the export what the import got.",
        )


_ADDRESS = "Address of Ironic's database (mysql+pymysql://... or sqlite:////FILE), or the path of its ironic.conf."


def _parse_replacement(text: str) -> tuple[tuple[str, str], str]:
    field, equals, values = text.partition("=")
    old, colon, new = values.partition(":")
    if not (equals and colon and old and new) or field not in nodes.REPLACEABLE:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not FIELD=OLD:NEW, for example network_interface=flat:noop; fields are "
            f"{', '.join(nodes.REPLACEABLE)}"
        )
    return (field, old), new


def _read_replacements(pairs: Sequence[tuple[tuple[str, str], str]]) -> nodes.Replacements:
    """
    :raises ConfigurationError: a value is replaced by two.
    """
    found: dict[tuple[str, str], str] = {}
    for (field, old), new in pairs:
        if found.setdefault((field, old), new) != new:
            allowed = f"{found[field, old]} replaces it already. Give each value one replacement."
            raise errors.ConfigurationError(option="--replace", value=f"{field}={old}:{new}", allowed=allowed)
    return found


def run_import(db: Database, conf: cfg.ConfigOpts) -> int:
    """Take over a fleet, and print what does not carry over.

    :returns: the exit status.
    """
    command = conf.command
    schema.require_current(db)
    replaced = _read_replacements(command.replace)
    hardware = _load_hardware(conf)
    if command.dry_run:
        secrets.check_key(db)
    else:
        secrets.require_key(db, conf.host)
    report = _begin(command.report)
    offers = nodes.Offers.of(hardware.list_enabled(), hardware.classic_drivers)
    begun = time.monotonic()
    with peer.open_peer(command.address) as source:
        _refuse_running(source, report, command.dry_run or command.while_running)
        taker = Taker(report, replaced, offers, source.list_volume_boots())
        is_new = importing.take_over(db, source, taker, writes=not command.dry_run)
    _finish(report, command.report)
    seconds = time.monotonic() - begun
    outcome = _describe_import(is_new, command.dry_run)
    LOG.info("Ironic %d was read in %.1f s: %s. %s", source.release, seconds, dict(report.rows), outcome)
    print(f"\nIronic {source.release}, {report.rows['nodes']} nodes, {seconds:.1f} s. {outcome}")
    return 0


def _describe_import(is_new: bool, dry_run: bool) -> str:
    if not is_new:
        return "All of it is in this database already: nothing was written."
    if dry_run:
        return "Dry run: nothing was written."
    return "Imported. Keep Ironic's services stopped: two services must not work on the same machines."


def run_export(db: Database, conf: cfg.ConfigOpts) -> int:
    """Write the fleet into Ironic's database, and print what that has no place for.

    :returns: the exit status.
    """
    command = conf.command
    schema.require_current(db)
    secrets.check_key(db)
    if online := conductors.list_versions(db, conf.conductor.heartbeat_timeout):
        names = ", ".join(one.hostname for one in online)
        raise errors.Conflict(reason=f"Conductors of Ingot are online, stop them and the APIs first: {names}.")
    replaced = _read_replacements(command.replace)
    report = _begin(command.report)
    with peer.open_peer(command.address, writes=not command.dry_run) as target:
        _refuse_running(target, report, command.dry_run)
        giver = exporting.Giver(target, replaced, report)
        changed = exporting.give_back(db, target, giver, command.delete, writes=not command.dry_run)
        if not command.dry_run:
            target.connection.commit()
    _finish(report, command.report)
    outcome = "Dry run: nothing was written." if command.dry_run else "Exported: Ironic may start."
    LOG.info("%d nodes of Ironic %d are new, different or gone. %s", changed, target.release, outcome)
    print(f"\nIronic {target.release}: {changed} nodes are new, different or gone. {outcome}")
    return 0


def _load_hardware(conf: cfg.ConfigOpts) -> Any:
    """Return what is enabled here, as the conductor finds it."""
    (found,) = importlib.metadata.entry_points(group="ingot.configuration.checks", name="hardware")
    return found.load()(conf)


def _refuse_running(source: peer.Peer, report: Report, allowed: bool) -> None:
    for conductor in source.list_running():
        report.add("source running", "conductor", conductor)
    if report.count("source running") and not allowed:
        raise errors.Conflict(
            reason=f"Ironic is running, and writes to its database: conductor {', '.join(source.list_running())}. Stop "
            "Ironic's APIs and conductors. One that was killed counts as running for a minute."
        )


def _begin(file: pathlib.Path | None) -> Report:
    """Return a report that can be saved: nothing is done whose report would be lost."""
    report = Report()
    _save(report, file)
    return report


def _finish(report: Report, file: pathlib.Path | None) -> None:
    for line in report.render():
        print(line)
    _save(report, file)


def _save(report: Report, file: pathlib.Path | None) -> None:
    if file is not None:
        try:
            file.write_bytes(orjson.dumps(report.as_dict(), option=orjson.OPT_INDENT_2))
        except OSError as exc:
            allowed = f"The file cannot be written ({exc.strerror}). Name another one."
            raise errors.ConfigurationError(option="--report", value=str(file), allowed=allowed) from exc


COMMANDS: Mapping[str, Callable[[Database, cfg.ConfigOpts], int]] = {
    "import-ironic": run_import,
    "export-ironic": run_export,
}
