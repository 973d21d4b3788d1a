"""The commands of ``ingot-dbsync`` for a database that was restored from a backup.

    ingot-dbsync restored [--dry-run]
    ingot-dbsync confirm [--all | NODE ...]

The first is run before any service starts on the database, the second for nodes whose machines an operator has looked
at. Without a node the second lists what is still held.
"""

import argparse
from collections.abc import Callable, Mapping

from oslo_config import cfg

from ingot.common import errors
from ingot.db import node_lists, restoring, schema, secrets
from ingot.db.engine import Database

_AFTERWARDS = "Start the services. Compare each node with its machine, correct it, then run ingot-dbsync confirm NODE."


def add_parsers(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands to a command line.

    :param add: adds one, given its name and explanation.
    """
    restored = add(
        "restored",
        "After a backup was restored, before services start: give up what was under way, and hold all nodes back.",
    )
    restored.add_argument("--dry-run", action="store_true", help="Write nothing; list what would be done.")
    confirm = add(
        "confirm", "Let conductors work again on nodes that were held back by restored; without any, list them."
    )
    confirm.add_argument("nodes", nargs="*", metavar="NODE", help="name or UUID")
    confirm.add_argument("--all", action="store_true", help="All nodes that are held back.")


def run_restored(db: Database, conf: cfg.ConfigOpts) -> int:
    """Hold all nodes of a restored database, and print what was given up.

    :returns: the exit status.
    :raises Conflict: conductors are online.
    """
    schema.require_current(db)
    secrets.check_key(db)
    restoring.check_alone(db, conf.conductor.heartbeat_timeout)
    report = restoring.restore(db, conf.command.dry_run)
    for node in report.interrupted:
        print(f"node {node.name or node.uuid}: {node.state} -> {node.now}")
    for name in report.allocations:
        print(f"allocation {name}: given up")
    print(f"{report.held} nodes are held back, {len(report.interrupted)} flows are given up.")
    if report.conductors:
        print(f"Conductors of the backup: {', '.join(report.conductors)}. Forget those that never come back:")
        print("ingot-conductor forget NAME")
    print("Dry run: nothing was written." if conf.command.dry_run else _AFTERWARDS)
    return 0


def run_confirm(db: Database, conf: cfg.ConfigOpts) -> int:
    """Remove the hold from nodes, or list those that have it.

    :returns: the exit status.
    :raises NotFound: there is no such node.
    """
    command = conf.command
    held = restoring.list_held(db)
    if not command.all and not command.nodes:
        for node in held:
            print(f"{node.uuid}  {node.name or ''}".rstrip())
        print(f"{len(held)} nodes are held back.")
        return 0
    uuids = [node.uuid for node in held] if command.all else _find(db, command.nodes)
    restoring.confirm(db, uuids)
    print(f"{len(uuids)} nodes are confirmed.")
    return 0


def _find(db: Database, idents: list[str]) -> list[str]:
    """Return the UUIDs of nodes.

    :raises NotFound: one is not there; nothing was written yet.
    """
    found = {ident: node.uuid for node in node_lists.find_named(db, idents) for ident in (node.uuid, node.name)}
    for ident in idents:
        if ident not in found:
            raise errors.NotFound(noun="Node", ident=ident)
    return [found[ident] for ident in idents]


COMMANDS: Mapping[str, Callable[[Database, cfg.ConfigOpts], int]] = {"restored": run_restored, "confirm": run_confirm}
