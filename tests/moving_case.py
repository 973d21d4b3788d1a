"""A test with an Ironic's database beside that of Ingot, and the commands that move a fleet between them."""

import contextlib
import io
import pathlib
from typing import Any

import fixtures
import sqlalchemy as sa

from ingot.db import models
from ingot.db.cmd import dbsync
from ingot.db.moving import schema
from tests import command_process, database, ironic_database

INFO = {"ipmi_address": "192.0.2.1", "ipmi_password": "s3cret"}


class MovingCase(database.TestCase):
    """A test with an Ironic's database beside that of Ingot."""

    def setUp(self) -> None:
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.useFixture(command_process.CommandProcess())
        self.ironic = ironic_database.IronicDatabase(self.folder / "ironic.sqlite")
        self.file = self.folder / "ingot.conf"
        self.file.write_text(
            "[DEFAULT]\nenabled_hardware_types = fake-hardware, ipmi\nlog_file = ingot.log\n"
            f"log_dir = {self.folder}\n"
            f"[database]\nconnection = {self.database.url}\nsqlite_synchronous = false\n"
            f"[secrets]\nkey_file = {self.database.conf.secrets.key_file}\n"
        )

    def dbsync(self, *words: str) -> tuple[int, str]:
        """Return exit status and output of a command."""
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            status = dbsync.main(["--config-file", str(self.file), *words])
        return status, output.getvalue()

    def take_over(self, *words: str) -> str:
        """Import, which must succeed, and return the output."""
        status, output = self.dbsync("import-ironic", "--from", self.ironic.url, *words)
        self.assertEqual(0, status, output)
        return output

    def give_back(self, *words: str) -> str:
        """Export, which must succeed, and return the output."""
        status, output = self.dbsync("export-ironic", "--to", self.ironic.url, *words)
        self.assertEqual(0, status, output)
        return output

    def refused(self, *words: str) -> str:
        """Return what is said of an import that is refused; nothing is written."""
        before = self.count()
        status, output = self.dbsync("import-ironic", *(words or ("--from", self.ironic.url)))
        self.assertNotEqual(0, status, output)
        self.assertEqual(before, self.count())
        self.assertNotIn("Traceback", output)
        return output

    def count(self) -> dict[str, int]:
        """Return how many rows each table of Ingot has."""
        with self.db.single() as connection:
            return {
                noun.name: connection.execute(sa.select(sa.func.count()).select_from(noun.table)).scalar_one()
                for noun in schema.NOUNS
            }

    def read(self, model: type[models.Base]) -> list[Any]:
        return self.db.read_all(model, sa.select(models.table(model)).order_by(sa.text("1")))

    def fill(self) -> str:
        """Write a row into each table of Ironic; return the node's uuid."""
        times = {"created_at": "2026-03-01 12:00:00", "updated_at": "2026-03-01 12:00:00"}
        self.ironic.add("chassis", id=3, uuid="c-3", description="Rack", extra={"row": 1}, **times)
        uuid = self.ironic.add_node(
            7,
            chassis_id=3,
            driver="ipmi",
            driver_info=INFO,
            properties={"cpus": 4},
            extra={"ü": "ß"},
            provision_state="active",
            instance_uuid="i-1",
            instance_info={"image_source": "http://images/1", "configdrive": "H4sIAA=="},
            driver_internal_info={"is_whole_disk_image": True},
            allocation_id=5,
            updated_at="2026-03-01 12:00:00",
        )
        own = {"node_id": 7}
        self.ironic.add("node_traits", trait="CUSTOM_GPU", **own)
        self.ironic.add("node_tags", tag="old", **own)
        group = {"uuid": "g-2", "address": "52:54:00:00:00:02", "mode": "802.3ad", "standalone_ports_supported": 1}
        self.ironic.add("portgroups", id=2, **group, **own, **times)
        port = {"uuid": "p-4", "portgroup_id": 2, "pxe_enabled": 1, "available_for_dynamic_portgroup": 1}
        self.ironic.add("ports", id=4, address="52:54:00:00:00:01", **port, **own, **times)
        self.ironic.add("volume_connectors", id=1, uuid="k-1", type="iqn", connector_id="iqn.1", **own, **times)
        volume = {"uuid": "t-1", "volume_type": "iscsi", "volume_id": "v", "boot_index": 0}
        self.ironic.add("volume_targets", id=1, properties={"auth_password": "s3cret"}, **volume, **own, **times)
        self.ironic.add("bios_settings", name="vmx", value="on", allowable_values=["on", "off"], **own, **times)
        self.ironic.add("firmware_information", id=9, component="bmc", initial_version="1", **own, **times)
        for number in (1, 2):
            self.ironic.add("node_inventory", id=number, inventory_data={"cpu": number}, plugin_data={}, **own, **times)
        self.ironic.add("node_history", id=1, uuid="h-1", event="it failed", severity="ERROR", **own, **times)
        wish = {"resource_class": "large", "traits": ["CUSTOM_GPU"], "candidate_nodes": [uuid]}
        self.ironic.add("allocations", id=5, uuid="i-1", name="mine", state="active", **wish, **own, **times)
        self.ironic.add("deploy_templates", id=1, uuid="d-1", name="CUSTOM_D", **times)
        step = {"interface": "bios", "step": "factory_reset", "args": {}}
        self.ironic.add("deploy_template_steps", id=1, deploy_template_id=1, priority=150, **step)
        self.ironic.add("runbooks", id=1, uuid="r-1", name="CUSTOM_R", public=1, **times)
        self.ironic.add("runbook_steps", id=1, runbook_id=1, order=1, **step)
        self.ironic.add("runbook_traits", runbook_id=1, trait="CUSTOM_GPU")
        rule = {"conditions": [], "actions": [{"op": "log", "args": {"msg": "hello"}}], "phase": "main"}
        self.ironic.add("inspection_rules", id=1, uuid="u-1", priority=10, **rule, **times)
        return uuid
