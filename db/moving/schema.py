"""What is known of Ironic's database: its revisions, its tables, and which tables of Ingot hold the same.

Measured with releases 29 to 39 from PyPI; ``tests/gate/test_moving.py`` compares the newest of them with this module.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa

from ingot.db import models

RELEASES: Mapping[str, tuple[int, ...]] = {
    "21c48150dea9": (29,),
    "1c14278d6e33": (30, 31),
    "3ef27505c9fb": (32,),
    "15e9d00367b0": (33,),
    "9f8c7d6e5b4a": (34,),
    "2a3b4c5d6e7f": (35,),
    "e2d316b60d9e": (36, 37),
    "16990309ad9d": (38,),
    "9fb44677ef15": (39,),
}
"""By the revision in ``alembic_version``, the releases of Ironic whose schema it is."""


Kept = Mapping[Any, Any]
"""A row as a database has it: names of columns are strings, and columns themselves are keys, too."""


class Noun(NamedTuple):
    """A table of Ingot and the table of Ironic that holds the same.

    :param theirs: name of Ironic's table.
    :param key: columns that tell the rows apart in both databases.
    :param renamed: by column of Ingot, the name of Ironic's.
    :param own: columns that Ironic has not.
    :param versions: by the first release that writes it, the version in the rows of its objects.
    :param newest: column of Ironic by which the last of several rows with one key is the valid one.
    """

    theirs: str
    model: type[models.Base]
    key: tuple[str, ...] = ("uuid",)
    renamed: Mapping[str, str] = {}
    own: frozenset[str] = frozenset()
    versions: Mapping[int, str] = {}
    newest: str | None = None

    @property
    def name(self) -> str:
        """The name of the table of Ingot."""
        return self.model.__tablename__

    @property
    def table(self) -> sa.Table:
        """The table of Ingot."""
        return models.table(self.model)

    @property
    def columns(self) -> dict[str, sa.Column[Any]]:
        """By name of Ironic's column, the column of Ingot that holds the same."""
        return {
            self.renamed.get(column.name, column.name): column for column in self.table.c if column.name not in self.own
        }

    @property
    def refers(self) -> Mapping[str, str]:
        """By name of a column of Ingot, the table of Ingot that it refers to."""
        return {column.name: str(key.column.table.name) for column in self.table.c for key in column.foreign_keys}

    def version(self, release: int) -> str | None:
        """Return the version that rows of a release of Ironic have."""
        return next((said for since, said in reversed([*self.versions.items()]) if since <= release), None)


_OWN_OF_NODES = frozenset(
    (
        *("maintenance_holds", "configdrive", "reservation", "revision", "flow", "request", "abort_requested"),
        *("lock_epoch", "lock_attempts", "lock_purpose", "locked_at", "power_request", "due_at", "run_id"),
        *("step_state", "step_attempt", "step_started_at", "step_deadline", "step_heard", "step_memory"),
        *("boot_config", "boot_script_at", "boot_ticket", "boot_address", "outbox", "outbox_at"),
        *("agent_url", "agent_token", "agent_token_at", "agent_address", "agent_version", "agent_verify_ca"),
        *("agent_status", "agent_last_heartbeat"),
    )
)
"""Of these, :mod:`ingot.db.moving.nodes` takes what it can from other columns of Ironic."""

_NAMED = {29: "1.0", 32: "1.1"}

NOUNS: tuple[Noun, ...] = (
    Noun("chassis", models.Chassis, versions={29: "1.3", 32: "1.4"}),
    Noun("nodes", models.Node, own=_OWN_OF_NODES, versions={29: "1.41", 32: "1.42", 33: "1.43", 34: "1.44"}),
    Noun("node_tags", models.NodeTag, key=("node_id", "tag")),
    Noun("node_traits", models.NodeTrait, key=("node_id", "trait"), versions=_NAMED),
    Noun(
        "portgroups",
        models.Portgroup,
        own=frozenset(("joined",)),
        versions={29: "1.5", 32: "1.6", 33: "1.8", 35: "1.9"},
    ),
    Noun("ports", models.Port, versions={29: "1.11", 30: "1.12", 32: "1.15", 35: "1.16"}),
    Noun("volume_connectors", models.VolumeConnector, versions=_NAMED),
    Noun("volume_targets", models.VolumeTarget, versions=_NAMED),
    Noun("bios_settings", models.BiosSetting, key=("node_id", "name"), versions={29: "1.1", 32: "1.2"}),
    Noun(
        "firmware_information",
        models.FirmwareComponent,
        key=("node_id", "component"),
        versions={29: "1.0", 32: "1.1", 39: "1.2"},
    ),
    Noun(
        "node_inventory",
        models.NodeInventory,
        key=("node_id",),
        renamed={"inventory": "inventory_data", "inspected_at": "created_at"},
        versions=_NAMED,
        newest="id",
    ),
    Noun(
        "node_history",
        models.NodeHistory,
        own=frozenset(("request_id",)),
        versions={29: "1.0", 32: "1.1", 38: "1.2", 39: "1.3"},
    ),
    Noun("allocations", models.Allocation, versions={29: "1.1", 32: "1.3"}),
    Noun("deploy_templates", models.DeployTemplate, versions={29: "1.1", 32: "1.2"}),
    Noun("deploy_template_steps", models.DeployTemplateStep, key=("id",)),
    Noun("runbooks", models.Runbook, versions={29: "1.0", 32: "1.1", 36: "1.2"}),
    Noun("runbook_steps", models.RunbookStep, key=("id",)),
    Noun("runbook_traits", models.RunbookTrait, key=("runbook_id", "trait")),
    Noun("inspection_rules", models.InspectionRule, versions=_NAMED),
)
"""In an order in which what is referred to comes first."""

CONDUCTORS = sa.table(
    "conductors",
    sa.column("hostname", sa.String()),
    sa.column("online", sa.Boolean()),
    sa.column("updated_at", sa.DateTime()),
)
REVISION = sa.table("alembic_version", sa.column("version_num", sa.String()))

NOT_TAKEN = frozenset(("conductors", "conductor_hardware_interfaces", "alembic_version"))
"""Tables of Ironic that say nothing of the fleet."""
