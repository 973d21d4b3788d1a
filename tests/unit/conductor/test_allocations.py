"""Conductors find nodes for allocations: which node, when none fits, after a lost wake-up, after a dead conductor."""

import uuid
from typing import Any
from unittest import mock

import sqlalchemy as sa

from ingot.common import context, states
from ingot.db import allocations, listing, models, node_crud, nodes
from tests import conductor_case, database

CLASS = "baremetal"


class AllocatorCase(conductor_case.ConductorCase):
    def configure(self) -> None:
        self.conf.set_override("sweep_interval", 3600, group="conductor")  # tests sweep by themselves

    def machine(self, **values: Any) -> models.Node:
        return database.make_node(self.db, **{"resource_class": CLASS, **values})

    def wish(self, **values: Any) -> str:
        requested = {"uuid": str(uuid.uuid4()), "resource_class": CLASS, "state": allocations.ALLOCATING, **values}
        allocations.create(self.db, requested)
        return str(requested["uuid"])

    def notify(self, wish: str) -> None:  # type: ignore[override]
        self.conductor.endpoint.process_allocation(context.admin().to_dict(), allocation_uuid=wish)

    def now(self, wish: str) -> models.Node:
        return listing.get(self.db, allocations.SOURCE, wish)

    def ended(self, wish: str) -> models.Node:
        def look() -> models.Node | None:
            found = self.now(wish)
            return None if found.state == allocations.ALLOCATING else found

        found: models.Node = conductor_case.eventually(look, f"allocation {wish} ends")
        return found

    def outcome(self, **values: Any) -> models.Node:
        wish = self.wish(**values)
        self.notify(wish)
        return self.ended(wish)

    def idle(self, wish: str) -> None:
        key = f"allocation {wish}"
        conductor_case.eventually(lambda: not self.conductor.queues.is_busy(key), f"{wish} is processed")


class Finding(AllocatorCase):
    def test_it_gets_a_node_that_fits(self) -> None:
        node = self.machine()
        found = self.outcome(traits=[])
        self.assertEqual((allocations.ACTIVE, node.uuid, None), (found.state, found.node_uuid, found.last_error))
        self.assertEqual(found.uuid, nodes.get(self.db, node.uuid).instance_uuid)

    def test_only_a_node_that_fits(self) -> None:
        criteria = {"owner": "p", "traits": ["CUSTOM_A", "CUSTOM_B"]}
        fitting = {"owner": "p", "having": ["CUSTOM_A", "CUSTOM_B", "CUSTOM_C"]}
        for other in (
            {"resource_class": "other"},
            {"provision_state": states.MANAGEABLE},
            {"instance_uuid": str(uuid.uuid4())},
            {"maintenance": True},
            {"power_state": None},
            {"owner": "q"},
            {"having": ["CUSTOM_A", "CUSTOM_C"]},
        ):
            self.fitted(**{**fitting, **other})
        named = [self.fitted(**fitting).uuid, self.fitted(**{**fitting, "owner": None, "lessee": "p"}).uuid]
        candidates = [node.uuid for node in (self.fitted(**{**fitting, "owner": "q"}),)] + named
        got = {self.outcome(**criteria, candidate_nodes=candidates).node_uuid for _each in named}
        self.assertEqual(set(named), got)
        info = nodes.get(self.db, named[0]).instance_info
        self.assertEqual({"traits": ["CUSTOM_A", "CUSTOM_B"]}, info)
        self.assertEqual(allocations.ERROR, self.outcome(**criteria, candidate_nodes=candidates).state)

    def fitted(self, having: list[str], **values: Any) -> models.Node:
        node = self.machine(**values)
        node_crud.change_traits(self.db, node, add=having)
        return node

    def test_none_fits_and_it_says_what_was_looked_for(self) -> None:
        self.machine(maintenance=True)
        failed = self.outcome(traits=["CUSTOM_A"])
        self.assertEqual((allocations.ERROR, None), (failed.state, failed.node_uuid))
        for part in (failed.uuid, CLASS, "CUSTOM_A", "no available nodes match", "class: 1;", "state: 0."):
            self.assertIn(part, failed.last_error)

    def test_a_node_of_its_name_is_preferred(self) -> None:
        for _each in range(5):
            self.machine()
        for name in ("db1", "db2"):
            node = self.machine(name=name)
            self.assertEqual(node.uuid, self.outcome(name=name).node_uuid)

    def test_an_instance_of_the_same_uuid_elsewhere_ends_it(self) -> None:
        taken = str(uuid.uuid4())
        self.machine(resource_class="other", instance_uuid=taken)
        self.machine()
        failed = self.outcome(uuid=taken)
        self.assertEqual(allocations.ERROR, failed.state)
        self.assertIn(taken, failed.last_error)

    def test_what_is_not_asked_for_any_more_is_left_alone(self) -> None:
        node = self.machine()
        for wish in (self.wish(state=allocations.ERROR), str(uuid.uuid4())):
            self.notify(wish)
            self.idle(wish)
        self.assertIsNone(nodes.get(self.db, node.uuid).instance_uuid)


