"""The command ingot-status, which finds out whether anything stands in the way of this release.

    ingot-status config [FILE ...]
    ingot-status [--config-file FILE] upgrade check [--json]
    ingot-status [--config-file FILE] explain NODE [--json]

``config`` reads configuration files, those of Ironic too, and says of each option what Ingot makes of it; it asks
neither database nor broker. ``explain`` says what a node, by name or UUID, waits for, until when, and what usually
causes that, as ``GET /ingot/v1/nodes/<node>/explanation`` does. Run ``upgrade check`` after ``ingot-dbsync upgrade``
and before services of the new release start.

Exit status, as of all OpenStack status commands: 0 nothing to do, 1 something to look at, 2 something to correct
first, 255 the command itself failed.
"""

import functools
import importlib.metadata
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import orjson
import sqlalchemy as sa
from oslo_config import cfg
from oslo_upgradecheck import upgradecheck
from oslo_upgradecheck.upgradecheck import Code, Result

from ingot.common import clock, errors, explained, interfaces, masking, patterns
from ingot.common.conf import broker, files, safety, start
from ingot.common.conf.ironic import MEANINGS, Verdict
from ingot.db import conductors, drivers, explanations, inventory, models, nodes, schema, secrets
from ingot.db.cmd import dbsync
from ingot.db.engine import Database

_DESCRIPTION = "Finds out whether anything stands in the way of Ingot: in its configuration files, in the database."

_CHECKS = "ingot.configuration.checks"
"""Entry points of functions that take the options and refuse some: services do the same at their start."""

_EXAMPLES = 5

_Enabled = Collection[tuple[str, str, str, str]]  # conductor group, hardware type, interface type, its name

_SUCCESS = Result(Code.SUCCESS)


