"""Which machines dnsmasq knows: as the database says, for one statement as long as nothing changes."""

import pathlib
import tempfile
import time

import fixtures
import sqlalchemy as sa

from ingot.boot.machines import Machines
from ingot.common import clock
from ingot.db import models, nodes
from tests import database, sql_counter

_PORTS = models.table(models.Port)


class MachinesOnSQLite(database.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), "machines")
        self.machines = Machines(self.db, self.path)
        self.node = database.make_node(self.db, boot_interface="ipxe")

    def follow(self) -> list[str] | None:
        """Return the lines of a file that was written; None if it was not."""
        return self.path.read_text().splitlines() if self.machines.follow() else None

    def write(self, statement: sa.UpdateBase) -> None:
        self.db.write(statement)

    def test_ports_that_come_change_and_go(self) -> None:
        self.assertEqual([], self.follow())
        database.make_port(self.db, self.node, address="52:54:00:00:00:01")
        self.assertEqual(["52:54:00:00:00:01,set:enrolled"], self.follow())
        self.assertIsNone(self.follow())
        self.write(sa.update(_PORTS).values(address="52:54:00:00:00:02"))
        self.assertEqual(["52:54:00:00:00:02,set:enrolled"], self.follow())
        self.write(sa.update(nodes.NODES).values(boot_interface="pxe"))
        self.assertEqual(["52:54:00:00:00:02,set:enrolled,set:signed"], self.follow())
        self.write(sa.update(_PORTS).values(pxe_enabled=False))
        self.assertEqual([], self.follow())
        self.write(sa.delete(_PORTS))
        self.assertIsNone(self.follow())

    def test_a_change_that_the_mark_misses_is_found_a_minute_later(self) -> None:
        ports = [database.make_port(self.db, self.node, address=f"52:54:00:00:00:0{number}") for number in (1, 2)]
        self.write(sa.update(_PORTS).where(_PORTS.c.uuid == ports[0].uuid).values(updated_at=clock.after(10)))
        self.follow()
        late = {"updated_at": clock.now(), "pxe_enabled": False}
        self.write(sa.update(_PORTS).where(_PORTS.c.uuid == ports[1].uuid).values(late))
        self.assertIsNone(self.follow())
        now = time.monotonic()
        self.useFixture(fixtures.MonkeyPatch("time.monotonic", lambda: now + 61))
        self.assertEqual(["52:54:00:00:00:01,set:enrolled"], self.follow())

    def test_what_could_not_be_written_is_written_later(self) -> None:
        database.make_port(self.db, self.node, address="52:54:00:00:00:01")
        self.path.mkdir()
        self.assertRaises(IsADirectoryError, self.machines.follow)
        self.path.rmdir()
        self.assertEqual(["52:54:00:00:00:01,set:enrolled"], self.follow())

    def test_it_costs_one_statement_and_two_when_something_has_changed(self) -> None:
        for number in range(50):
            database.make_port(self.db, self.node, address=f"52:54:00:00:01:{number:02x}")
        with sql_counter.counting(self.db) as counted:
            self.machines.follow()
        self.assertEqual(2, len(counted), counted)
        with sql_counter.counting(self.db) as counted:
            self.machines.follow()
            self.write(sa.update(nodes.NODES).values(name="another"))  # what nodes do is none of its business
            self.machines.follow()
        self.assertEqual(3, len(counted), counted)

    def test_all_users_may_read_the_file(self) -> None:
        self.follow()
        self.assertEqual(0o644, self.path.stat().st_mode & 0o777)
        self.assertEqual([self.path], list(self.path.parent.iterdir()))