class NothingIsLost(AllocatorCase):
    def test_the_sweep_finds_work_without_a_wake_up(self) -> None:
        self.machine()
        wish = self.wish()
        self.conductor.sweeper.sweep()
        self.assertEqual(allocations.ACTIVE, self.ended(wish).state)

    def test_it_waits_while_all_that_fits_is_worked_on(self) -> None:
        node = self.machine(flow="for_parent")
        wish = self.wish()
        self.notify(wish)
        self.idle(wish)
        self.assertEqual(allocations.ALLOCATING, self.now(wish).state)
        nodes.set_always(self.db, node.uuid, {"flow": None})
        self.conductor.sweeper.sweep()
        self.assertEqual(node.uuid, self.ended(wish).node_uuid)

    def test_a_conductor_that_dies_on_the_way_leaves_nothing_half_done(self) -> None:
        node = self.machine()
        wish = self.wish()
        with mock.patch.object(allocations.rows.Rows, "write", side_effect=SystemExit):
            self.notify(wish)
            self.idle(wish)
        self.assertEqual((allocations.ALLOCATING, None), (self.now(wish).state, self.now(wish).node_uuid))
        self.assertIsNone(nodes.get(self.db, node.uuid).instance_uuid)
        self.conductor.sweeper.sweep()
        self.assertEqual(node.uuid, self.ended(wish).node_uuid)

    def test_each_has_one_conductor_that_cares_for_it(self) -> None:
        self.machine()
        table = models.table(models.Conductor)
        with self.db.single() as connection:
            connection.execute(
                sa.insert(table).values(hostname="old", release="0.1", rpc_version="1.0", classic_drivers=[])
            )
        for _each in range(5):  # a conductor of the release before knows no allocations
            self.machine()
            wish = self.wish()
            self.conductor.sweeper.sweep()
            self.ended(wish)
        with self.db.single() as connection:
            connection.execute(sa.update(table).values(rpc_version="1.1"))
        requested = [self.wish() for _each in range(40)]
        with mock.patch.object(self.conductor.allocator, "notify") as notified:
            self.conductor.sweeper.sweep()
        mine = [call.args[0] for call in notified.call_args_list]
        self.assertTrue(0 < len(mine) < 40 and set(mine) < set(requested), len(mine))

    def test_undeploying_takes_the_allocation_away(self) -> None:
        node = self.machine()
        wish = self.outcome().uuid
        nodes.set_always(self.db, node.uuid, {"provision_state": states.ACTIVE, "automated_clean": False})
        self.run_flow_of(node)
        with self.db.single() as connection:
            left = connection.execute(sa.select(allocations.ALLOCATIONS.c.uuid)).scalars().all()
        self.assertEqual(([], None), (list(left), nodes.get(self.db, node.uuid).instance_uuid), wish)

    def run_flow_of(self, node: models.Node) -> None:
        self.accept(node, "delete", states.DELETING)
        self.conductor.endpoint.advance(context.admin().to_dict(), node_uuid=node.uuid, why="test")
        self.settled(node)