class Checks(upgradecheck.UpgradeCommands):
    """The checks in order.

    :param conf: configuration and
    :param db: database to check; both are set before the first check, because the command line names the
        checks first.
    """

    conf: cfg.ConfigOpts
    db: Database

    def _schema(self) -> Result:
        return self._schema_result

    @functools.cached_property
    def _schema_result(self) -> Result:
        required = schema.required_revision()
        try:
            found = schema.version(self.db)
            behind = schema.is_behind(self.db)
        except (errors.ServiceUnavailable, errors.Conflict) as exc:
            return Result(Code.FAILURE, start.describe_refusal(exc))
        if behind:
            advice = f"The schema is {found or 'empty'}, this release needs {required}: run ingot-dbsync upgrade."
            return Result(Code.FAILURE, advice)
        if found not in (required, schema.head()):
            return Result(Code.WARNING, f"The schema is {found}, of a later release: this one's is {schema.head()}.")
        return _SUCCESS

    def _data(self) -> Result:
        if dbsync.list_older(self.db, self.conf):
            return _SUCCESS  # it is done after the upgrade, as they cannot read what was moved
        try:
            secrets.check_key(self.db)
            left = dbsync.list_unfinished(self.db)
        except errors.ConfigurationError:
            return Result(Code.WARNING, "Not checked: see the key for secrets first.")
        if left:
            return Result(Code.WARNING, f"Run ingot-dbsync online_data_migrations; to do: {', '.join(left)}.")
        return _SUCCESS

    def _key(self) -> Result:
        try:
            secrets.check_key(self.db)
        except errors.ConfigurationError as exc:
            # Without a file the command ingot makes one, unless there was one.
            level = Code.FAILURE if self.db.keyring.exists() or secrets.was_used(self.db) else Code.WARNING
            return Result(level, exc.message)
        return _SUCCESS

    def _drivers(self) -> Result:
        online = conductors.enabled_interfaces(self.db, self.conf.conductor.heartbeat_timeout)
        classic = conductors.classic_drivers(self.db, self.conf.conductor.heartbeat_timeout)
        if not online and not classic:
            return Result(Code.WARNING, "No conductor is online, so it is not known which drivers there will be.")
        offers = {
            (offer.conductor_group.lower(), offer.hardware_type, offer.interface_type, offer.interface_name)
            for offer in online
        }
        fixed = {(group.lower(), name) for _hostname, group, name in classic}
        names = ("uuid", "driver", "conductor_group", *interfaces.FIELDS)
        every = self.db.read_all(models.Node, sa.select(*models.columns(nodes.NODES, names)))
        of_types = (node for node in every if (node.conductor_group.lower(), node.driver) not in fixed)
        homeless = [(node, lacking) for node in of_types if (lacking := _list_lacking(node, offers))]
        if not homeless:
            return _SUCCESS
        examples = "; ".join(
            f"node {node.uuid} (group '{node.conductor_group}') needs {', '.join(lacking)}"
            for node, lacking in homeless[:_EXAMPLES]
        )
        return Result(
            Code.WARNING,
            f"{len(homeless)} nodes need what no online conductor of their group has enabled, so nothing will work on "
            f"them: {examples}. Enable it, or change the nodes.",
        )

    def _rules(self) -> Result:
        problems = [
            f"inspection rule {rule.uuid} ({rule.description}): {problem}"
            for rule in self.db.read_all(models.InspectionRule, sa.select(inventory.RULES.source.table))
            for problem in _list_unreadable(rule)
        ]
        if not problems:
            return _SUCCESS
        text = "; ".join(problems[:_EXAMPLES])
        return Result(Code.WARNING, f"Inspections fail by {len(problems)} regular expressions, replace them: {text}")

    def _broker(self) -> Result:
        if self.conf.rpc_transport != "oslo":
            return _SUCCESS
        try:
            problems = list(broker.find_problems(self.conf))
        except errors.ConfigurationError as exc:
            return Result(Code.FAILURE, exc.message)
        return Result(Code.WARNING, " ".join(problems)) if problems else _SUCCESS

    @staticmethod
    def _after_schema(check: Callable[["Checks"], Result]) -> Callable[["Checks"], Result]:
        """Decorate a check that reads tables, and cannot as long as they are not there."""

        def run_check(self: "Checks") -> Result:
            if self._schema().code is Code.FAILURE:
                return Result(Code.WARNING, "Not checked: see the schema of the database first.")
            return check(self)

        return run_check

    _upgrade_checks = (
        ("Schema of the database", _schema),
        ("Data to be moved", _after_schema(_data)),
        ("Key for secrets", _after_schema(_key)),
        ("Drivers of nodes", _after_schema(_drivers)),
        ("Regular expressions of inspection rules", _after_schema(_rules)),
        ("Message broker", _broker),
    )


def _list_unreadable(rule: models.InspectionRule) -> Iterator[str]:
    """Yield what is wrong with the regular expressions of a rule."""
    for use in rule.conditions:
        args = use["args"]
        if use["op"].removeprefix("!") in ("matches", "contains"):
            try:
                patterns.check_unfilled("regex", args["regex"] if isinstance(args, dict) else args[1])
            except errors.Invalid as exc:
                yield exc.message


