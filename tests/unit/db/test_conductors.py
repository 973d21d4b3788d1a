"""Who is online, and what the conductors have enabled."""

import datetime
import threading
from typing import Any

from ingot.common import clock, errors
from ingot.db import conductors
from ingot.db.conductors import EnabledInterface
from tests import database

_VALUES = {"conductor_group": "", "release": "0.1.0", "rpc_version": "1.0"}
_IPMI = EnabledInterface("ipmi", "power", "ipmitool", True)
_FAKE = EnabledInterface("fake-hardware", "power", "fake", False)
_CLASSIC = ["fixed", "solid"]


class ConductorsOnSQLite(database.TestCase):
    def register(self, hostname: str, *offers: EnabledInterface, **values: Any) -> conductors.Entry:
        return conductors.register(self.db, hostname, {**_VALUES, **values}, offers)

    def silence(self, entry: conductors.Entry, seconds: float) -> None:
        table = conductors.CONDUCTORS
        with self.db.single() as connection:
            connection.execute(
                table.update()
                .where(table.c.id == entry.id)
                .values(heartbeat_at=clock.now() - datetime.timedelta(seconds=seconds))
            )

    def test_is_online_as_long_as_its_heartbeats_come(self) -> None:
        entry = self.register("one")
        self.assertEqual({"one"}, conductors.online_hosts(self.db, 30))

        self.silence(entry, 31)
        self.assertEqual(set(), conductors.online_hosts(self.db, 30))
        self.assertFalse(conductors.get(self.db, "one", 30).alive)

        conductors.touch(self.db, entry)
        self.assertTrue(conductors.get(self.db, "one", 30).alive)

    def test_owns_nothing_and_is_alive_while_it_stops(self) -> None:
        entry = self.register("one", _IPMI)

        conductors.withdraw(self.db, entry)

        self.assertEqual([], conductors.ring_members(self.db, 30))
        self.assertEqual({"one"}, conductors.online_hosts(self.db, 30))

    def test_owns_nothing_and_is_alive_while_it_is_drained_however_often_it_starts(self) -> None:
        for offers in ({}, {"classic_drivers": _CLASSIC}):
            entry = self.register("one", _IPMI, **offers)
            conductors.drain(self.db, "one")
            for _ in range(2):
                self.assertTrue(conductors.is_drained(self.db, entry))
                self.assertEqual([], conductors.ring_members(self.db, 30))
                self.assertEqual([], conductors.enabled_interfaces(self.db, 30))
                self.assertEqual({"one"}, conductors.online_hosts(self.db, 30))
                entry = self.register("one", _IPMI, **offers)
            conductors.undrain(self.db, "one")
            self.assertFalse(conductors.is_drained(self.db, entry))

    def test_a_drain_is_asked_for_until_the_conductor_follows(self) -> None:
        entry = self.register("one", _IPMI)
        conductors.confirm_drain(self.db, entry)  # no client has asked
        self.assertEqual([(None, 1)], self.drains())
        for _ in range(2):
            conductors.drain(self.db, "one")
            self.assertEqual([("asked", 1)], self.drains())
        for _ in range(2):
            conductors.confirm_drain(self.db, entry)
            conductors.drain(self.db, "one")
            self.assertEqual([("followed", 1)], self.drains())

    def drains(self) -> list[tuple[str | None, bool]]:
        return [(one.drain, one.alive) for one in conductors.list_all(self.db, 30)]

    def test_is_offline_at_once_after_an_orderly_stop(self) -> None:
        entry = self.register("one", _IPMI)

        conductors.unregister(self.db, entry)

        self.assertEqual(set(), conductors.online_hosts(self.db, 30))
        self.assertEqual([], conductors.enabled_interfaces(self.db, 30))
        self.assertEqual(["one"], [conductors.get(self.db, "one", 30).hostname])

    def test_a_second_life_replaces_the_first(self) -> None:
        first = self.register("one", _IPMI, _FAKE)
        second = self.register("one", _FAKE, conductor_group="west")

        self.assertEqual(first, second)
        self.assertEqual([("one", "west", "fake-hardware")], conductors.ring_members(self.db, 30))

    def test_many_that_register_at_once_are_all_there(self) -> None:
        start = threading.Barrier(6)
        failures: list[BaseException] = []

        def enter(number: int) -> None:
            start.wait()
            try:
                self.register(f"host-{number}", _IPMI, _FAKE)
            except Exception as exc:  # noqa: BLE001 - any error is what the test is about
                failures.append(exc)

        threads = [threading.Thread(target=enter, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        self.assertEqual([], failures)
        self.assertEqual({f"host-{number}" for number in range(6)}, conductors.online_hosts(self.db, 30))
        self.assertEqual(12, len(conductors.enabled_interfaces(self.db, 30)))

    def test_rings_are_made_of_online_conductors_only(self) -> None:
        self.register("one", _IPMI, _FAKE)
        self.register("two", _IPMI, conductor_group="west")
        self.silence(self.register("dead", _IPMI), 100)

        self.assertEqual(
            {("one", "", "ipmi"), ("one", "", "fake-hardware"), ("two", "west", "ipmi")},
            set(conductors.ring_members(self.db, 30)),
        )
        online = conductors.list_versions(self.db, 30)
        self.assertEqual([("0.1.0", "1.0")] * 2, [(one.release, one.rpc_version) for one in online])

    def test_enabled_interfaces_are_listed_by_hardware_type_and_group(self) -> None:
        self.register("one", _IPMI, _FAKE)
        self.register("two", _IPMI, conductor_group="west")

        of_ipmi = conductors.enabled_interfaces(self.db, 30, hardware_types=["ipmi"])
        of_west = conductors.enabled_interfaces(self.db, 30, group="west")

        self.assertEqual(["one", "two"], [offer.hostname for offer in of_ipmi])
        self.assertEqual([("two", "ipmitool", True)], [(o.hostname, o.interface_name, o.default) for o in of_west])
        self.assertEqual([], conductors.enabled_interfaces(self.db, 30, hardware_types=["redfish"]))

    def test_classic_drivers_are_on_the_rings_too(self) -> None:
        self.register("one", _IPMI, _FAKE, classic_drivers=_CLASSIC)
        self.register("two", conductor_group="west", classic_drivers=["fixed"])
        self.silence(self.register("dead", classic_drivers=["fixed"]), 100)
        self.register("none")
        members = conductors.ring_members(self.db, 30)
        expected = {("one", "", name) for name in ("ipmi", "fake-hardware", *_CLASSIC)} | {("two", "west", "fixed")}
        self.assertEqual((expected, 5), (set(members), len(members)))
        self.assertEqual(
            [("one", "", "fixed"), ("one", "", "solid"), ("two", "west", "fixed")],
            conductors.classic_drivers(self.db, 30),
        )
        self.assertEqual([("two", "west", "fixed")], conductors.classic_drivers(self.db, 30, "west"))
        known = conductors.drivers_by_host(self.db)
        self.assertEqual(["fake-hardware", "fixed", "ipmi", "solid"], known["one"])

    def test_classic_drivers_go_with_their_conductor(self) -> None:
        for leave in (conductors.withdraw, conductors.unregister):
            leave(self.db, self.register("one", _IPMI, classic_drivers=_CLASSIC))
            self.assertEqual([], conductors.ring_members(self.db, 30))
        self.register("one", _IPMI, classic_drivers=_CLASSIC)
        self.register("one", _IPMI)
        self.assertEqual([("one", "", "ipmi")], conductors.ring_members(self.db, 30))

    def test_an_entry_is_its_process_s_until_another_registers(self) -> None:
        first = self.register("one", _IPMI, process="a")
        second = self.register("one", _FAKE, process="b")
        self.assertFalse(conductors.touch(self.db, first))
        for leave in (conductors.withdraw, conductors.unregister):
            leave(self.db, first)
        self.assertEqual([("one", "", "fake-hardware")], conductors.ring_members(self.db, 30))
        self.assertTrue(conductors.touch(self.db, second))

    def test_an_unknown_conductor_is_not_found(self) -> None:
        self.assertRaises(errors.NotFound, conductors.get, self.db, "missing", 30)