def _list_lacking(node: models.Node, offers: _Enabled) -> list[str]:
    """Return what a node is composed of and no conductor of its group offers, as an operator would write it."""
    group = node.conductor_group.lower()
    if not any(offer[:2] == (group, node.driver) for offer in offers):
        return [f"driver {node.driver}"]
    chosen = [(interface_type, getattr(node, interfaces.FIELD[interface_type])) for interface_type in interfaces.TYPES]
    return [
        f"{interfaces.FIELD[interface_type]} {name}"
        for interface_type, name in chosen
        if name is not None and (group, node.driver, interface_type, name) not in offers
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    :returns: the exit status, as the module's first lines say.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    line = files.read_command_line(given)
    if line.rest[:1] == ["config"] and start.HELP.isdisjoint(given):
        return _check_files(line)
    checks = Checks()

    def add_parsers(subparsers: Any) -> None:
        def add(name: str, explanation: str) -> Any:
            return subparsers.add_parser(name, help=explanation, description=explanation)

        upgrade = add("upgrade", "Tell whether this release may be started.")
        upgrade.add_argument("check", choices=["check"])
        upgrade.add_argument("--json", action="store_true", help="Print JSON instead of a table.")
        upgrade.set_defaults(action_fn=checks.check)

        explain = add("explain", "Tell why a node is where it is, and what it waits for.")
        explain.add_argument("node", metavar="NODE", help="Name or UUID.")
        explain.add_argument("--json", action="store_true", help="Print JSON.")
        explain.set_defaults(action_fn=lambda: _explain(checks.db, checks.conf))

        config = add("config", "Tell what Ingot makes of configuration files.")
        config.add_argument("files", nargs="*", metavar="FILE", help="Default: the files that services read.")

    command = cfg.SubCommandOpt("command", title="commands", handler=add_parsers)
    try:
        begun = start.Start("ingot-status", given, logs=False, cli_opts=[command], description=_DESCRIPTION)
        conf = begun.finish(quiet=True)
        checks.conf = upgradecheck.CONF = conf  # the library's own CONF decides between table and JSON
        checks.db = Database(conf)
        return int(upgradecheck.run(conf))
    except errors.IngotError as exc:
        start.report("ingot-status", exc)
        return 255


def _explain(db: Database, conf: cfg.ConfigOpts) -> int:
    """Print why a node is where it is.

    :returns: the exit status: 255 if that cannot be found out.
    """
    try:
        node = nodes.get(db, conf.command.node, ("name", "last_error", *explanations.COLUMNS))
        explanation = explanations.explain_now(db, conf, node)
    except errors.IngotError as exc:
        start.report("ingot-status", exc)
        return 255
    if conf.command.json:
        print(orjson.dumps({"node_uuid": node.uuid, **explanation}, option=orjson.OPT_NAIVE_UTC).decode())
        return 0
    print(f"Node {node.name or node.uuid}{f' ({node.uuid})' if node.name else ''}")
    print("\n".join(explained.render(explanation, clock.now())))
    if node.last_error:
        print(f"last_error: {masking.mask_text(node.last_error)}")
    return 0


def _check_files(line: files.CommandLine) -> int:
    """Print what Ingot makes of configuration files.

    :returns: the exit status: 2 if it would not start with them, 1 if something has no effect that Ironic's would have.
    """
    named = [*(line.files or ()), *line.rest[1:]]
    folders = [f"--config-dir={folder}" for folder in line.folders or ()]
    try:
        begun = start.Start("ingot-status", folders, named or None, logs=False)
    except errors.ConfigurationError as exc:
        _print_group(Verdict.REFUSED, exc.messages)
        return int(Code.FAILURE)
    safety.check_api(begun)
    safety.check_hardware(begun)
    begun.attempt(drivers.parse_url, begun.conf.database.connection)
    for entry_point in importlib.metadata.entry_points(group=_CHECKS):
        begun.attempt(entry_point.load(), begun.conf)
    lines: dict[Verdict, list[str]] = {verdict: [] for verdict in Verdict}
    for finding in begun.list_findings():
        lines[finding.verdict].append(finding.describe())
    lines[Verdict.REFUSED] = [*begun.refusals.messages, *lines[Verdict.REFUSED]]
    lines[Verdict.UNSAFE] = begun.warnings
    print(f"Read: {', '.join(begun.files) or 'no file'}.")
    for verdict, found in lines.items():
        _print_group(verdict, found)
    bad = next((verdict for verdict in Verdict if lines[verdict]), Verdict.IGNORED)
    return int(
        {Verdict.REFUSED: Code.FAILURE, Verdict.RENAMED: Code.SUCCESS, Verdict.IGNORED: Code.SUCCESS}.get(
            bad, Code.WARNING
        )
    )


def _print_group(verdict: Verdict, lines: Sequence[str]) -> None:
    if lines:
        print(f"\n{verdict.capitalize()}, {MEANINGS[verdict]}:")
    for line in lines:
        print(f"  {line}")


if __name__ == "__main__":
    sys.exit(main())
